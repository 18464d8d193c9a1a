// libaio: asynchronous requests that the kernel executes.
//
// A request on a container is executed here, synchronously. The kernel still delivers its completion, because programs
// learn of completions in several ways: through io_getevents, through an eventfd, or by reading the ring themselves.
// For this the program's request is replaced by a write of the same number of bytes to /dev/null.
//
// Programs that call syscall(SYS_io_submit) directly bypass this library and get an error from the kernel.

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "preload/files/open_file.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"

namespace iosig::preload {
namespace {

constexpr std::size_t max_batch = 32;  ///< requests submitted to the kernel at once

/// Executes a request. Returns the result of read(2) or write(2), or -errno.
std::int64_t carry_out(const iocb& request) {
  constexpr unsigned known_flags = IOCB_FLAG_RESFD | IOCB_FLAG_IOPRIO;
  const auto fd = static_cast<int>(request.aio_fildes);
  const bool is_sync = request.aio_lio_opcode == IOCB_CMD_FSYNC || request.aio_lio_opcode == IOCB_CMD_FDSYNC;
  if (request.aio_reserved2 != 0 || (request.aio_flags & ~known_flags) != 0) return -EINVAL;
  if (!is_sync && request.aio_offset < 0) return -EINVAL;
  // NOLINTBEGIN(performance-no-int-to-ptr): the kernel's struct stores pointers as integers
  const iovec whole{reinterpret_cast<void*>(request.aio_buf), request.aio_nbytes};
  const bool has_parts = request.aio_lio_opcode == IOCB_CMD_PREADV || request.aio_lio_opcode == IOCB_CMD_PWRITEV;
  const auto* const parts = has_parts ? reinterpret_cast<const iovec*>(request.aio_buf) : &whole;
  // NOLINTEND(performance-no-int-to-ptr)
  const int count = has_parts ? static_cast<int>(std::min<std::uint64_t>(request.aio_nbytes, INT32_MAX)) : 1;
  ssize_t done = -1;
  switch (request.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV: done = hook::preadv2(fd, parts, count, request.aio_offset, request.aio_rw_flags); break;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV: done = hook::pwritev2(fd, parts, count, request.aio_offset, request.aio_rw_flags); break;
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC: done = hook::fsync(fd); break;
    default: errno = EINVAL;
  }
  return done < 0 ? -errno : done;
}

/// The devices through which the kernel reports the result of a request. Opened when first needed.
class Devices {
 public:
  Devices() = default;
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices() {
    if (null_ >= 0) ::close(null_);
    if (full_ >= 0) ::close(full_);
  }
  /// Accepts all bytes. Returns -1 with errno on failure.
  int null() { return opened(null_, "/dev/null"); }
  /// Fails every write with ENOSPC. Returns -1 with errno on failure.
  int full() { return opened(full_, "/dev/full"); }

 private:
  static int opened(int& fd, const char* path) { return fd >= 0 ? fd : fd = ::open(path, O_WRONLY | O_CLOEXEC); }
  int null_ = -1, full_ = -1;
};

/// Replaces `request` by a write to a device. Its completion reports that `done` bytes were moved, or ENOSPC if `done`
/// is negative.
bool write_to_device(iocb& request, std::int64_t done, Devices& devices) {
  const int device = done >= 0 ? devices.null() : devices.full();
  if (device < 0) return false;
  request.aio_fildes = static_cast<std::uint32_t>(device);
  request.aio_lio_opcode = IOCB_CMD_PWRITE;
  request.aio_nbytes = done >= 0 ? static_cast<std::uint64_t>(done) : 1;
  request.aio_offset = 0;
  request.aio_rw_flags = 0;
  return true;
}

/// Submits at most max_batch requests, some of which are on containers. Returns, like the system call, the number of
/// submitted requests; or -errno.
long submit(aio_context_t context, long count, iocb** requests) {
  std::array<iocb, max_batch> given;
  Devices devices;
  long refusal = 0, ready = 0;
  for (; ready < count; ++ready) {
    if (requests[ready] == nullptr) {
      refusal = -EFAULT;
      break;
    }
    iocb& request = *requests[ready];
    given[static_cast<std::size_t>(ready)] = request;
    if (!is_ours(static_cast<int>(request.aio_fildes))) continue;
    const std::int64_t done = carry_out(request);
    // ENOSPC can be reported in the completion event. All other errors are returned at once, as the kernel does for
    // EBADF and EINVAL.
    if (done < 0 && done != -ENOSPC) refusal = done;
    if (refusal == 0 && !write_to_device(request, done, devices)) refusal = -errno;
    if (refusal != 0) break;
  }
  long taken = 0;
  if (ready > 0) {
    taken = ::syscall(SYS_io_submit, context, ready, requests);
    if (taken < 0) taken = -errno;
  }
  for (long n = 0; n < ready; ++n) {
    iocb& request = *requests[n];
    const auto key = request.aio_key;  // written by the kernel
    request = given[static_cast<std::size_t>(n)];
    request.aio_key = key;
  }
  if (ready == 0) return refusal;
  return taken;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

/// The function of libaio, which returns -errno and leaves errno unchanged.
int hook::io_submit(aio_context_t context, long count, iocb** requests) {
  const CancellationOff uncancelled;
  const int before = errno;
  bool has_ours = false;
  for (long n = 0; n < count && requests != nullptr && !has_ours; ++n)
    has_ours = requests[n] != nullptr && is_ours(static_cast<int>(requests[n]->aio_fildes));
  long taken = 0;
  if (!has_ours) {
    taken = ::syscall(SYS_io_submit, context, count, requests);
    if (taken < 0) taken = -errno;
  }
  while (has_ours && taken < count) {
    const long wanted = std::min(count - taken, static_cast<long>(max_batch));
    const long more = submit(context, wanted, requests + taken);
    if (more < 0 && taken == 0) taken = more;
    if (more > 0) taken += more;
    if (more < wanted) break;
  }
  errno = before;
  return static_cast<int>(taken);
}
