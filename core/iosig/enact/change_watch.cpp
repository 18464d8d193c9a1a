#include "iosig/enact/change_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/enact/agreement.h"
#include "iosig/enact/open_files.h"

namespace iosig {
namespace {

std::vector<std::string> sorted_names(int directory) {
  const Fd opened(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto names = opened ? names_in(opened) : Result<std::vector<std::string>>(std::vector<std::string>());
  std::vector<std::string> sorted = names ? *std::move(names) : std::vector<std::string>();
  std::ranges::sort(sorted);
  return sorted;
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Compares the status change time as well, unless the file was renamed, which may set it.
bool same_status(const struct stat& a, const struct stat& b, bool was_renamed) {
  return is_same_file(a, b) && a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim) &&
         (was_renamed || same_time(a.st_ctim, b.st_ctim));
}

}  // namespace

tl::unexpected<Error> just_removed(std::string_view directory, std::string_view name) {
  return fail(ErrorKind::infeasible, "a program has just removed '{}{}{}'; settle it when the program has ended",
              printable(directory), directory.empty() ? "" : "/", printable(name));
}

namespace {

enum class Lease { granted, refused, unsupported };

Lease ask_lease(int file) {
  // A program that opens the file now breaks the lease. The default signal for that would end this process, so a signal
  // that is ignored by default is set.
  (void)::fcntl(file, F_SETSIG, SIGURG);
  // The kernel grants a write lease only on a file that is neither open nor mapped by anyone else.
  if (::fcntl(file, F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN ? Lease::refused : Lease::unsupported;
  (void)::fcntl(file, F_SETLEASE, F_UNLCK);
  return Lease::granted;
}

}  // namespace

bool is_open_elsewhere(int file) {
  const Lease lease = ask_lease(file);
  return lease == Lease::refused || (lease == Lease::unsupported && is_open_in_another_process(file));
}

ChangeWatch::ChangeWatch(const Fd& directory)
    : directory_(directory.get()), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), is_blind_(!events_) {}

ChangeWatch::ChangeWatch(const Fd& directory, std::vector<std::string> names) : ChangeWatch(directory) {
  names_ = std::move(names);
}

std::size_t ChangeWatch::add(std::string name, Fd file) {
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  if (!events_ || ::inotify_add_watch(events_.get(), self.c_str(), IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) < 0 ||
      is_on_shared_file_system(file))
    is_blind_ = true;
  File added{std::move(name), nullptr, -1, {}};
  if (::fstat(file.get(), &added.status) != 0) is_blind_ = true;
  const auto known = std::ranges::find_if(
      files_, [&](const File& other) { return other.file && is_same_file(other.status, added.status); });
  added.file = known != files_.end() ? known->file : std::make_shared<const Fd>(std::move(file));
  files_.push_back(std::move(added));
  return files_.size() - 1;
}

Result<void> ChangeWatch::add_name(std::string name) {
  File added{std::move(name), nullptr, -1, {}};
  if (::fstatat(directory_, added.name.c_str(), &added.status, AT_SYMLINK_NOFOLLOW) != 0)
    return just_removed("", added.name);
  files_.push_back(std::move(added));
  return {};
}

bool ChangeWatch::was_touched() {
  alignas(inotify_event) std::array<char, 4096> space{};
  for (ssize_t got; events_ && (got = ::read(events_.get(), space.data(), space.size())) > 0;) {
    was_touched_ = true;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(space.data() + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      was_written_ = was_written_ || (event->mask & (IN_MODIFY | IN_Q_OVERFLOW)) != 0;
    }
  }
  return was_touched_;
}

bool ChangeWatch::was_written() {
  (void)was_touched();
  return was_written_;
}

bool ChangeWatch::is_as_added(const File& file, const std::string& renamed_to) const {
  struct stat now {
  }, by_name{};
  const std::string& name = renamed_to.empty() ? file.name : renamed_to;
  if (::fstatat(directory_, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) != 0) return false;
  // A second name changes a file's status change time. A recreated link may have the inode of the old one.
  if (!file.file)
    return is_same_file(by_name, file.status) &&
           (!S_ISLNK(by_name.st_mode) || same_time(by_name.st_ctim, file.status.st_ctim));
  return ::fstat(file.file->get(), &now) == 0 && same_status(now, file.status, !renamed_to.empty()) &&
         is_same_file(by_name, now);
}

/// Example: a program opens `a.db` after its copy was made, writes one byte and closes it. 1. It is not open any more.
/// 2. Its time of modification differs: `changed`. On a file system whose times lag, 2 sees nothing: inotify has
/// reported the close, so 3 compares the content.
///
/// 1. Open files, by their leases. First: a program that closes its file before 2 has written before 2, which sees it.
/// 2. Inodes, sizes, times, and the names in the directory.
/// 3. Contents, if the first two may have missed a write.
Result<ChangeWatch::Answer> ChangeWatch::look(bool thorough, bool may_be_open, const std::string& renamed_to) {
  const auto is_open = [&](const File& file) {  // processes are searched once, at last: that takes milliseconds
    return file.file &&
           (thorough ? is_open_elsewhere(file.file->get()) : ask_lease(file.file->get()) == Lease::refused);
  };
  const auto differs = [&](const File& file) { return !is_as_added(file, renamed_to); };
  if (!may_be_open && std::ranges::any_of(files_, is_open)) return Answer::in_use;
  if (std::ranges::any_of(files_, differs)) return Answer::changed;
  if (names_ && sorted_names(directory_) != *names_) return Answer::changed;
  if (!thorough || !(was_touched() || is_blind_)) return Answer::unchanged;
  for (const File& file : files_) {
    if (file.copy < 0) continue;
    const auto same = same_content(file.file->get(), file.copy, {});
    if (!same) return pass_on(same.error());
    if (!*same) return Answer::changed;
  }
  return Answer::unchanged;
}

}  // namespace iosig
