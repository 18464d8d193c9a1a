// The directory onto which a trace is replayed: creates, opens, renames and removes files in it by relative names.
//
// No symbolic link in it is followed, in any component, and only files that the replay has made are opened, emptied,
// renamed and deleted, so that no other program can lead a replay to files of its own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/replay/made_files.h"

namespace iosig {

/// Returns the components of a path that a trace has, joined by '/', without "." and ".." (which are resolved by name,
/// and never lead above the root). Longer components than file systems have are shortened, and get a hash. Empty: the
/// root. Example: "/a/./b/../c" becomes "a/c".
[[nodiscard]] std::string contained_name(std::string_view path);

/// Each operation returns 0 or a descriptor, or the negative error number. A name is one of contained_name().
class TargetTree {
 public:
  /// Makes the directory (mode 0700), or takes an existing one that is empty, for at most `most_files` at a time. Fails
  /// as `usage` if it has entries.
  [[nodiscard]] static Result<TargetTree> make(const std::string& path, std::size_t most_files);
  /// Opens the same directory again, whatever its name leads to now, for a process that was made by fork().
  [[nodiscard]] Result<TargetTree> again() const;

  /// Opens a directory that has the mark `text`, as save_mark() made it, and deletes the mark. Fails as `usage` if it
  /// has another one; nothing: it has none.
  [[nodiscard]] static Result<std::optional<TargetTree>> open_marked(const std::string& path, std::string_view text,
                                                                     std::size_t most_files);
  /// Takes a file that the replay made when it only prepared: a regular file without other names, of this size. Returns
  /// false if it is not that.
  bool adopt(const std::string& name, std::int64_t size);
  /// Marks the directory for a later open_marked().
  [[nodiscard]] Result<void> save_mark(std::string_view text);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_made() const { return is_made_; }

  /// Opens a file, and makes it with O_CREAT. Fails with ELOOP for a symbolic link, and EMLINK for what the replay has
  /// not made; nothing is truncated then.
  int open_file(const std::string& name, int flags);
  int make_directory(const std::string& name);
  int remove_file(const std::string& name);
  int remove_directory(const std::string& name);
  int rename(const std::string& from, const std::string& to);
  int link(const std::string& from, const std::string& to);
  int truncate(const std::string& name, std::int64_t size);
  /// Makes the missing directories above `name`.
  int make_parents(const std::string& name);

  /// **Deletes** the files among the names that the replay has made, and the directories that are empty, then the
  /// directory itself if make() made it. Returns whether nothing remains of what it should delete.
  bool remove_all(std::span<const std::string> files, std::span<const std::string> directories);

 private:
  /// A directory below the root, and the last component.
  struct Place {
    int directory = -1;
    std::string name;
  };
  /// Sets `place`; returns 0 or the negative error number.
  int find(const std::string& name, Place& place);
  /// Returns 0 if the replay has made the file, or it is a directory; else as open_file(). Sets `file`.
  [[nodiscard]] int inspect(const Place& place, struct stat& file) const;
  [[nodiscard]] int refusal_of(const struct stat& file) const;
  /// Deletes a file that the replay has made.
  int remove(const Place& place);
  [[nodiscard]] static Result<TargetTree> open(const std::string& path, std::size_t most_files);

  std::string path_;
  Fd root_;
  std::shared_ptr<MadeFiles> made_;
  bool is_made_ = false;
  std::map<std::string, Fd, std::less<>> opened_;  ///< directories by name
  std::uint64_t generation_ = 0;                   ///< of MadeFiles, in which they have these names
};

}  // namespace iosig
