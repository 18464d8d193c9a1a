// Calls on descriptors: dup(2), close(2), fcntl(2), flock(2), lockf(3), ioctl(2) and their variants.

#include <linux/close_range.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstdarg>

#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/files/drained.h"
#include "preload/hooks/full.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"
#include "preload/trace/recorder.h"

using namespace iosig::preload;

namespace {

/// Called after the kernel has made `fd` a duplicate of `of`; returns `fd`. Records nothing in a child made by vfork(),
/// which has its own descriptors but shares its parent's tables.
int duplicated(int fd, int of) {
  if (fd >= 0 && fd != of && (is_drained(of) || is_drained(fd)) && !is_stray_child()) duplicated_drained(fd, of);
  if (fd < 0 || fd == of || (!is_ours(of) && !is_ours(fd)) || is_stray_child()) return fd;
  const int before = errno;
  {
    const EngineGuard inside;
    follow(fd, of);
  }
  errno = before;
  return fd;
}

/// Whether the program would replace a descriptor of the engine; sets errno to EBUSY then.
bool is_taken(int fd) {
  if (!engine_fds.has(fd)) return false;
  errno = EBUSY;
  return true;
}

/// Returns the engine's descriptor that bears the locks of this open file; -1 with errno.
int lock_fd_of(OpenFile& file) {
  if (const int known = file.lock_fd; known >= 0) return known;
  const int made = open_for_locks(file);
  if (made < 0) return -1;
  int expected = -1;
  if (file.lock_fd.compare_exchange_strong(expected, made)) return made;
  const iosig::Fd superfluous(made);
  return expected;
}

/// Exchanges writes with other nodes. Called before a lock is released and after one is acquired.
std::int64_t exchange_with_other_nodes(OpenFile& file) {
  if (const int failure = make_ready(file); failure != 0) return -failure;
  return -run_isolated_step([&] { return file.container->exchange_with_other_nodes(); });
}

/// A lock as the kernel gets it.
struct KernelLock {
  int fd = -1;
  struct flock range {};
};

/// Implements a process's record locks as open file description locks on a descriptor that the process keeps for them.
/// Between processes both have the same effect. Record locks would end whenever the engine closes the manifest.
/// `command` never waits. Sets `used` to what the kernel was asked for.
std::int64_t lock(OpenFile& file, int command, struct flock* wanted, KernelLock& used) {
  if (readable_bytes(wanted, sizeof *wanted) < sizeof *wanted) return -EFAULT;
  const bool is_of_process = command == F_SETLK || command == F_GETLK;
  const bool only_asks = command == F_GETLK || command == F_OFD_GETLK;
  if (!only_asks && ((wanted->l_type == F_RDLCK && !file.reads()) || (wanted->l_type == F_WRLCK && !file.writes())))
    return -EBADF;
  int fd = -1;
  const int failure = run_isolated_step([&] {
    fd = is_of_process ? record_lock_fd(file) : lock_fd_of(file);
    return fd < 0 ? errno : 0;
  });
  if (failure != 0) return -failure;
  struct flock asked = *wanted;
  asked.l_pid = 0;
  if (asked.l_whence == SEEK_CUR) asked.l_start += file.shared->offset;
  if (asked.l_whence == SEEK_END) {
    const std::int64_t end = end_of(file);
    if (end < 0) return end;
    if (__builtin_add_overflow(asked.l_start, end, &asked.l_start)) return -EOVERFLOW;
    if (asked.l_start < 0) return -EINVAL;
  }
  asked.l_whence = SEEK_SET;
  const int given = only_asks ? F_OFD_GETLK : F_OFD_SETLK;
  used = {.fd = fd, .range = asked};
  const bool is_given_back = given != F_OFD_GETLK && asked.l_type == F_UNLCK;
  const std::int64_t met = is_given_back ? exchange_with_other_nodes(file) : 0;
  const int done = real().fcntl(fd, given, &asked);
  if (done != 0) return -errno;
  if (given == F_OFD_GETLK)
    *wanted = asked;
  else if (!is_given_back)
    return exchange_with_other_nodes(file);
  return met;
}

/// F_SETLKW and F_OFD_SETLKW: waits outside the engine, where the thread may be cancelled and its signal handlers may
/// use containers.
int lock_when_free(int fd, int command, struct flock* wanted) {
  ::pthread_testcancel();
  const int before = errno, at_once = command == F_SETLKW ? F_SETLK : F_OFD_SETLK;
  KernelLock used;
  const std::int64_t done = with_open_file(fd, [&](OpenFile& file) { return lock(file, at_once, wanted, used); });
  if (done == 0 || used.fd < 0 || (errno != EAGAIN && errno != EACCES)) return static_cast<int>(done);
  if (real().fcntl(used.fd, F_OFD_SETLKW, &used.range) != 0) return -1;
  errno = before;
  return static_cast<int>(with_open_file(fd, [](OpenFile& file) { return exchange_with_other_nodes(file); }));
}

std::int64_t control(int fd, OpenFile& file, int command, void* argument) {
  constexpr int kernel_large_file = 0100000;  // the kernel sets it even where O_LARGEFILE is 0 (64-bit systems)
  constexpr int settable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
  const auto number = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  switch (command) {
    case F_GETFL: return file.flags() | kernel_large_file;
    case F_SETFL: file.shared->flags = (file.flags() & ~settable) | (number & settable); return 0;
    case F_SETLK:
    case F_GETLK:
    case F_OFD_SETLK:
    case F_OFD_GETLK: {
      KernelLock used;
      return lock(file, command, static_cast<struct flock*>(argument), used);
    }
    case F_SETLEASE:
    case F_ADD_SEALS: return -EINVAL;
    case F_GETLEASE: return F_UNLCK;
    default: {
      const int value = real().fcntl(fd, command, argument);
      return value < 0 ? -errno : value;
    }
  }
}

/// Called after libc may have given descriptors 0 to 2 to other files, with the result of that call; returns it.
int standard_files_replaced(int done) {
  if (done < 0 || is_stray_child()) return done;
  if (trace::is_tracing) trace::closed_range(STDIN_FILENO, STDERR_FILENO);
  const int before = errno;
  {
    const EngineGuard inside;
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) let_go_if_replaced(fd);
  }
  errno = before;
  return done;
}

/// Closes a descriptor of a container, or of a file that is drained. A thread that is to be cancelled ends before that.
[[gnu::noinline]] int close_known(int fd) {
  ::pthread_testcancel();
  const CancellationOff uncancelled;
  const Closing closing(fd);
  int failure = 0;
  if (is_ours(fd) && !is_stray_child()) {
    const int before = errno;
    {
      const EngineGuard inside;
      failure = let_go(fd);
    }
    errno = before;
  }
  const int closed = real().close(fd);
  if (closed != 0 || failure == 0) return closed;
  errno = failure;
  return -1;
}

/// Forgets what this library knows of the descriptors from `first` to `last`, which are about to be closed.
void close_for_process(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && static_cast<int>(fd) <= last_drained_fd; ++fd)
    const Closing closing(static_cast<int>(fd));  // before the call: the drain waits for it
  const EngineGuard inside;
  for (unsigned fd = first; fd <= last; ++fd)
    if (is_ours(static_cast<int>(fd))) let_go(static_cast<int>(fd));
}

void close_between(unsigned first, unsigned last, int& result) {
  if (first <= last && real().close_range(first, last, 0) != 0) result = -1;
}

}  // namespace

int hook::close(int fd) {
  if (engine_fds.has(fd)) {
    errno = EBADF;  // the descriptor belongs to the engine
    return -1;
  }
  return is_ours(fd) || is_drained(fd) ? close_known(fd) : real().close(fd);
}

int hook::close_range(unsigned first, unsigned last, int flags) {
  const bool is_invalid = first > last || (flags & ~(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE)) != 0;
  if (is_invalid || (flags & CLOSE_RANGE_CLOEXEC) != 0 || is_stray_child())
    return real().close_range(first, last, flags);
  // The calls below close less than the range, each in the same table: so a table of its own comes first.
  if ((flags & CLOSE_RANGE_UNSHARE) != 0 && real().close_range(~0U, ~0U, CLOSE_RANGE_UNSHARE) != 0) return -1;
  if (!leaves_table_of_process(flags)) close_for_process(first, last < max_fds ? last : max_fds - 1);
  int result = 0;
  unsigned next = first;
  engine_fds.for_each([&](int kept) {
    const auto fd = static_cast<unsigned>(kept);
    if (fd < first || fd > last) return;
    if (fd > next) close_between(next, fd - 1, result);
    next = fd + 1;
  });
  close_between(next, last, result);
  return result;
}
void hook::closefrom(int least) { (void)hook::close_range(least < 0 ? 0 : static_cast<unsigned>(least), ~0U, 0); }

int hook::dup(int fd) { return duplicated(real().dup(fd), fd); }
namespace {

/// The standard streams exist before their descriptors are replaced (sort -o).
int watched(int made) {
  if (made >= 0 && made <= STDERR_FILENO && !is_ours(made)) watch_stream(made);
  return made;
}

}  // namespace

int hook::dup2(int fd, int to) {
  if (is_taken(to)) return -1;
  const Closing closing(fd == to ? -1 : to);
  return watched(duplicated(real().dup2(fd, to), fd));
}
int hook::dup3(int fd, int to, int flags) {
  if (is_taken(to)) return -1;
  const Closing closing(fd == to ? -1 : to);
  return watched(duplicated(real().dup3(fd, to, flags), fd));
}

int hook::fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (!is_ours(fd) && !is_drained(fd)) return real().fcntl(fd, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicated(real().fcntl(fd, command, argument), fd);
  if (!is_ours(fd)) return real().fcntl(fd, command, argument);
  if (command == F_SETLKW || command == F_OFD_SETLKW)
    return lock_when_free(fd, command, static_cast<struct flock*>(argument));
  return static_cast<int>(with_open_file(fd, [&](OpenFile& file) { return control(fd, file, command, argument); }));
}

int hook::lockf(int fd, int command, off_t length) {
  struct flock wanted {};
  wanted.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK;
  wanted.l_whence = SEEK_CUR;
  wanted.l_len = length;
  switch (command) {
    case F_ULOCK:
    case F_TLOCK: return hook::fcntl(fd, F_SETLK, &wanted);
    case F_LOCK: return hook::fcntl(fd, F_SETLKW, &wanted);
    case F_TEST:
      if (hook::fcntl(fd, F_GETLK, &wanted) != 0) return -1;
      if (wanted.l_type == F_UNLCK) return 0;
      errno = EACCES;
      return -1;
    default: errno = EINVAL; return -1;
  }
}

int hook::flock(int fd, int operation) {
  if (!is_ours(fd)) return real().flock(fd, operation);
  return static_cast<int>(with_open_file(fd, [&](OpenFile& file) -> std::int64_t {
    const int locked = lock_fd_of(file);
    const bool is_given_back = (operation & LOCK_UN) != 0;
    const std::int64_t met = is_given_back ? exchange_with_other_nodes(file) : 0;
    if (locked < 0 || real().flock(locked, operation) != 0) return -errno;
    return is_given_back ? met : exchange_with_other_nodes(file);
  }));
}

int hook::ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  const bool is_clone = request == FICLONE || request == FICLONERANGE;
  const auto from = static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  if (!is_ours(fd) && !(request == FICLONE && is_ours(from))) return real().ioctl(fd, request, argument);
  if (request == FIOCLEX || request == FIONCLEX) return real().ioctl(fd, request, argument);
  if (request == FIONREAD)
    return static_cast<int>(with_open_file(fd, [&](OpenFile& file) -> std::int64_t {
      const std::int64_t now = file.shared->offset, end = end_of(file);
      if (end < 0) return end;
      *static_cast<int*>(argument) = end > now ? static_cast<int>(end - now) : 0;
      return 0;
    }));
  errno = is_clone ? EOPNOTSUPP : ENOTTY;
  return -1;
}

// These give descriptors 0 to 2 to /dev/null or a terminal.
int hook::daemon(int keeps_directory, int keeps_files) {
  return standard_files_replaced(real().daemon(keeps_directory, keeps_files));
}
int hook::login_tty(int terminal) { return standard_files_replaced(real().login_tty(terminal)); }
pid_t hook::forkpty(int* terminal, char* name, const termios* attributes, const winsize* size) {
  const pid_t child = real().forkpty(terminal, name, attributes, size);
  return child == 0 ? standard_files_replaced(child) : child;
}
