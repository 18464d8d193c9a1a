// The directory onto which a trace is replayed: creates, opens, renames and removes files in it by relative names.
//
// No symbolic link in it is followed, in any component, so that no other program can lead a replay out of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig {

/// Returns the components of a path that a trace has, joined by '/', without "." and ".." (which are resolved by name,
/// and never lead above the root). Longer components than file systems have are shortened, and get a hash. Empty: the
/// root. Example: "/a/./b/../c" becomes "a/c".
[[nodiscard]] std::string contained_name(std::string_view path);

/// Each operation returns 0 or a descriptor, or the negative error number. A name is one of contained_name().
class TargetTree {
 public:
  /// Makes the directory (mode 0700), or takes an existing one that is empty. Fails as `usage` if it has entries.
  [[nodiscard]] static Result<TargetTree> make(const std::string& path);
  /// Opens an existing directory, whatever is in it.
  [[nodiscard]] static Result<TargetTree> open(const std::string& path);

  /// Opens a directory that has the mark `text`, as save_mark() made it, and deletes the mark. Fails as `usage` if it
  /// has another one; nothing: it has none.
  [[nodiscard]] static Result<std::optional<TargetTree>> open_marked(const std::string& path, std::string_view text);
  /// Marks the directory for a later open_marked().
  [[nodiscard]] Result<void> save_mark(std::string_view text);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_made() const { return is_made_; }

  /// Fails with ELOOP for a symbolic link, and EMLINK for what is no regular file, or has other names (hard links)
  /// unless `may_be_linked`; nothing is truncated then.
  int open_file(const std::string& name, int flags, bool may_be_linked);
  int make_directory(const std::string& name);
  int remove_file(const std::string& name);
  int remove_directory(const std::string& name);
  int rename(const std::string& from, const std::string& to);
  int link(const std::string& from, const std::string& to);
  int truncate(const std::string& name, std::int64_t size);
  /// Makes the missing directories above `name`.
  int make_parents(const std::string& name);

  /// **Deletes** the regular files and empty directories among the names, then the directory itself if make() made it.
  /// Returns whether nothing remains of what it should delete.
  bool remove_all(std::span<const std::string> files, std::span<const std::string> directories);

 private:
  /// A directory below the root, and the last component.
  struct Place {
    int directory = -1;
    std::string name;
  };
  /// Sets `place`; returns 0 or the negative error number.
  int find(const std::string& name, Place& place);

  std::string path_;
  Fd root_;
  bool is_made_ = false;
  std::map<std::string, Fd, std::less<>> opened_;  ///< directories by name
};

}  // namespace iosig
