// Calls on the data of an open file: read(2), write(2), lseek(2), fsync(2), ftruncate(2), fallocate(2),
// posix_fadvise(2), readahead(2) and their variants.

#include <pthread.h>

#include <cerrno>

#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/hooks/full.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/inline.h"
#include "preload/hooks/real.h"

using namespace iosig::preload;
using hook_inline::is_place;

ssize_t hook::read(int fd, void* bytes, size_t count) { return hook_inline::read(fd, bytes, count); }
ssize_t hook::write(int fd, const void* bytes, size_t count) { return hook_inline::write(fd, bytes, count); }
ssize_t hook::pread(int fd, void* bytes, size_t count, off_t offset) {
  return hook_inline::pread(fd, bytes, count, offset);
}
ssize_t hook::pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return hook_inline::pwrite(fd, bytes, count, offset);
}

// The checked variants that _FORTIFY_SOURCE calls.
ssize_t hook::__read_chk(int fd, void* bytes, size_t count, size_t room) {
  if (count > room) __builtin_trap();
  return hook::read(fd, bytes, count);
}
ssize_t hook::__pread_chk(int fd, void* bytes, size_t count, off_t offset, size_t room) {
  if (count > room) __builtin_trap();
  return hook::pread(fd, bytes, count, offset);
}

ssize_t hook::readv(int fd, const iovec* parts, int count) {
  if (!is_ours(fd)) return real().readv(fd, parts, count);
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) { return get_parts(file, parts, count, at_file_offset); });
}
ssize_t hook::writev(int fd, const iovec* parts, int count) {
  if (!is_ours(fd)) return unless_full(fd, 0, [&] { return real().writev(fd, parts, count); });
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) { return put_parts(file, parts, count, at_file_offset); });
}
ssize_t hook::preadv(int fd, const iovec* parts, int count, off_t offset) {
  if (!is_ours(fd)) return real().preadv(fd, parts, count, offset);
  if (!is_place(offset)) return -1;
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) { return get_parts(file, parts, count, offset); });
}
ssize_t hook::pwritev(int fd, const iovec* parts, int count, off_t offset) {
  if (!is_ours(fd)) return unless_full(fd, 0, [&] { return real().pwritev(fd, parts, count, offset); });
  if (!is_place(offset)) return -1;
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) { return put_parts(file, parts, count, offset); });
}

// The offset -1 means the file offset. RWF_HIPRI is a hint and ignored, RWF_DSYNC and RWF_SYNC flush, and all other
// flags fail with EOPNOTSUPP.
ssize_t hook::preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (!is_ours(fd)) return real().preadv2(fd, parts, count, offset, flags);
  if ((flags & ~(RWF_HIPRI)) != 0 || offset < -1) {
    errno = offset < -1 ? EINVAL : EOPNOTSUPP;
    return -1;
  }
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) { return get_parts(file, parts, count, offset); });
}
ssize_t hook::pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (!is_ours(fd)) return unless_full(fd, 0, [&] { return real().pwritev2(fd, parts, count, offset, flags); });
  if ((flags & ~(RWF_HIPRI | RWF_DSYNC | RWF_SYNC)) != 0 || offset < -1) {
    errno = offset < -1 ? EINVAL : EOPNOTSUPP;
    return -1;
  }
  return with_open_file_or_cancelled(fd, [&](OpenFile& file) {
    const std::int64_t done = put_parts(file, parts, count, offset);
    if (done <= 0 || (flags & (RWF_DSYNC | RWF_SYNC)) == 0) return done;
    const int failure = sync(file);
    return failure != 0 ? std::int64_t{-failure} : done;
  });
}

off_t hook::lseek(int fd, off_t offset, int whence) {
  if (!is_ours(fd)) return real().lseek(fd, offset, whence);
  const off_t done = with_open_file(fd, [&](OpenFile& file) { return seek(file, offset, whence); });
  return done < 0 && is_ordinary_now(fd) ? real().lseek(fd, offset, whence) : done;
}

int hook::fsync(int fd) {
  if (!is_ours(fd)) return real().fsync(fd);
  ::pthread_testcancel();
  return with_ready_file(fd, [](OpenFile& file) { return -file.container->writers().sync(); });
}
int hook::fdatasync(int fd) {
  if (!is_ours(fd)) return real().fdatasync(fd);
  ::pthread_testcancel();
  return with_ready_file(fd, [](OpenFile& file) { return -file.container->writers().sync(); });
}
int hook::syncfs(int fd) {
  if (!is_ours(fd)) return real().syncfs(fd);
  return with_ready_file(fd, [](OpenFile& file) {
    const int failure = file.container->writers().sync();
    return failure != 0 || real().syncfs(file.directory) == 0 ? -failure : -errno;
  });
}
int hook::sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags) {
  if (!is_ours(fd)) return real().sync_file_range(fd, offset, count, flags);
  ::pthread_testcancel();
  return with_ready_file(fd, [](OpenFile& file) { return -file.container->writers().sync(); });
}

int hook::ftruncate(int fd, off_t size) {
  if (!is_ours(fd)) return real().ftruncate(fd, size);
  return static_cast<int>(with_open_file(fd, [&](OpenFile& file) -> std::int64_t {
    if (size < 0 || !file.writes()) return -EINVAL;
    if (const int failure = make_writer(file); failure != 0) return -failure;
    return -run_isolated_step([&] { return file.container->truncate(file.writer, size); });
  }));
}

int hook::fallocate(int fd, int mode, off_t offset, off_t length) {
  if (!is_ours(fd)) return unless_full(fd, length, [&] { return real().fallocate(fd, mode, offset, length); });
  return static_cast<int>(with_open_file_or_cancelled(fd, [&](OpenFile& file) -> std::int64_t {
    if (offset < 0 || length <= 0) return -EINVAL;
    if (!file.writes()) return -EBADF;
    if (const int failure = make_writer(file); failure != 0) return -failure;
    return -run_isolated_step([&] { return file.container->allocate(*file.writer, mode, offset, length); });
  }));
}
// These return the error number instead of setting errno.
int hook::posix_fallocate(int fd, off_t offset, off_t length) {
  if (!is_ours(fd)) {
    const int failure = real().posix_fallocate(fd, offset, length);
    return failure != 0 && has_moved(fd, failure, length) ? real().posix_fallocate(fd, offset, length) : failure;
  }
  const int before = errno;
  const int failure = hook::fallocate(fd, 0, offset, length) == 0 ? 0 : errno;
  errno = before;
  return failure;
}
int hook::posix_fadvise(int fd, off_t offset, off_t length, int advice) {
  if (!is_ours(fd)) return real().posix_fadvise(fd, offset, length, advice);
  return length < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE ? EINVAL : 0;
}
ssize_t hook::readahead(int fd, off64_t offset, size_t count) {
  if (!is_ours(fd)) return real().readahead(fd, offset, count);
  return with_ready_file(fd, [](OpenFile& file) { return file.reads() ? 0 : -EBADF; });
}
