// The directory of a container: the names in it, and access to them without following symbolic links.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/container/layout/container_manifest.h"

namespace iosig {

inline constexpr std::string_view container_manifest_name = ".iosig-container";
/// A copy of the manifest. The engine of the owner reads it when the mode of the logical file, which the manifest has,
/// denies the owner read permission.
inline constexpr std::string_view manifest_copy_name = ".iosig-manifest", manifest_copy_draft = ".iosig-manifest-new";
/// Prefix, followed by a number, of the directories that hold what a repair quarantined.
inline constexpr std::string_view quarantine_prefix = ".iosig-aside-";
/// The index snapshot that one reader saves for later ones (container/read/index_snapshot.h), and its draft.
inline constexpr std::string_view index_snapshot_name = ".iosig-index", index_snapshot_draft = ".iosig-index-new";

/// Prefix, followed by an identity of a node, of the files in which writers leave a record when they are closed
/// (container/layout/closed_writers.h).
inline constexpr std::string_view closed_writers_prefix = "closed.";

/// The droppings of one writer: `data.<id>` holds the bytes that it wrote, `index.<id>` their places in the file,
/// `tail.<id>` the places that the index does not have yet.
enum class Dropping { data, index, tail };
[[nodiscard]] std::string dropping_name(Dropping kind, std::int64_t id);

/// Returns the name of a subdirectory; `number` is below ContainerManifest::subdirectories.
[[nodiscard]] std::string subdirectory_name(std::int64_t number);

/// Parses the name of a dropping; no value for other names.
struct DroppingName {
  Dropping kind = Dropping::data;
  std::int64_t id = 0;
};
[[nodiscard]] std::optional<DroppingName> parse_dropping_name(std::string_view name);

/// Permissions of the pieces of a container, from the mode of the logical file. Every user may look up its pieces, as
/// stat(2) of a file needs no permission on it. Users who may read or write the file may read or write the pieces. The
/// owner's engine always has full access.
[[nodiscard]] constexpr unsigned directory_mode_for(unsigned mode) { return 0711 | (mode & 0066); }
[[nodiscard]] constexpr unsigned piece_mode_for(unsigned mode) { return 0600 | (mode & 0666); }

/// An open container. Immutable; its writers and readers share it.
class ContainerDirectory {
 public:
  /// Fails as `bad_input` if `path` is not a container or its manifest is invalid. Messages call it `shown`.
  static Result<std::shared_ptr<const ContainerDirectory>> open(const std::string& path, const std::string& shown);
  static Result<std::shared_ptr<const ContainerDirectory>> open(const std::string& path) { return open(path, path); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ContainerManifest& manifest() const { return manifest_; }
  [[nodiscard]] const Fd& fd() const { return directory_; }

  /// Returns the position in the manifest of the target for the data of writer `id`; -1: the container itself.
  [[nodiscard]] std::int64_t target_of(std::int64_t id) const {
    return id < 0 || manifest_.targets.empty() ? -1 : id % static_cast<std::int64_t>(manifest_.targets.size());
  }
  /// Returns the path of a dropping for messages.
  [[nodiscard]] std::string shown(Dropping kind, std::int64_t id) const;
  /// Gets the stat(2) fields of the manifest, which has the permissions and the owner of the logical file. Returns 0 or
  /// errno.
  [[nodiscard]] int stat_manifest(struct stat& status) const;
  /// Gives a piece that the caller has just created, open as `fd`, the owner, group and permissions that follow from
  /// the logical file, whatever the umask and the calling user. Fails with EACCES as `system` if the file's owner could
  /// not read the piece: the caller may write the file, is not its owner, and cannot chown the piece. The caller must
  /// then remove the piece.
  [[nodiscard]] Result<void> share_piece(int fd, const std::string& shown) const;
  /// Opens the directory of the droppings of `id`; creates it if `make`. Fails with ENOENT as `system` if it is
  /// missing.
  [[nodiscard]] Result<Fd> open_subdirectory(Dropping kind, std::int64_t id, bool make = false) const;
  /// Opens a dropping with openat(2) `flags`; never follows symbolic links. -1 with errno on failure.
  [[nodiscard]] Fd open_dropping(Dropping kind, std::int64_t id, int flags, unsigned mode = 0) const;
  /// Like unlink(2). Fails with ENXIO if the dropping's target is missing.
  [[nodiscard]] int unlink_dropping(Dropping kind, std::int64_t id) const;
  /// **Deletes data and index of a writer.** The data first, and the index only if the data are gone: void data are
  /// harmless beside their index, but data without an index are a loss, and a target may be away for a while.
  void delete_data_and_index(std::int64_t id) const;

  /// A data dropping that repair quarantined.
  struct Quarantined {
    std::string shown;
    std::int64_t id = 0, bytes = 0;
  };
  /// The ids of the droppings of each kind, sorted, and everything else that was found.
  struct Listing {
    std::vector<std::int64_t> data, index, tail;
    std::vector<std::string> closed_writers;  ///< names of the files with records of closed writers
    std::vector<std::string> foreign_names;   ///< names in the container that are not those of droppings
    std::vector<Error> unreadable;            ///< directories that cannot be listed
    std::vector<Quarantined> quarantined;
    bool has_quarantine = false;  ///< repair quarantined these or other files
    bool misses_indices = false;  ///< an unreadable directory may hold indices
  };
  [[nodiscard]] Listing list() const;

 private:
  ContainerDirectory(std::string path, Fd directory, ContainerManifest manifest);
  [[nodiscard]] const Fd& place_of(Dropping kind, std::int64_t id) const;
  /// Returns the name of the subdirectory for the droppings of `id`.
  [[nodiscard]] std::string subdirectory_of(std::int64_t id) const;

  std::string path_;
  Fd directory_;
  ContainerManifest manifest_;
  std::vector<Fd> targets_;  ///< -1 for a target that cannot be opened
};

/// Splits a path, with or without trailing slashes, into its directory ("." if it has none) and its last component.
struct SplitPath {
  std::string directory, name;
};
[[nodiscard]] SplitPath split_path(std::string_view path);

/// Returns a hidden temporary name in the directory of `path`. `what`: its purpose; `id` makes it unique.
[[nodiscard]] std::string name_beside(std::string_view path, std::string_view what, std::string_view id);

/// Whether programs do not see the name: those of name_beside(), and a manifest's.
[[nodiscard]] bool is_hidden_name(std::string_view name);

/// Returns the existing paths with such names for `path`, sorted: left by a creation, removal or copy that is in
/// progress or was interrupted. Empty if the directory cannot be listed.
[[nodiscard]] std::vector<std::string> hidden_beside(std::string_view path);

/// Returns the current path of an open directory; empty if it is unknown.
[[nodiscard]] std::string place_of(int directory);

/// Whether there is a container at `path`: tests only that the manifest exists. Follows links like open(2).
[[nodiscard]] bool is_container(const std::string& path);

}  // namespace iosig
