// The directory behind a logical file: its names, and how they are reached without following links.
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
/// A copy of the manifest that the engine of its owner can read when the mode of the logical file, which the manifest
/// bears, does not let the owner read it.
inline constexpr std::string_view manifest_copy_name = ".iosig-manifest", manifest_copy_draft = ".iosig-manifest-new";
/// What a repair moved out of the way, in directories called so and a number.
inline constexpr std::string_view quarantine_prefix = ".iosig-aside-";
/// What a reader keeps for the next (container/read/index_snapshot.h), and its draft.
inline constexpr std::string_view index_snapshot_name = ".iosig-index", index_snapshot_draft = ".iosig-index-new";

/// The pieces of one writer: `data.<id>` holds what it wrote, `index.<id>` where that belongs, `tail.<id>` the same of
/// what the index does not have yet.
enum class Dropping { data, index, tail };
[[nodiscard]] std::string dropping_name(Dropping kind, std::int64_t id);

/// Of the subdirectory with a number below ContainerManifest::subdirectories.
[[nodiscard]] std::string subdirectory_name(std::int64_t number);

/// Which dropping a name is that of; nothing for other names.
struct DroppingName {
  Dropping kind = Dropping::data;
  std::int64_t id = 0;
};
[[nodiscard]] std::optional<DroppingName> parse_dropping_name(std::string_view name);

/// The permissions of what a container consists of, by the mode of the logical file: every user may look its pieces up,
/// as stat(2) of a file needs no permission on it; who may read or write the file may do so with them; and the engine
/// of the owner may do all it has to.
[[nodiscard]] constexpr unsigned directory_mode_for(unsigned mode) { return 0711 | (mode & 0066); }
[[nodiscard]] constexpr unsigned piece_mode_for(unsigned mode) { return 0600 | (mode & 0666); }

/// An open container. Immutable, shared by its writers and readers.
class ContainerDirectory {
 public:
  /// Fails as `bad_input` for what is no container, or has a manifest that is not sound. Messages name it as `shown`.
  static Result<std::shared_ptr<const ContainerDirectory>> open(const std::string& path, const std::string& shown);
  static Result<std::shared_ptr<const ContainerDirectory>> open(const std::string& path) { return open(path, path); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ContainerManifest& manifest() const { return manifest_; }
  [[nodiscard]] const Fd& fd() const { return directory_; }

  /// The place of data by its number in the manifest, or -1: the container itself.
  [[nodiscard]] std::int64_t target_of(std::int64_t id) const {
    return id < 0 || manifest_.targets.empty() ? -1 : id % static_cast<std::int64_t>(manifest_.targets.size());
  }
  /// For messages.
  [[nodiscard]] std::string shown(Dropping kind, std::int64_t id) const;
  /// What stat(2) says of the manifest, which bears the permissions and the owner of the logical file. 0 or errno.
  [[nodiscard]] int stat_manifest(struct stat& status) const;
  /// A piece that the caller has just made, open as `fd`, is for those whom the logical file is for, whatever the umask
  /// and whoever the caller is. EACCES as `system`, and the piece must be removed again, if the file's owner could not
  /// read it: of a user who may write the file, is not its owner, and cannot give the piece to its owner.
  [[nodiscard]] Result<void> share_piece(int fd, const std::string& shown) const;
  /// The directory that a dropping of `id` lies in; made if asked for. ENOENT as `system` when it is missing.
  [[nodiscard]] Result<Fd> open_subdirectory(Dropping kind, std::int64_t id, bool make = false) const;
  /// `flags`: as openat's; links are never followed. -1 with errno.
  [[nodiscard]] Fd open_dropping(Dropping kind, std::int64_t id, int flags, unsigned mode = 0) const;
  [[nodiscard]] int unlink_dropping(Dropping kind, std::int64_t id) const;

  /// A data dropping that repair quarantined.
  struct Quarantined {
    std::string shown;
    std::int64_t id = 0, bytes = 0;
  };
  /// Who has written, by what lies there, in order; each kind by itself.
  struct Listing {
    std::vector<std::int64_t> data, index, tail;
    std::vector<std::string> foreign_names;  ///< names that are no dropping's, below the container
    std::vector<Error> unreadable;           ///< directories that cannot be listed
    std::vector<Quarantined> quarantined;
    bool has_quarantine = false;  ///< repair quarantined something, these or other things
    bool misses_indices = false;  ///< one of them may hold indices
  };
  [[nodiscard]] Listing list() const;

 private:
  ContainerDirectory(std::string path, Fd directory, ContainerManifest manifest);
  [[nodiscard]] const Fd& place_of(Dropping kind, std::int64_t id) const;
  /// Of the subdirectory that the droppings of `id` lie in.
  [[nodiscard]] std::string subdirectory_of(std::int64_t id) const;

  std::string path_;
  Fd directory_;
  ContainerManifest manifest_;
  std::vector<Fd> targets_;  ///< -1 where one cannot be reached
};

/// Where a path leads to, with slashes behind it or not: the directory, "." if it names none, and the name there.
struct SplitPath {
  std::string directory, name;
};
[[nodiscard]] SplitPath split_path(std::string_view path);

/// A hidden name beside `path`, for what is there only for a while: `what` it is, and what makes it unlike others.
[[nodiscard]] std::string name_beside(std::string_view path, std::string_view what, std::string_view id);

/// Names that are no file's for programs: those of name_beside(), and a manifest's.
[[nodiscard]] bool is_hidden_name(std::string_view name);

/// What is there beside `path` under such names, sorted: of a creation, a removal or a copy that was interrupted, or is
/// at work. Empty where the directory cannot be listed.
[[nodiscard]] std::vector<std::string> hidden_beside(std::string_view path);

/// Where an open directory is now; empty: nobody knows.
[[nodiscard]] std::string place_of(int directory);

/// Whether there is a container at `path`, by its manifest's name alone. Follows links as open(2) does.
[[nodiscard]] bool is_container(const std::string& path);

}  // namespace iosig
