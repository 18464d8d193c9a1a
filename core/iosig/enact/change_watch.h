// Sees whether a program changes files while they are being copied elsewhere, or has them open at the end.
//
// Between a look at a file and the moment when its path leads elsewhere, a program can open it, write and close. Only a
// comparison after that moment sees such a late writer: of size, times and inode, and, where those can be stale, of the
// content. They can be stale on file systems that other nodes or a daemon change, and where a store through a shared
// mapping updates no time (tmpfs). For the latter, inotify tells of each file that was closed after being open for
// writing; without inotify the content is compared.
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

/// Whether another descriptor or a mapping of the open file exists, in this process or another. A file system without
/// leases cannot tell: false.
[[nodiscard]] bool is_open_elsewhere(int file);

/// The `infeasible` refusal where a file is gone that was there when the run looked first.
[[nodiscard]] tl::unexpected<Error> just_removed(std::string_view directory, std::string_view name);

class ChangeWatch {
 public:
  /// Watches only the files of `directory` that are added.
  explicit ChangeWatch(const Fd& directory);
  /// Watches for names that come and go, too. `names`, sorted, are those that the caller found in the directory: a name
  /// that came since then is a change.
  ChangeWatch(const Fd& directory, std::vector<std::string> names);

  /// Watches the open regular file `name` of the directory from now on. Call it before the first byte is copied, and
  /// set `copy` when there is one: its content is what the file's is compared with.
  /// Keeps the file open. Two names of one file share a descriptor, or each would count as another program's.
  /// Returns its index.
  std::size_t add(std::string name, Fd file);
  const Fd& file(std::size_t index) const { return *files_[index].file; }
  void set_copy(std::size_t index, const Fd& copy) { files_[index].copy = copy.get(); }

  /// Watches which file `name` is, not its content: for one that gets a second name, and for links. Call it before that
  /// name is made, or the link is read.
  [[nodiscard]] Result<void> add_name(std::string name);

  enum class Answer {
    unchanged,
    in_use,   ///< a program has a file open
    changed,  ///< a file was written, replaced or removed, its attributes were set, or a name came or went
  };
  /// Whether the files are as they were added. The quick look compares no content: `thorough` is for the last one,
  /// after no path leads to the files any more. `may_be_open`: open descriptors of others are accepted. `renamed_to`:
  /// the one watched file has that name now.
  [[nodiscard]] Result<Answer> look(bool thorough, bool may_be_open, const std::string& renamed_to = {});

  /// Whether an event tells that a program wrote to a file, set its attributes, or closed it after having it open for
  /// writing. For files without a copy, whose content `look` cannot compare.
  [[nodiscard]] bool was_touched();

 private:
  struct File {
    std::string name;
    std::shared_ptr<const Fd> file;  ///< null: only which file has the name
    int copy = -1;
    struct stat status {};
  };
  [[nodiscard]] bool is_as_added(const File& file, const std::string& renamed_to) const;

  int directory_ = -1;
  Fd events_;
  std::vector<File> files_;
  std::optional<std::vector<std::string>> names_;
  bool is_blind_ = false;     ///< events could not be had, or do not tell all: only the content proves anything
  bool was_touched_ = false;  ///< an event came
};

}  // namespace iosig
