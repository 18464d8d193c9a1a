// Detects whether a program changes files while they are copied, or has them open at the end.
//
// Between a check of a file and the moment when its path leads elsewhere, a program can open it, write and close it (a
// late writer). Only a comparison after that moment detects it. Size, times and inode are compared; where those can be
// stale, the content too. They can be stale on file systems that other nodes or a daemon change, and where a store
// through a shared mapping updates no time (tmpfs). In the latter case, inotify reports each file that was closed after
// being open for writing; without inotify, the content is compared.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/enact/copy.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Whether the open file has another descriptor or a mapping, in this process or another of this machine. On file
/// systems without leases (NFS, FUSE), and of another user's file: whether another process has it open by that path, by
/// /proc. **Programs on other nodes are not seen.**
[[nodiscard]] bool is_open_elsewhere(int file);

/// Returns the `infeasible` error for a file that existed at the start of the run and is gone.
[[nodiscard]] tl::unexpected<Error> just_removed(std::string_view directory, std::string_view name);

class ChangeWatch {
 public:
  /// Watches only the files of `directory` that are added.
  explicit ChangeWatch(const Fd& directory);
  /// Also watches for names that are created or removed. `names`, sorted: those that the caller found in the directory;
  /// a name created since then is a change.
  ChangeWatch(const Fd& directory, std::vector<std::string> names);

  /// Watches the open regular file `name` of the directory from now on, and returns its index. Call it before the first
  /// byte is copied, then call set_copy() once a copy exists: the contents of the two are compared. Keeps the file
  /// open. Two names of one file share a descriptor; otherwise each would count as another program's.
  std::size_t add(std::string name, Fd file);
  const Fd& file(std::size_t index) const { return *files_[index].file; }
  void set_copy(std::size_t index, const Fd& copy) { files_[index].copy = copy.get(); }

  /// Watches which inode `name` has, not its content: for a file that gets a second name, and for links. Call it before
  /// the second name is created or the link is read.
  [[nodiscard]] Result<void> add_name(std::string name);

  enum class Answer {
    unchanged,
    in_use,   ///< a program has a file open
    changed,  ///< a file was written, replaced or removed, its attributes changed, or a name was created or removed
  };
  /// Whether the files are unchanged since they were added. `thorough` also compares contents, and asks which files
  /// processes have open where there are no leases: use it for the last
  /// check, when no path leads to the files any more. `may_be_open`: accept open descriptors of other processes.
  /// `renamed_to`: the current name of the one watched file.
  [[nodiscard]] Result<Answer> look(bool thorough, bool may_be_open, const std::string& renamed_to = {});

  /// Whether inotify reported that a program wrote to a file, set its attributes, or closed it after opening it for
  /// writing. For files without a copy, whose content look() cannot compare.
  [[nodiscard]] bool was_touched();

  /// Whether writes to the added files are reported. Then was_written() tells of each since it was added, even of one
  /// that leaves size and times as they were. For files whose copies this process lets a program change.
  [[nodiscard]] bool sees_writes() const { return !is_blind_; }
  [[nodiscard]] bool was_written();

 private:
  struct File {
    std::string name;
    std::shared_ptr<const Fd> file;  ///< null: only the inode of the name is watched
    int copy = -1;
    struct stat status {};
  };
  [[nodiscard]] bool is_as_added(const File& file, const std::string& renamed_to) const;

  int directory_ = -1;
  Fd events_;
  std::vector<File> files_;
  std::optional<std::vector<std::string>> names_;
  bool is_blind_ = false;     ///< no events, or incomplete ones: only the content is proof
  bool was_touched_ = false;  ///< an event was reported
  bool was_written_ = false;  ///< one of a write, or events were lost
};

}  // namespace iosig
