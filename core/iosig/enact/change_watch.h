// Sees whether a program changes files while they are being copied elsewhere, or has them open at the end.
//
// Between a look at a file and the moment when its path leads elsewhere, a program can open it, write and close. Only a
// comparison after that moment sees such a late writer: of size, times and inode, and, where those can be stale, of the
// content. They can be stale on file systems that other nodes or a daemon change, and where a store through a shared
// mapping updates no time (tmpfs). For the latter, inotify tells of each file that was closed after being open for
// writing; without inotify the content is compared.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/enact/copy.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Whether another descriptor or a mapping of the open file exists, in this process or another. A file system without
/// leases cannot tell: false.
[[nodiscard]] bool is_open_elsewhere(int file);

class ChangeWatch {
 public:
  /// Watches files in `directory`. `names`: all that are in it, sorted, as they were when the caller decided what to do
  /// with each; a name that comes or goes is a change. Nothing: other files in it do not matter.
  ChangeWatch(const Fd& directory, std::optional<std::vector<std::string>> names);

  /// Watches the open regular file `name` of the directory from now on. Call it before the first byte is copied, and
  /// set `copy` when there is one: its content is what the file's is compared with.
  /// Returns its index.
  std::size_t add(std::string name, const Fd& file);
  /// Watches the file `name` of the directory that got the second name `link` instead of a copy: it may be written, but
  /// another file must not take its place.
  void add_linked(std::string name, const Place& link);
  void set_copy(std::size_t index, const Fd& copy) { files_[index].copy = copy.get(); }

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
    int file = -1, copy = -1;  ///< file -1: linked
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
