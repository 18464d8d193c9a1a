#include "preload/files/data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "iosig/base/size_limit.h"
#include "preload/files/answer.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"

namespace iosig::preload {
namespace {

constexpr std::size_t max_bytes = 0x7ffff000;  ///< limit of one call, the same as the kernel's

std::atomic<bool> is_exiting{false};

std::int64_t total_of(const iovec* parts, int count) {
  if (count < 0 || count > IOV_MAX) return -EINVAL;
  const std::size_t array_bytes = static_cast<std::size_t>(count) * sizeof *parts;
  if (readable_bytes(parts, array_bytes) < array_bytes) return -EFAULT;
  std::size_t total = 0;
  for (int n = 0; n < count; ++n) {
    if (parts[n].iov_len > SSIZE_MAX - total) return -EINVAL;
    total += parts[n].iov_len;
  }
  return static_cast<std::int64_t>(std::min(total, max_bytes));
}

std::span<std::byte> bytes_of(const iovec& part) { return {static_cast<std::byte*>(part.iov_base), part.iov_len}; }

/// Returns how many of `length` bytes at `begin` RLIMIT_FSIZE allows, by the kernel's rules: at least one, or -EFBIG.
/// For an append, the bytes begin at the end of the file.
std::int64_t within_size_limit(OpenFile& file, int flags, std::int64_t begin, std::int64_t length) {
  if (!has_size_limit()) return length;
  const std::int64_t limit = read_size_limit();
  if ((flags & O_APPEND) != 0) {
    struct stat status {};
    if (const int failure = run_isolated_step([&] { return file.container->status().get(status, 0); }); failure != 0)
      return -failure;
    begin = status.st_size;
  }
  return begin >= limit ? -EFBIG : std::min(length, limit - begin);
}

/// Writes at `offset`, or appends and sets `offset` to the position of the bytes.
std::int64_t put_at(OpenFile& file, int flags, std::span<const std::byte> bytes, std::int64_t& offset) {
  const std::int64_t allowed = within_size_limit(file, flags, offset, static_cast<std::int64_t>(bytes.size()));
  if (allowed < 0) return allowed;
  bytes = bytes.first(static_cast<std::size_t>(allowed));
  const std::int64_t done = file.container->writers().write(*file.writer, offset, bytes, (flags & O_APPEND) != 0);
  if (done > 0 && (flags & (O_SYNC | O_DSYNC)) != 0)
    if (const int failure = sync(file); failure != 0) return -failure;
  if (is_exiting.load(std::memory_order_relaxed))
    (void)run_isolated_step([&] { return file.container->writers().close_all(); });
  return done;
}

/// Writes at the file offset, or appends, and moves the file offset.
std::int64_t put_at_own(OpenFile& file, int flags, std::span<const std::byte> bytes) {
  std::atomic<std::int64_t>& own = file.shared->offset;
  if ((flags & O_APPEND) != 0) {
    std::int64_t offset = 0;
    const std::int64_t done = put_at(file, flags, bytes, offset);
    if (done >= 0) own = offset + done;
    return done;
  }
  // Reserves the byte range for this call by moving the file offset. Concurrent calls write behind the range.
  const auto length = static_cast<std::int64_t>(bytes.size());
  std::int64_t begin = own.load(std::memory_order_relaxed);
  do {
    if (begin > INT64_MAX - length) return -EFBIG;
  } while (!own.compare_exchange_weak(begin, begin + length));
  std::int64_t offset = begin;
  const std::int64_t done = put_at(file, flags, bytes, offset);
  if (done < length) {
    std::int64_t expected = begin + length;
    (void)own.compare_exchange_strong(expected, begin + std::max<std::int64_t>(0, done));
  }
  return done;
}

std::int64_t get_at(const OpenFile& file, std::span<std::byte> bytes, std::int64_t offset) {
  std::int64_t done = file.container->view().read_if_known(offset, bytes);
  if (done != -EAGAIN) return done;
  const int failure = run_isolated_step([&] {
    done = file.container->view().read(offset, bytes, IfLost::stop);
    return 0;
  });
  return failure != 0 ? -failure : done;
}

}  // namespace

void begin_exit() { is_exiting = true; }

std::int64_t put(OpenFile& file, std::span<const std::byte> bytes, std::int64_t offset) {
  const int flags = file.flags();
  if (!file.writes()) return -EBADF;
  if (bytes.size() > max_bytes) bytes = bytes.first(max_bytes);
  if (bytes.empty()) return 0;
  if (const int failure = make_writer(file); failure != 0) return -failure;
  if (offset == at_file_offset) return put_at_own(file, flags, bytes);
  return put_at(file, flags, bytes, offset);
}

std::int64_t get(OpenFile& file, std::span<std::byte> bytes, std::int64_t offset) {
  if (!file.reads()) return -EBADF;
  if (bytes.size() > max_bytes) bytes = bytes.first(max_bytes);
  if (const int failure = make_ready(file); failure != 0) return -failure;
  if (bytes.empty()) return 0;
  if (offset != at_file_offset) return get_at(file, bytes, offset);
  std::atomic<std::int64_t>& own = file.shared->offset;
  for (std::int64_t begin = own.load();;) {
    if (begin > INT64_MAX - static_cast<std::int64_t>(bytes.size()))
      bytes = bytes.first(static_cast<std::size_t>(INT64_MAX - begin));
    const std::int64_t done = get_at(file, bytes, begin);
    if (done <= 0 || own.compare_exchange_strong(begin, begin + done)) return done;
  }
}

ssize_t read_from(int fd, std::span<std::byte> bytes, off_t offset) {
  const ssize_t done = with_open_file_or_cancelled(fd, [&](OpenFile& file) { return get(file, bytes, offset); });
  if (done >= 0 || !is_ordinary_now(fd)) [[likely]]
    return done;
  return offset == at_file_offset ? real().read(fd, bytes.data(), bytes.size())
                                  : real().pread(fd, bytes.data(), bytes.size(), offset);
}

ssize_t write_to(int fd, std::span<const std::byte> bytes, off_t offset) {
  const ssize_t done = with_open_file_or_cancelled(fd, [&](OpenFile& file) { return put(file, bytes, offset); });
  if (done >= 0 || !is_ordinary_now(fd)) [[likely]]
    return done;
  return offset == at_file_offset ? real().write(fd, bytes.data(), bytes.size())
                                  : real().pwrite(fd, bytes.data(), bytes.size(), offset);
}

std::int64_t put_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset) {
  const std::int64_t total = total_of(parts, count);
  if (total < 0) return total;
  if (count == 1) return put(file, bytes_of(parts[0]), offset);
  std::int64_t done = 0;
  std::vector<std::byte> all;
  const int failure = run_isolated_step([&] {
    all.reserve(static_cast<std::size_t>(total));
    return 0;
  });
  if (failure != 0) return -failure;
  bool is_whole = true;
  for (int n = 0; n < count && is_whole; ++n) {
    const std::size_t wanted = std::min(parts[n].iov_len, static_cast<std::size_t>(total) - all.size());
    const auto part = bytes_of(parts[n]).first(readable_bytes(parts[n].iov_base, wanted));
    is_whole = part.size() == wanted;
    all.insert(all.end(), part.begin(), part.end());
  }
  done = all.empty() && !is_whole && file.writes() ? -EFAULT : put(file, all, offset);
  (void)run_isolated_step([&] {
    all = {};
    return 0;
  });
  return done;
}

std::int64_t get_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset) {
  const std::int64_t total = total_of(parts, count);
  if (total < 0) return total;
  if (count == 1) return get(file, bytes_of(parts[0]), offset);
  std::int64_t done = 0;
  for (int n = 0; n < count; ++n) {
    const auto part = bytes_of(parts[n]);
    const std::int64_t got = get(file, part, offset == at_file_offset ? offset : offset + done);
    if (got < 0) return done > 0 ? done : got;
    done += got;
    if (got < static_cast<std::int64_t>(part.size())) break;
  }
  return done;
}

std::int64_t end_of(OpenFile& file) {
  if (const int failure = make_ready(file); failure != 0) return -failure;
  struct stat status {};
  const int failure = run_isolated_step([&] { return file.container->status().get(status, 1); });
  return failure != 0 ? -failure : status.st_size;
}

std::int64_t seek(OpenFile& file, std::int64_t offset, int whence) {
  std::atomic<std::int64_t>& own = file.shared->offset;
  const auto offset_from = [&](std::int64_t base) -> std::int64_t {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(base, offset, &sum)) return -EOVERFLOW;
    return sum < 0 ? -EINVAL : sum;
  };
  std::int64_t sought = -EINVAL;
  switch (whence) {
    case SEEK_SET: sought = offset; break;
    case SEEK_CUR: {  // another thread or process may write meanwhile: its write must move the offset, too
      std::int64_t base = own;
      do {
        sought = offset_from(base);
      } while (sought >= 0 && offset != 0 && !own.compare_exchange_weak(base, sought));
      return sought;
    }
    case SEEK_END: {
      const std::int64_t end = end_of(file);
      sought = end < 0 ? end : offset_from(end);
      break;
    }
    case SEEK_DATA:
    case SEEK_HOLE: {
      if (const int failure = make_ready(file); failure != 0) return -failure;
      const int failure = run_isolated_step([&] {
        sought = file.container->view().seek(offset, whence);
        return 0;
      });
      if (failure != 0) return -failure;
      break;
    }
    default: break;
  }
  if (sought < 0) return whence == SEEK_SET ? -EINVAL : sought;
  return own = sought;
}

int sync(OpenFile& file) {
  return run_isolated_step([&] { return file.container->writers().sync(); });
}

}  // namespace iosig::preload
