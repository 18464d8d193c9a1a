#include "preload/trace/part_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "iosig/base/size_limit.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/open_file.h"

namespace iosig::preload::trace {
namespace {

/// How many threads are about to open a part's file; -1: a fork() holds them back.
std::atomic<int> opens_now{0};
bool does_fork_hold_opens = false;  ///< protected by the process's lock

/// Delays fork() in other threads.
class ForksLater {
 public:
  ForksLater()
      : is_counted_(is_soon([] {
          for (int opens = opens_now; opens >= 0;)
            if (opens_now.compare_exchange_weak(opens, opens + 1)) return true;
          return false;
        })) {}
  ~ForksLater() {
    if (is_counted_) --opens_now;
  }
  ForksLater(const ForksLater&) = delete;
  ForksLater& operator=(const ForksLater&) = delete;

 private:
  bool is_counted_;
};

bool is_file_of(const ThreadPart& part, long fd) {
  struct stat now {};
  return ::fstat(static_cast<int>(fd), &now) == 0 && now.st_dev == part.device && now.st_ino == part.inode;
}

/// Parts that keep a descriptor.
std::atomic<std::uint32_t> kept_files{0};

/// Whether the process's tables of descriptors are about this thread's: not in a child made by vfork(2).
bool shares_descriptors() { return !has_own_descriptors && !is_stray_child(); }

/// Opens the part's file, also with O_CREAT, at a number that the program does not get and cannot close. -1: none is
/// free, or the file's name is gone, or leads to another file by now, **which must not be written**.
long open_file_of(ThreadPart& part, const char* path, int flags) {
  struct stat named {};
  const auto ask = [&] { return ::fstatat(AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW) == 0; };
  if ((flags & O_CREAT) == 0 && (!ask() || named.st_dev != part.device || named.st_ino != part.inode)) return -1;
  const ForksLater forks_later;
  const int low =
      static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600));
  if (low < 0) return -1;
  if ((flags & O_CREAT) != 0 && ask()) {
    part.device = named.st_dev;
    part.inode = named.st_ino;
  }
  // Another thread may replace the small number by a file of the program meanwhile (dup2): it is the program's then.
  const int high = low < min_engine_fd() ? duplicate_for_engine(low) : low;
  if (high >= 0 && high != low && is_file_of(part, low)) ::syscall(SYS_close, low);
  const int fd = high >= 0 ? high : low;
  if (!is_file_of(part, fd)) {
    if (fd != low) ::syscall(SYS_close, fd);
    errno = EBUSY;
    return -1;
  }
  if (shares_descriptors()) engine_fds.add(fd);
  return fd;
}

/// Whether no file of this size may be made now. Asks the kernel: another process may have changed the limit.
bool is_too_large(std::uint64_t end) { return static_cast<std::int64_t>(end) > read_size_limit(); }

}  // namespace

long create_file(ThreadPart& part, const char* path) {
  const long fd = open_file_of(part, path, O_CREAT | O_EXCL);
  int flags = 0;  // as write_in_place() (base/files.h), by no call that programs make
  if (fd >= 0 && ::syscall(SYS_ioctl, fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags |= FS_NOCOW_FL) != 0)
    (void)::syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
  return fd;
}

void close_file(long fd) {
  const ForksLater forks_later;
  if (shares_descriptors()) engine_fds.remove(static_cast<int>(fd));
  ::syscall(SYS_close, fd);
}

void keep_file(ThreadPart& part, long fd) {
  rlimit limit{};
  constexpr int least = 10;  // the program expects smaller ones
  if (fd < least || fd >= max_fds || !shares_descriptors() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return close_file(fd);
  if (kept_files.fetch_add(1) < limit.rlim_cur / 4) {
    part.fd = static_cast<int>(fd);
  } else {
    --kept_files;
    close_file(fd);
  }
}

UsedFile::UsedFile(ThreadPart& part, const char* path) : part_(part), fd_(part.fd) {
  if (fd_ >= 0 && is_file_of(part, fd_)) return;
  if (fd_ >= 0 && shares_descriptors()) {  // the program has closed it by a call that this library does not see
    engine_fds.remove(part.fd);
    part.fd = -1;
    --kept_files;
  }
  fd_ = open_file_of(part, path, 0);
}

UsedFile::~UsedFile() {
  if (fd_ >= 0 && fd_ != part_.fd) close_file(fd_);
}

bool put_in_file(ThreadPart& part, const char* path, const void* bytes, std::size_t count, std::uint64_t offset) {
  if (is_too_large(offset + count)) return false;  // SIGXFSZ would end the program
  const UsedFile file(part, path);
  if (file.fd() < 0) return false;
  std::size_t done = 0;
  while (done < count) {
    const long put =
        ::syscall(SYS_pwrite64, file.fd(), static_cast<const char*>(bytes) + done, count - done, offset + done);
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  return done == count;
}

bool fill_file(long fd, std::size_t first, std::size_t end) {
  static constexpr std::array<std::byte, 2 * iosig::trace::page_bytes> zeros{};  // a new part is filled by one write
  if (is_too_large(end)) {
    errno = EFBIG;
    return false;
  }
  for (; first < end; first += zeros.size())
    if (::syscall(SYS_pwrite64, fd, zeros.data(), std::min(zeros.size(), end - first), first) !=
        static_cast<long>(std::min(zeros.size(), end - first)))
      return false;
  return true;
}

void hold_opens_at_fork() {
  does_fork_hold_opens = is_soon([] {
    int none = 0;
    return opens_now.compare_exchange_strong(none, -1);
  });
}

void release_opens_after_fork(bool is_child) {
  if (is_child || does_fork_hold_opens) opens_now = 0;
  if (is_child) kept_files = 0;
}

}  // namespace iosig::preload::trace
