#include "iosig/enact/move_on.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "iosig/base/text.h"
#include "iosig/enact/bring_home.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/home.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

constexpr int max_pause_ms = 100;  ///< between tries: 1, 8, 64 ms

/// The status flags of an open file that F_GETFL reports and open(2) accepts.
constexpr int kept_flags = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_NOATIME | O_ASYNC;

std::string self_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

std::string target_of(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return std::string(target, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

bool is_one_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Returns the numbers that name entries of the directory: process ids, descriptors.
std::vector<int> numbers_in(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto names = directory ? names_in(directory) : Result<std::vector<std::string>>(std::vector<std::string>());
  std::vector<int> numbers;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    int number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc{} && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

/// The other threads of this process, watched through /proc.
class OtherThreads {
 public:
  /// Whether all sleep, none of them in a call on one of the descriptors. Remembers how often each has run.
  bool are_asleep(const std::vector<int>& descriptors) {
    switches_ = count_switches();
    for (const auto& [thread, switches] : switches_) {
      const std::string directory = fmt::format("/proc/self/task/{}", thread);
      const auto status = read_file(directory + "/status"), call = read_file(directory + "/syscall");
      if (!status || !call || status->find("\nState:\tS") == std::string::npos) return false;
      unsigned long long number = 0, argument = 0;
      if (std::sscanf(call->c_str(), "%llu %llx", &number, &argument) != 2) return false;  // "running"
      if (std::ranges::find(descriptors, static_cast<int>(argument)) != descriptors.end()) return false;
    }
    return !have_run();
  }

  /// Whether one has run, or begun, since then.
  [[nodiscard]] bool have_run() const { return count_switches() != switches_; }

 private:
  using Switches = std::map<int, std::string>;  ///< thread -> the lines with its context switches

  static Switches count_switches() {
    Switches all;
    for (const int thread : numbers_in("/proc/self/task")) {
      if (thread == ::gettid()) continue;
      const auto status = read_file(fmt::format("/proc/self/task/{}/status", thread));
      const std::size_t at = status ? status->find("voluntary_ctxt_switches") : std::string::npos;
      all[thread] = at == std::string::npos ? "unknown" : status->substr(at);
    }
    return all;
  }

  Switches switches_;
};

/// The open file behind the program's descriptors.
class OpenFile {
 public:
  OpenFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  /// Refuses a file that other descriptors, processes, mappings or locks could still use when this process's
  /// descriptors have left it.
  Result<void> check() {
    flags_ = ::fcntl(fd_, F_GETFL);
    if (::fstat(fd_, &status_) != 0 || flags_ < 0) return system_failure("inspect", path_);
    if ((flags_ & O_ACCMODE) == O_RDONLY || (flags_ & O_DIRECT) != 0 || status_.st_nlink != 1)
      return refused("it is open for direct I/O, or has a second name");
    if (contains(fmt::format("/proc/self/fdinfo/{}", fd_), "\nlock:")) return refused("it is locked");
    if (contains("/proc/self/maps", path_)) return refused("it is mapped");
    for (const int number : numbers_in("/proc/self/fd"))
      if (target_of(self_path(number)) == path_ && is_this(self_path(number))) numbers_.push_back(number);
    if (std::ranges::find(numbers_, fd_) == numbers_.end()) return refused("its name has changed");
    // Another thread could close a number and open another file as it, in the moment in which this thread replaces it.
    // It has no reason to do so with the one number through which this thread writes.
    if (numbers_.size() != 1 && __libc_single_threaded == 0)
      return refused("several descriptors lead to it, in a program with threads");
    for (const int pid : numbers_in("/proc"))
      if (pid != ::getpid() && is_open_in(pid)) return refused(fmt::format("process {} has it open, too", pid));
    return check_lease();
  }

  Result<void> get_ready(const Fd& copy) {
    found_ = Fd(::open(self_path(fd_).c_str(), O_PATH | O_CLOEXEC));
    copy_ = open_again(copy.get());
    if (!copy_ || !found_) return system_failure("open again", path_);
    return {};
  }

  /// A write of another thread between its last look at the data and the exchange would stay behind, and one between
  /// the exchange and its undoing would be on the copy alone. So all other threads sleep when this begins, and if one
  /// has run since, it is not undone.
  Result<void> follow(const std::function<bool()>& is_unchanged) {
    if (!threads_.are_asleep(numbers_)) return refused("another thread of the program is at work");
    if (!is_unchanged()) return refused("another thread has just written to it");
    has_left_ = true;
    const bool follows = lead_to(copy_);
    const int failure = errno;
    copy_ = Fd{};
    if (follows || !go_back()) return {};
    errno = failure;
    return system_failure("exchange the descriptors of", path_);
  }

  bool go_back() {
    if (threads_.have_run()) return false;
    has_left_ = !lead_to(open_again(found_.get()));
    return !has_left_;
  }

  /// Whether the descriptors lead home.
  [[nodiscard]] bool has_left() const { return has_left_; }

 private:
  tl::unexpected<Error> refused(std::string_view why) const { return fail(ErrorKind::infeasible, "{}", why); }

  [[nodiscard]] bool is_this(const std::string& link) const {
    struct stat status {};
    return ::stat(link.c_str(), &status) == 0 && is_one_file(status, status_);
  }

  static bool contains(const std::string& file, std::string_view text) {
    const auto content = read_file(file);
    return !content || content->find(text) != std::string::npos;  // one that cannot be read proves nothing
  }

  /// Looks only at links that end like the path: stat(2) of any other file may wait for a server.
  [[nodiscard]] bool is_open_in(int pid) const {
    const std::string_view below = std::string_view(path_).substr(path_.rfind('/', path_.rfind('/') - 1));
    const std::string directory = fmt::format("/proc/{}/fd", pid);
    for (const int number : numbers_in(directory)) {
      const std::string link = fmt::format("{}/{}", directory, number);
      if (target_of(link).ends_with(below) && is_this(link)) return true;
    }
    return false;
  }

  /// The kernel grants a write lease only if this open file is the only one, in any process. Leaves the settings of the
  /// descriptor as they were.
  [[nodiscard]] Result<void> check_lease() const {
    f_owner_ex owner{};
    const int signal = ::fcntl(fd_, F_GETSIG);
    const bool has_owner = ::fcntl(fd_, F_GETOWN_EX, &owner) == 0;
    (void)::fcntl(fd_, F_SETSIG, SIGURG);  // ignored by default; the usual signal would end the program
    const int failure = ::fcntl(fd_, F_SETLEASE, F_WRLCK) == 0 ? 0 : errno;
    if (failure == 0) (void)::fcntl(fd_, F_SETLEASE, F_UNLCK);
    (void)::fcntl(fd_, F_SETSIG, signal);
    if (has_owner) (void)::fcntl(fd_, F_SETOWN_EX, &owner);
    if (failure == EAGAIN) return refused("it is open a second time");
    if (failure != 0) return refused("its file system does not tell who has it open");
    return {};
  }

  /// Opens the file behind `fd` with the program's flags.
  [[nodiscard]] Fd open_again(int fd) const {
    Fd file(::open(self_path(fd).c_str(), (flags_ & kept_flags) | O_CLOEXEC));
    return file;
  }

  /// Makes all numbers duplicates of `file`, at the offset at which they are. All or none.
  bool lead_to(const Fd& file) const {
    const off_t offset = ::lseek(fd_, 0, SEEK_CUR);
    if (!file || offset < 0 || ::lseek(file.get(), offset, SEEK_SET) != offset) return false;
    for (const int number : numbers_) {
      const int close_on_exec = ::fcntl(number, F_GETFD);
      if (::syscall(SYS_dup3, file.get(), number, (close_on_exec & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) != number)
        return false;
    }
    return true;
  }

  const int fd_;
  const std::string path_;
  int flags_ = 0;
  struct stat status_ {};
  std::vector<int> numbers_;
  OtherThreads threads_;
  Fd found_, copy_;  ///< the data (O_PATH); the copy, opened with the program's flags
  bool has_left_ = false;
};

/// Returns the journal's entry of the file at `path`, which `fd` has open.
Result<JournalEntry> entry_of(int fd, const std::string& path) {
  const auto parsed = parse_destination(path);
  auto entry = parsed && parsed->has_directory ? recorded_entry(parsed->id) : std::nullopt;
  struct stat open {
  }, named{};
  if (!entry || entry->kind != RedirectKind::link || ::fstat(fd, &open) != 0 ||
      ::stat(entry->destination.c_str(), &named) != 0 || !is_one_file(open, named))
    return fail(ErrorKind::infeasible, "it is not the file of an entry in this program's journal");
  return *std::move(entry);
}

/// Returns the state of the redirect without traces of a killed run, and lets the entry follow a renamed link.
Result<Survey> survey_clean(JournalEntry& entry) {
  const JournalEntry recorded = entry;
  entry = at_home(entry);
  Survey found = survey(entry);
  if (found.cut_short) {
    if (auto undone = undo_killed_run(entry); !undone) return pass_on(undone.error());
    found = survey(entry);
  }
  if (found.state != RedirectState::linked || found.destination->is_retired || found.destination->is_double)
    return fail(ErrorKind::infeasible, "no link leads to it any more");
  if (entry.signature.archive || entry.signature.tamperproof || has_manifest(found.destination->data))
    return fail(ErrorKind::infeasible, "it is declared to need that storage (archive, tamperproof)");
  if (found.has_companions())
    return fail(ErrorKind::infeasible, "the program made other files beside it, whose names it may know");
  entry.path = found.path;
  record_home(entry, *found.link);
  if (entry == recorded) return found;
  return rewrite_entry(entry).map([&] { return std::move(found); });
}

/// Steps 3 and 4 of move_on().
Result<MovedOn> try_to_move(JournalEntry& entry, OpenFile& file, std::uint64_t more_bytes) {
  const auto found = survey_clean(entry);
  if (!found) return pass_on(found.error());
  const auto free = free_bytes_at(found->link->directory_path);
  if (free && (*free < found->data_bytes || *free - found->data_bytes < more_bytes))
    return fail(ErrorKind::infeasible, "'{}' has no room for it, either", printable(found->link->directory_path));
  const Followers followers{[&](const Fd& copy) { return file.get_ready(copy); },
                            [&](const auto& is_unchanged) { return file.follow(is_unchanged); },
                            [&] { return file.go_back(); }};
  SettleOptions options;
  options.followers = &followers;
  const auto home = bring_home(entry, *found, options);
  if (!home && !file.has_left()) return pass_on(home.error());
  MovedOn moved{found->path, entry.mount_point, found->data_bytes};
  const auto finished =
      home ? finish_settled(entry, *found, /*keeps_data=*/false) : Result<void>(pass_on(home.error()));
  if (!finished) moved.trouble = finished.error().message;
  return moved;
}

}  // namespace

[[gnu::hot]] bool leads_to_redirected(int fd) {
  const int before = errno;
  struct stat status {};
  bool leads = false;
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    char path[PATH_MAX], link[32] = "/proc/self/fd/";
    *std::to_chars(link + 14, link + sizeof link - 1, fd).ptr = '\0';
    const ssize_t length = ::readlink(link, path, sizeof path);
    leads = length > 0 &&
            std::string_view(path, static_cast<std::size_t>(length)).find("/.iosig-") != std::string_view::npos;
  }
  errno = before;
  return leads;
}

/// Example: `out` leads to a tmpfs of 1 GB, and the program's write beyond it fails. The file is open once, in this
/// process (2). Its copy at home is complete and synced, and takes the link's place; the program's descriptor 5 leads
/// to it (3); the tmpfs is empty again (4). The caller repeats the write.
///
/// 1. Take the entry's lock. Another thread may have moved the file while this one waited.
/// 2. Refuse what cannot be moved unseen.
/// 3. Bring the data home, and let the descriptors follow. On failure all leads to the data as before, and it is tried
///    again a few times.
/// 4. Remove the data and the entry. A failure here is reported, but the file has been moved.
Result<MovedOn> move_on(int fd, std::uint64_t more_bytes) {
  const std::string path = target_of(self_path(fd));
  auto entry = entry_of(fd, path);
  if (!entry) return pass_on(entry.error());
  const auto joined = join_journal();
  if (!joined) return pass_on(joined.error());
  const auto lock = lock_entry(entry->id, IfBusy::wait);
  if (!lock) return pass_on(lock.error());
  if (target_of(self_path(fd)) != path) return MovedOn{};
  entry = entry_of(fd, path);
  if (!entry) return pass_on(entry.error());
  OpenFile file(fd, path);
  if (auto alone = file.check(); !alone) return pass_on(alone.error());
  // Other threads that fill the file get ENOSPC in a moment, too, and wait for this move. Until then they write.
  for (int pause_ms = 1;; pause_ms *= 8) {
    auto moved = try_to_move(*entry, file, more_bytes);
    if (moved || moved.error().kind != ErrorKind::infeasible || pause_ms > max_pause_ms) return moved;
    const timespec pause{0, pause_ms * 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace iosig
