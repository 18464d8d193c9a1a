// Calls in which the kernel moves bytes by itself: mmap(2), sendfile(2), copy_file_range(2), splice(2) and aio(7). The
// kernel does not know containers, so reads and writes here replace its transfers.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>

#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/hooks/full.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"

namespace iosig::preload {
namespace {

constexpr std::size_t step_bytes = 64 << 10;  ///< size of the copy buffer

bool is_place_to_map(std::size_t length, off_t offset) {
  return length > 0 && offset >= 0 && offset % ::sysconf(_SC_PAGESIZE) == 0;
}

/// For a shared mapping of a file that is open for reading and writing: converts the container to an ordinary file,
/// which the kernel can map. Returns whether the descriptor is an ordinary file now. For all other mappings returns
/// false; they get a copy of the current bytes: see map_copy().
bool is_ordinary_to_map(int fd, std::size_t length, int flags, off_t offset) {
  const bool is_shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
  if (!is_shared || !is_place_to_map(length, offset)) return false;
  {
    const InUse file(fd);
    if (file && !(file->reads() && file->writes())) return false;
  }
  return !is_ours(fd) || become_ordinary(fd);
}

/// Returns memory with a copy of the container's current bytes. Later writes do not appear in it.
void* map_copy(int fd, void* at, std::size_t length, int protection, int flags, off_t offset) {
  void* mapped = MAP_FAILED;
  const std::int64_t done = with_open_file(fd, [&](OpenFile& file) -> std::int64_t {
    if (!is_place_to_map(length, offset)) return -EINVAL;
    if (!file.reads()) return -EACCES;
    const bool is_shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    if (is_shared && (protection & PROT_WRITE) != 0) {
      if (!file.writes()) return -EACCES;
      say_failure(fmt::format("'{}' is a container and open in other programs: it cannot be mapped to be written",
                              file.shared->path.data()));
      return -ENODEV;
    }
    const int private_flags = (flags & ~(MAP_TYPE | MAP_SYNC)) | MAP_PRIVATE | MAP_ANONYMOUS;
    mapped = real().mmap(at, length, PROT_READ | PROT_WRITE, private_flags, -1, 0);
    if (mapped == MAP_FAILED) return -errno;
    auto* const bytes = static_cast<std::byte*>(mapped);
    for (std::size_t got = 0; got < length;) {
      const std::int64_t n = get(file, {bytes + got, length - got}, offset + static_cast<off_t>(got));
      if (n < 0) {
        ::munmap(mapped, length);
        mapped = MAP_FAILED;
        return n;
      }
      if (n == 0) break;  // bytes behind the end of the file read as zeros
      got += static_cast<std::size_t>(n);
    }
    if (protection != (PROT_READ | PROT_WRITE)) (void)::mprotect(mapped, length, protection);
    return 0;
  });
  if (done < 0 && is_ordinary_now(fd)) return real().mmap(at, length, protection, flags, fd, offset);
  return done < 0 ? MAP_FAILED : mapped;
}

/// Returns the errno with which the kernel refuses any copy between the two descriptors, or 0. `if_appends`: the errno
/// if the destination is open with O_APPEND.
int transfer_refusal(int from, int to, int if_appends) {
  const auto is_regular = [](int fd) {
    struct stat status {};
    return is_ours(fd) || (hook::fstat(fd, &status) == 0 && S_ISREG(status.st_mode));
  };
  const int reads = hook::fcntl(from, F_GETFL), writes = hook::fcntl(to, F_GETFL);
  if (reads < 0 || writes < 0) return EBADF;
  if ((reads & O_ACCMODE) == O_WRONLY || (writes & O_ACCMODE) == O_RDONLY) return EBADF;
  if ((writes & O_APPEND) != 0) return if_appends;
  return is_regular(from) ? 0 : EINVAL;
}

/// Whether both descriptors are of the same container and the two byte ranges overlap.
bool overlap(int from, off_t from_offset, int to, off_t to_offset, std::size_t count) {
  const InUse one(from), other(to);
  if (!one || !other || one->shared->device != other->shared->device || one->shared->inode != other->shared->inode)
    return false;
  const auto distance =
      static_cast<std::uint64_t>(from_offset > to_offset ? from_offset - to_offset : to_offset - from_offset);
  return distance < count;
}

bool is_there(const off_t* offset) {
  return offset == nullptr || readable_bytes(offset, sizeof *offset) == sizeof *offset;
}

/// Copies bytes between two descriptors. Uses and moves the given offsets; null means the file offset.
ssize_t copy(int from, off_t* from_offset, int to, off_t* to_offset, std::size_t count) {
  const CancellationOff uncancelled;
  std::array<char, 512> small;
  void* const large = real().mmap(nullptr, step_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const room = large == MAP_FAILED ? small.data() : static_cast<char*>(large);
  const std::size_t room_bytes = large == MAP_FAILED ? small.size() : step_bytes;
  const int before = errno;
  std::size_t done = 0;
  ssize_t last = 0;
  while (done < count) {
    const std::size_t wanted = std::min(room_bytes, count - done);
    const ssize_t got =
        from_offset != nullptr ? hook::pread(from, room, wanted, *from_offset) : hook::read(from, room, wanted);
    if (got <= 0) {
      last = got;
      break;
    }
    last = to_offset != nullptr ? hook::pwrite(to, room, static_cast<std::size_t>(got), *to_offset)
                                : hook::write(to, room, static_cast<std::size_t>(got));
    const ssize_t put = std::max<ssize_t>(0, last);
    if (from_offset != nullptr)
      *from_offset += put;
    else if (put < got)
      (void)hook::lseek(from, put - got, SEEK_CUR);
    if (to_offset != nullptr) *to_offset += put;
    done += static_cast<std::size_t>(put);
    if (last < got) break;
  }
  const int seen = errno;
  if (large != MAP_FAILED) ::munmap(large, step_bytes);
  if (done == 0 && last < 0) {
    errno = seen;
    return -1;
  }
  errno = before;
  return static_cast<ssize_t>(done);
}

/// The function of a SIGEV_THREAD request and its argument. The new thread copies them, because the request may be gone
/// when it calls the function.
struct Notice {
  explicit Notice(const sigevent& event) : call(event.sigev_notify_function), value(event.sigev_value) {}
  void (*call)(sigval);
  sigval value;
  std::atomic<bool> is_taken{false};
};

void* call_notified(void* argument) {
  auto* const notice = static_cast<Notice*>(argument);
  const auto call = notice->call;
  const sigval value = notice->value;
  notice->is_taken.store(true, std::memory_order_release);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // as libc's own
  call(value);
  return nullptr;
}

/// Calls the program's function in a thread of its own, since the caller may hold a lock that the function takes. As in
/// libc it is detached unless the program's attributes say otherwise. Returns an error number.
int notify_in_thread(const sigevent& event) {
  pthread_attr_t usual;
  if (const int failure = ::pthread_attr_init(&usual); failure != 0) return failure;
  (void)::pthread_attr_setdetachstate(&usual, PTHREAD_CREATE_DETACHED);
  const auto* const attributes = static_cast<const pthread_attr_t*>(event.sigev_notify_attributes);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Notice notice(event);
  pthread_t thread{};
  const int failure = ::pthread_create(&thread, attributes != nullptr ? attributes : &usual, call_notified, &notice);
  while (failure == 0 && !notice.is_taken.load(std::memory_order_acquire)) wait_a_moment();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&usual);
  return failure;
}

void notify(const sigevent& event) {
  if (event.sigev_notify == SIGEV_SIGNAL) (void)::sigqueue(::getpid(), event.sigev_signo, event.sigev_value);
  if (event.sigev_notify == SIGEV_THREAD && event.sigev_notify_function != nullptr) (void)notify_in_thread(event);
}

/// Completes a request at once. Stores its result where libc's aio_error() and aio_return() read it.
int finish(aiocb& request, ssize_t done) {
  request.__error_code = done < 0 ? errno : 0;
  request.__return_value = done;
  notify(request.aio_sigevent);
  return 0;
}

int read_now(aiocb& request) {
  const CancellationOff uncancelled;
  const int before = errno;
  (void)finish(request, hook::pread(request.aio_fildes, const_cast<void*>(request.aio_buf), request.aio_nbytes,
                                    request.aio_offset));
  errno = before;
  return 0;
}

int write_now(aiocb& request) {
  const CancellationOff uncancelled;
  const int before = errno;
  (void)finish(request, hook::pwrite(request.aio_fildes, const_cast<const void*>(request.aio_buf), request.aio_nbytes,
                                     request.aio_offset));
  errno = before;
  return 0;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

void* hook::mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_ANONYMOUS) != 0 || !is_ours(fd)) return real().mmap(at, length, protection, flags, fd, offset);
  if (is_ordinary_to_map(fd, length, flags, offset)) return real().mmap(at, length, protection, flags, fd, offset);
  return map_copy(fd, at, length, protection, flags, offset);
}

ssize_t hook::sendfile(int to, int from, off_t* offset, size_t count) {
  if (!is_ours(to) && !is_ours(from))
    return unless_full(to, 0, [&] { return real().sendfile(to, from, offset, count); });
  if (const int failure = is_there(offset) ? transfer_refusal(from, to, EINVAL) : EFAULT; failure != 0) {
    errno = failure;
    return -1;
  }
  return copy(from, offset, to, nullptr, std::min<size_t>(count, 0x7ffff000));
}

ssize_t hook::copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count,
                              unsigned flags) {
  if (!is_ours(to) && !is_ours(from))
    return unless_full(to, 0, [&] { return real().copy_file_range(from, from_offset, to, to_offset, count, flags); });
  ::pthread_testcancel();
  const auto place = [](int fd, const off64_t* given) {
    return given != nullptr ? *given : hook::lseek(fd, 0, SEEK_CUR);
  };
  int failure = flags != 0 ? EINVAL : transfer_refusal(from, to, EBADF);
  if (!is_there(from_offset) || !is_there(to_offset)) failure = EFAULT;
  struct stat status {};
  if (failure == 0 && !is_ours(to) && (hook::fstat(to, &status) != 0 || !S_ISREG(status.st_mode))) failure = EINVAL;
  if (failure == 0) {
    const off64_t begin = place(from, from_offset), end = place(to, to_offset);
    if (begin < 0 || end < 0) failure = EOVERFLOW;
    if (failure == 0 && overlap(from, begin, to, end, count)) failure = EINVAL;
  }
  if (failure != 0) {
    errno = failure;
    return -1;
  }
  return copy(from, from_offset, to, to_offset, std::min<size_t>(count, 0x7ffff000));
}

ssize_t hook::splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count, unsigned flags) {
  if (!is_ours(to) && !is_ours(from)) return real().splice(from, from_offset, to, to_offset, count, flags);
  ::pthread_testcancel();
  errno = EINVAL;  // programs then fall back to read(2) and write(2)
  return -1;
}

int hook::aio_read(aiocb* request) {
  return request != nullptr && is_ours(request->aio_fildes) ? read_now(*request) : real().aio_read(request);
}
int hook::aio_write(aiocb* request) {
  return request != nullptr && is_ours(request->aio_fildes) ? write_now(*request) : real().aio_write(request);
}
int hook::aio_fsync(int operation, aiocb* request) {
  if (request == nullptr || !is_ours(request->aio_fildes)) return real().aio_fsync(operation, request);
  const CancellationOff uncancelled;
  const int before = errno;
  (void)finish(*request, hook::fsync(request->aio_fildes));
  errno = before;
  return 0;
}
int hook::aio_cancel(int fd, aiocb* request) { return is_ours(fd) ? AIO_ALLDONE : real().aio_cancel(fd, request); }

int hook::lio_listio(int mode, aiocb* const* requests, int count, sigevent* event) {
  bool has_ours = false, has_others = false;
  for (int n = 0; n < count; ++n)
    if (requests[n] != nullptr) (is_ours(requests[n]->aio_fildes) ? has_ours : has_others) = true;
  if (!has_ours) return real().lio_listio(mode, requests, count, event);
  bool has_failed = false;
  for (int n = 0; n < count; ++n) {
    aiocb* const request = requests[n];
    if (request == nullptr || !is_ours(request->aio_fildes)) continue;
    if (request->aio_lio_opcode == LIO_READ) (void)read_now(*request);
    if (request->aio_lio_opcode == LIO_WRITE) (void)write_now(*request);
    has_failed = has_failed || request->__error_code != 0;
  }
  if (has_others) {
    constexpr int most = 1024;
    if (count > most) {
      errno = EINVAL;
      return -1;
    }
    auto** const others = static_cast<aiocb**>(__builtin_alloca(static_cast<std::size_t>(count) * sizeof(aiocb*)));
    for (int n = 0; n < count; ++n)
      others[n] = requests[n] != nullptr && !is_ours(requests[n]->aio_fildes) ? requests[n] : nullptr;
    if (real().lio_listio(mode, others, count, event) != 0) return -1;
  } else if (event != nullptr && mode == LIO_NOWAIT) {
    notify(*event);
  }
  if (!has_failed || mode == LIO_NOWAIT) return 0;
  errno = EIO;
  return -1;
}
