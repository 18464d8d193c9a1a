#include "background.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"
#include "iosig/enact/journal_directory.h"
#include "settling.h"
#include "user_service.h"

namespace iosig::cli {
namespace {

constexpr off_t max_log_bytes = 1 << 20;
constexpr int lowest_priority = 19;
constexpr int idle_class = 3 << 13, of_process = 1;  ///< IOPRIO_CLASS_IDLE, IOPRIO_WHO_PROCESS (linux/ioprio.h)

/// Opens the log. A full one becomes the old one. Its owner may read and write it, whatever umask this drain or an
/// earlier one has.
Result<Fd> open_log(const std::string& path) {
  struct stat status {};
  const auto open = [&] {
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    Fd opened(::open(path.c_str(), flags, 0600));
    if (opened && ::fstat(opened.get(), &status) == 0 && (status.st_mode & 0600) != 0600)
      (void)::fchmod(opened.get(), 0600);
    return opened;
  };
  Fd log = open();
  if (!log && errno == EACCES && set_mode_at(AT_FDCWD, path.c_str(), 0600) == 0) log = open();
  if (log && ::fstat(log.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > max_log_bytes) {
    (void)::rename(path.c_str(), (path + ".old").c_str());
    log = open();
  }
  if (!log) return system_failure("write", path);
  return log;
}

/// The job always wins: the drain runs when the processors and the device have nothing else to do. Linux shares the
/// processors among sessions first (sched(7), autogroup): there the priority of a process counts only within its
/// session, and that of the session has a file of its own.
void take_lowest_priority() {
  (void)::setpriority(PRIO_PROCESS, 0, lowest_priority);
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  if (const Fd group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC)); group)
    (void)write_all(group.get(), std::to_string(lowest_priority), "/proc/self/autogroup");
  (void)::syscall(SYS_ioprio_set, of_process, 0, idle_class);
}

/// A program that starts this one may have blocked all signals, and ignored the end of its children.
void take_default_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::signal(SIGCHLD, SIG_DFL);
}

void settle_in(const Fd& log) {
  ::setsid();
  (void)::signal(SIGHUP, SIG_IGN);
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
  close_inherited();
  if (::chdir("/") != 0) return;
  take_lowest_priority();
}

void write_line(int fd, std::string_view text) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char when[32] = "";
  if (::gmtime_r(&now, &utc) != nullptr) (void)std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  (void)write_all(fd, fmt::format("{} {} {}\n", when, ::getpid(), text), "the log");
}

using Log = std::function<void(std::string_view line)>;

/// Calls `work` in a new process and returns its id.
Result<pid_t> run_detached(const Fd& log, const std::function<void(const Log&)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("make", "a pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return system_failure("start", "a process");
  if (child == 0) {
    // The second fork: the process is no session leader, so it never gets a terminal, and init is its parent.
    settle_in(log);
    const pid_t worker = ::fork();
    if (worker != 0) {
      (void)!::write(write_end.get(), &worker, sizeof worker);
      ::_exit(worker < 0 ? 1 : 0);
    }
    write_end = Fd{};
    const Log write = [&](std::string_view text) { write_line(log.get(), text); };
    try {
      work(write);
    } catch (const std::exception& error) {
      write(error.what());
    }
    ::_exit(0);
  }
  write_end = Fd{};
  pid_t worker = -1;
  const bool answered = ::read(read_end.get(), &worker, sizeof worker) == sizeof worker;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!answered || worker < 0) return fail(ErrorKind::system, "cannot start a process in the background");
  return worker;
}

/// Takes on the entries and sorts them into `started`.
void take_all(Drain& drain, const std::vector<JournalEntry>& entries, StartedDrain& started) {
  started.taken.clear();
  started.busy.clear();
  started.refused.clear();
  for (const JournalEntry& entry : entries) {
    const auto taken = drain.take(entry);
    if (!taken)
      started.refused.push_back(taken.error());
    else
      (*taken ? started.taken : started.busy).push_back(entry);
  }
}

std::size_t work_through(Drain& drain, const std::vector<JournalEntry>& taken, const Log& write) {
  drain.log_to(write);
  drain.sign();
  write(taken.empty() ? std::string("begins") : "begins with " + one_or_count(taken.front().path, taken.size()));
  const std::size_t gave_up = drain.run();
  write("ends");
  return gave_up;
}

/// Waits until the service has taken on one of the entries, or has settled it already. Returns its process; -1: it does
/// not begin.
pid_t process_of_service(const std::vector<JournalEntry>& entries) {
  if (entries.empty()) return 0;
  const std::string& id = entries.front().id;
  for (int tries = 0; tries < 500; ++tries) {
    if (const auto record = drain_record(id); record && record->pid != ::getpid() && is_locked(id, LockFor::draining))
      return static_cast<pid_t>(record->pid);
    if (!is_recorded(id)) return 0;
    const timespec moment{0, 10'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return -1;
}

/// Starts the drain as a service. The locks of `drain` are the service's to take, so they are released first.
Result<void> start_service(std::optional<Drain>& drain, const std::vector<std::string>& words, StartedDrain& started) {
  std::error_code none;
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe", none)};
  command.insert(command.end(), words.begin(), words.end());
  const auto name = new_journal_entry(RedirectedBy::prepare);  // for its id
  if (!name) return pass_on(name.error());
  const std::string unit = "iosig-drain-" + name->id;
  drain.reset();
  if (auto begun = start_user_service(unit, command, started.log_path); !begun) return begun;
  const pid_t pid = process_of_service(started.taken);
  if (pid < 0)
    return fail(ErrorKind::system, "the user service {} does not begin; systemctl --user status {}", unit, unit);
  started.pid = pid;
  started.unit = unit;
  return {};
}

}  // namespace

void close_inherited(int kept) {
  std::vector<int> inherited;
  if (DIR* const listing = ::opendir("/proc/self/fd")) {
    while (const dirent* item = ::readdir(listing)) {
      const std::string_view name = item->d_name;
      int fd = -1;
      if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc{}) continue;
      if (const int flags = ::fcntl(fd, F_GETFD);
          fd > STDERR_FILENO && fd != kept && flags >= 0 && (flags & FD_CLOEXEC) == 0)
        inherited.push_back(fd);
    }
    ::closedir(listing);
  }
  for (const int fd : inherited) ::close(fd);
}

Result<StartedDrain> start_drain(const std::vector<JournalEntry>& entries, DrainOptions options,
                                 const std::vector<std::string>& as_service) {
  take_default_signals();
  const auto journal = open_journal_directory();  // makes the state directory
  if (!journal) return pass_on(journal.error());
  StartedDrain started;
  started.log_path = state_directory() + "/drain.log";
  const auto log = open_log(started.log_path);
  if (!log) return pass_on(log.error());
  std::optional<Drain> drain(std::in_place, options);
  take_all(*drain, entries, started);
  if (started.taken.empty() && options.job.empty()) return started;
  if (has_user_services()) {
    const auto begun = start_service(drain, as_service, started);
    if (begun) return started;
    started.no_service = begun.error().message;
    if (!drain) {
      drain.emplace(options);
      take_all(*drain, entries, started);
    }
  }
  const auto pid = run_detached(*log, [&](const Log& write) { (void)work_through(*drain, started.taken, write); });
  if (!pid) {
    for (const JournalEntry& entry : started.taken) remove_drain_record(entry.id);
    return pass_on(pid.error());
  }
  started.pid = *pid;
  return started;
}

Result<DrainedHere> drain_here(const std::vector<JournalEntry>& entries, DrainOptions options) {
  const auto journal = open_journal_directory();
  if (!journal) return pass_on(journal.error());
  take_lowest_priority();
  Drain drain(options);
  StartedDrain started;
  take_all(drain, entries, started);
  DrainedHere drained;
  if (!started.taken.empty() || !options.job.empty())
    drained.gave_up =
        work_through(drain, started.taken, [](std::string_view text) { write_line(STDOUT_FILENO, text); });
  drained.refused = std::move(started.refused);
  return drained;
}

std::string text_of(const StartedDrain& started) {
  if (started.unit.empty()) return fmt::format("process {}", started.pid);
  return fmt::format("user service {}{}", started.unit,
                     started.pid != 0 ? fmt::format(" (process {})", started.pid) : "");
}

}  // namespace iosig::cli
