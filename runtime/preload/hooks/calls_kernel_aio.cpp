// libaio: requests that the kernel carries out while the program goes on.
//
// A request on a container is carried out here, before the program goes on. Its completion still comes from the kernel,
// so that every way to learn of it works: io_getevents, an eventfd, and programs that read the ring themselves. For
// that the kernel is given, in the program's own request, a write to /dev/null of as many bytes as were moved.
//
// Programs that call syscall(SYS_io_submit) themselves come past this library, and get an error from the kernel.

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
#include "preload/hooks/program.h"
#include "preload/hooks/real.h"

namespace iosig::preload {
namespace {

constexpr std::size_t max_batch = 64;  ///< requests that are given to the kernel at once

/// As read(2) and write(2): the value, or -errno.
std::int64_t carry_out(const iocb& request) {
  constexpr unsigned known_flags = IOCB_FLAG_RESFD | IOCB_FLAG_IOPRIO;
  const auto fd = static_cast<int>(request.aio_fildes);
  const bool is_sync = request.aio_lio_opcode == IOCB_CMD_FSYNC || request.aio_lio_opcode == IOCB_CMD_FDSYNC;
  if (request.aio_reserved2 != 0 || (request.aio_flags & ~known_flags) != 0) return -EINVAL;
  if (!is_sync && request.aio_offset < 0) return -EINVAL;
  // NOLINTBEGIN(performance-no-int-to-ptr): the kernel's struct has them so
  const iovec whole{reinterpret_cast<void*>(request.aio_buf), request.aio_nbytes};
  const bool has_parts = request.aio_lio_opcode == IOCB_CMD_PREADV || request.aio_lio_opcode == IOCB_CMD_PWRITEV;
  const auto* const parts = has_parts ? reinterpret_cast<const iovec*>(request.aio_buf) : &whole;
  // NOLINTEND(performance-no-int-to-ptr)
  const int count = has_parts ? static_cast<int>(std::min<std::uint64_t>(request.aio_nbytes, INT32_MAX)) : 1;
  ssize_t done = -1;
  switch (request.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV: done = program_preadv2(fd, parts, count, request.aio_offset, request.aio_rw_flags); break;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV: done = program_pwritev2(fd, parts, count, request.aio_offset, request.aio_rw_flags); break;
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC: done = program_fsync(fd); break;
    default: errno = EINVAL;
  }
  return done < 0 ? -errno : done;
}

/// The devices that say what came of a request, opened when they are needed.
class Devices {
 public:
  Devices() = default;
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices() {
    if (null_ >= 0) ::close(null_);
    if (full_ >= 0) ::close(full_);
  }
  /// Takes every byte. -1 with errno.
  int null() { return opened(null_, "/dev/null"); }
  /// Has room for none.
  int full() { return opened(full_, "/dev/full"); }

 private:
  static int opened(int& fd, const char* path) { return fd >= 0 ? fd : fd = ::open(path, O_WRONLY | O_CLOEXEC); }
  int null_ = -1, full_ = -1;
};

/// Makes of `request` a write to a device, so that the kernel says that `done` bytes were moved or, for ENOSPC, that
/// there was no room.
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

/// As the system call for at most max_batch requests, of which some are on containers: how many were taken, or -errno.
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
    // An event can tell of ENOSPC. Every other failure is told at once, as the kernel tells EBADF and EINVAL.
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
    const auto key = request.aio_key;  // the kernel writes it
    request = given[static_cast<std::size_t>(n)];
    request.aio_key = key;
  }
  if (ready == 0) return refusal;
  return taken;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

extern "C" {

/// Of libaio, which gives -errno and leaves errno alone.
int io_submit(aio_context_t context, long count, iocb** requests) {
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

}  // extern "C"
