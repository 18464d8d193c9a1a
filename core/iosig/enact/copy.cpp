#include "iosig/enact/copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <string>
#include <system_error>
#include <vector>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::size_t copied_piece_bytes = 4u << 20;
constexpr std::size_t buffer_bytes = 256u << 10;  ///< two of them fit the second-level cache
constexpr off_t flushed_bytes = 16 << 20;

tl::unexpected<Error> failure(const char* doing) {
  const ErrorKind kind = errno == ENOSPC || errno == EDQUOT ? ErrorKind::infeasible : ErrorKind::system;
  return fail(kind, "cannot {} the data: {}", doing, std::generic_category().message(errno));
}

/// Reads until `length` bytes or end of file.
ssize_t read_fully(int fd, char* into, std::size_t length, off_t at) {
  std::size_t got = 0;
  while (got < length) {
    const ssize_t n = ::pread(fd, into + got, length - got, at + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

/// Returns the offset of the next data that are not a hole; `size` if only a hole remains.
off_t next_data(int fd, off_t at, off_t size) {
  const off_t begin = ::lseek(fd, at, SEEK_DATA);
  if (begin >= 0) return std::min(begin, size);
  return errno == ENXIO ? size : at;  // some file systems do not report holes
}

bool write_fully(int fd, const char* from, std::size_t length, off_t at) {
  for (std::size_t put = 0; put < length;) {
    const ssize_t n = ::pwrite(fd, from + put, length - put, at + static_cast<off_t>(put));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    put += static_cast<std::size_t>(n);
  }
  return true;
}

bool same_version(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

tl::unexpected<Error> still_written() {
  return fail(ErrorKind::infeasible, "the data changed while they were copied: a program still writes them");
}

std::int64_t unix_ns_of(const statx_timestamp& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// Nothing: the file system does not tell when files were born, so a copy cannot be recognized.
std::optional<PartialCopy> identify(const Fd& data, const Fd& copy) {
  struct statx original {
  }, its{};
  if (::statx(data.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &original) != 0 ||
      ::statx(copy.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &its) != 0 ||
      (its.stx_mask & STATX_BTIME) == 0)
    return {};
  return PartialCopy{std::uint64_t{its.stx_dev_major} << 32 | its.stx_dev_minor,
                     its.stx_ino,
                     unix_ns_of(its.stx_btime),
                     original.stx_ino,
                     original.stx_size,
                     unix_ns_of(original.stx_mtime),
                     unix_ns_of(original.stx_ctime)};
}

/// Copies the pieces of one file.
class Copier {
 public:
  Copier(int from, int to, Verify verify, bool is_partial)
      : from_(from), to_(to), verifies_(verify == Verify::copy), resumes_(is_partial) {}

  /// Returns the number of bytes copied, at most `length`; 0: end of file; -1: errno.
  ssize_t copy(off_t at, std::size_t length) {
    if (by_kernel()) {
      off_t from_at = at, to_at = at;
      const ssize_t moved = ::copy_file_range(from_, &from_at, to_, &to_at, std::min(length, copied_piece_bytes), 0);
      if (moved > 0) return moved;
      is_refused_ = true;  // as the kernel often does between file systems; at end of file, the read below finds it
    }
    length = std::min(length, buffer_bytes);
    if (written_.size() < length) written_.resize(length);
    const ssize_t got = read_fully(from_, written_.data(), length, at);
    if (got <= 0) return got;
    const auto bytes = static_cast<std::size_t>(got);
    if (resumes_) {
      const auto same = is_as_read(bytes, at);
      if (!same) return -1;
      if (*same) return got;
      resumes_ = false;  // the killed run came this far
    }
    if (!write_fully(to_, written_.data(), bytes, at)) return -1;
    if (!verifies_) return got;
    const auto same = is_as_read(bytes, at);
    if (!same) return -1;
    differs_ = !*same;
    return got;
  }
  /// Whether the kernel has copied all pieces so far.
  [[nodiscard]] bool by_kernel() const { return !verifies_ && !resumes_ && !is_refused_; }
  /// Whether the last piece, when it was read back, was not as it was written.
  [[nodiscard]] bool differs() const { return differs_; }

 private:
  /// Whether the copy has the bytes of `written_`. Nothing: it cannot be read (errno).
  std::optional<bool> is_as_read(std::size_t bytes, off_t at) {
    if (read_back_.size() < bytes) read_back_.resize(bytes);
    const ssize_t got = read_fully(to_, read_back_.data(), bytes, at);
    if (got < 0) return {};
    return static_cast<std::size_t>(got) == bytes && std::memcmp(written_.data(), read_back_.data(), bytes) == 0;
  }

  int from_, to_;
  bool verifies_, resumes_, is_refused_ = false, differs_ = false;
  std::vector<char> written_, read_back_;
};

/// Starts to flush what was just copied, so the device works while the rest is copied. `is_gentle`: waits for the
/// device, then drops the pages of both files.
///
/// **A failed flush is told once: sync_file_range() that waits takes the error away from the fsync() at the end**,
/// which would then succeed over data that were never stored. So it is an error here.
Result<void> flush_piece(int from, int to, off_t at, off_t length, bool is_gentle) {
  const unsigned flags = is_gentle ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
                                   : SYNC_FILE_RANGE_WRITE;
  const bool is_unsupported = ::sync_file_range(to, at, length, flags) != 0;
  if (is_unsupported && errno != EINVAL && errno != ENOSYS && errno != ESPIPE && errno != EOPNOTSUPP)
    return failure("flush");
  if (!is_gentle) return {};
  (void)::posix_fadvise(to, at, length, POSIX_FADV_DONTNEED);
  (void)::posix_fadvise(from, at, length, POSIX_FADV_DONTNEED);
  return {};
}

/// Starts flushes in another thread, one at a time: to give the device a piece takes as long as to compare it.
class Flusher {
 public:
  /// Waits for the flush before to be started; fails if that failed.
  Result<void> start(int from, int to, off_t at, off_t length) {
    if (auto before = finish(); !before) return before;
    const auto flush = [=] { return flush_piece(from, to, at, length, /*is_gentle=*/false); };
    try {
      started_ = std::async(std::launch::async, flush);
    } catch (const std::system_error&) {  // there is no thread to be had
      return flush();
    }
    return {};
  }
  Result<void> finish() { return started_.valid() ? started_.get() : Result<void>(); }

 private:
  std::future<Result<void>> started_;  // waits when it is destroyed
};

/// Opens the copy that a killed run began, if it is still that file and the data are those of then. A copy with the
/// attributes of the data (its mode is not 0600 any more) may have been opened by others, so it is not continued.
Fd open_partial(const Fd& data, const Place& to, const CopyOptions& options) {
  if (!options.partial) return {};
  Fd copy(::openat(to.directory.get(), to.name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!copy || ::fstat(copy.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      status.st_nlink != 1 || (status.st_mode & 07777) != 0600 || identify(data, copy) != options.partial)
    return {};
  return copy;
}

constexpr const char* access_list = "system.posix_acl_access";

/// Returns the mode for a copy that has no access control list. With one, the group's bits of the mode are the most
/// that any of the list's users and groups may do; without it, they are what the file's own group may do.
mode_t mode_without_list(int from, mode_t mode) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  constexpr std::size_t version_bytes = 4;
  constexpr std::uint16_t own_group = 0x04;  // ACL_GROUP_OBJ of linux/posix_acl.h
  std::string list(static_cast<std::size_t>(std::max<ssize_t>(0, ::fgetxattr(from, access_list, nullptr, 0))), '\0');
  if (list.empty()) return mode;
  const ssize_t size = ::fgetxattr(from, access_list, list.data(), list.size());
  for (std::size_t at = version_bytes; size > 0 && at + sizeof(Entry) <= static_cast<std::size_t>(size);
       at += sizeof(Entry)) {
    Entry entry{};
    std::memcpy(&entry, list.data() + at, sizeof entry);
    if (entry.tag == own_group) return mode & (~mode_t{S_IRWXG} | static_cast<mode_t>(entry.permissions) << 3);
  }
  return mode;
}

/// Fails if an attribute of the user's has no room at home. Others, and those that the file system does not have at
/// all, are left out, as by cp(1).
Result<void> copy_extended_attributes(int from, int to) {
  const ssize_t length = ::flistxattr(from, nullptr, 0);
  if (length <= 0) return {};
  std::string names(static_cast<std::size_t>(length), '\0');
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::flistxattr(from, names.data(), names.size()))));
  std::vector<char> value(XATTR_SIZE_MAX);
  for (std::size_t at = 0; at < names.size(); at += std::strlen(names.c_str() + at) + 1) {
    const char* name = names.c_str() + at;
    const ssize_t size = ::fgetxattr(from, name, value.data(), value.size());
    if (size < 0 || ::fsetxattr(to, name, value.data(), static_cast<std::size_t>(size), 0) == 0) continue;
    if (std::string_view(name).starts_with("user.") && errno != EOPNOTSUPP && errno != EPERM)
      return fail(ErrorKind::infeasible,
                  "its extended attribute '{}' of {} bytes cannot be copied: {}; remove it there", printable(name),
                  size, std::generic_category().message(errno));
  }
  return {};
}

}  // namespace

Result<CopyWay> copy_content(int from, int to, const CopyOptions& options, bool is_partial) {
  struct stat status {
  }, now{};
  if (::fstat(from, &status) != 0) return failure("inspect");
  if (!is_partial && ::ioctl(to, FICLONE, from) == 0) return CopyWay::shared;
  const off_t size = status.st_size;
  if (::ftruncate(to, size) != 0) return failure("make room for");
  Copier copier(from, to, options.verify, is_partial);
  Flusher flusher;
  const auto flush = [&](off_t at, off_t length) {
    return options.in_two_threads && !options.is_gentle ? flusher.start(from, to, at, length)
                                                        : flush_piece(from, to, at, length, options.is_gentle);
  };
  off_t flushed = 0;
  for (off_t at = 0; at < size;) {
    const off_t begin = next_data(from, at, size);
    if (begin == size) break;
    off_t end = ::lseek(from, begin, SEEK_HOLE);
    if (end < 0) end = size;
    for (at = begin; at < end;) {
      const ssize_t moved = copier.copy(at, static_cast<std::size_t>(end - at));
      if (moved < 0) return failure("copy");
      if (moved == 0)
        return fail(ErrorKind::infeasible,
                    "the data became shorter while they were copied: a program still writes them");
      if (copier.differs())
        return fail(ErrorKind::system,
                    "bytes {} to {} of the copy are not as they were written: the memory or the file system is faulty",
                    at, at + moved);
      at += moved;
      if (at - flushed >= flushed_bytes) {
        if (auto begun = flush(flushed, at - flushed); !begun) return pass_on(begun.error());
        flushed = at;
        // A copy that will be refused at its end is given up at once.
        if (::fstat(from, &now) != 0) return failure("inspect");
        if (!same_version(status, now)) return still_written();
      }
      if (options.progress)
        options.progress("copying", static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(size));
      if (options.pace) options.pace(static_cast<std::uint64_t>(moved));
    }
  }
  if (auto begun = flusher.finish(); !begun) return pass_on(begun.error());
  if (options.is_gentle)
    if (auto stored = flush_piece(from, to, flushed, size - flushed, true); !stored) return pass_on(stored.error());
  return copier.by_kernel() && !is_partial ? CopyWay::kernel : CopyWay::read;
}

Result<bool> same_content(int a, int b, const CopyProgress& progress) {
  struct stat status_a {
  }, status_b{};
  if (::fstat(a, &status_a) != 0 || ::fstat(b, &status_b) != 0) return failure("inspect");
  if (status_a.st_size != status_b.st_size) return false;
  std::vector<char> buffer_a(copied_piece_bytes), buffer_b(copied_piece_bytes);
  const off_t size = status_a.st_size;
  for (off_t at = 0; at < size;) {
    at = std::min(next_data(a, at, size), next_data(b, at, size));
    if (at == size) break;  // both have only a hole from here
    const ssize_t got_a = read_fully(a, buffer_a.data(), copied_piece_bytes, at);
    const ssize_t got_b = read_fully(b, buffer_b.data(), copied_piece_bytes, at);
    if (got_a < 0 || got_b < 0) return failure("read back");
    if (got_a != got_b || got_a == 0) return false;
    if (std::memcmp(buffer_a.data(), buffer_b.data(), static_cast<std::size_t>(got_a)) != 0) return false;
    at += got_a;
    if (progress) progress("verifying", static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(size));
  }
  return true;
}

Result<Copy> copy_verified(const Fd& data, const Place& to, const CopyOptions& options) {
  struct stat before {
  }, after{};
  if (::fstat(data.get(), &before) != 0) return failure("inspect");
  Copy copy{open_partial(data, to, options)};
  const Fd& file = copy.file;
  const bool is_partial = static_cast<bool>(file);
  if (!is_partial) {
    if (options.partial) ::unlinkat(to.directory.get(), to.name.c_str(), 0);
    copy.file = Fd(::openat(to.directory.get(), to.name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  }
  if (!file) return write_failure("create a file in", to.directory_path, errno);
  if (is_partial) {
    // The page cache may hold parts of the copy that the device refused after the run was killed.
    if (::fsync(file.get()) != 0) return write_failure("sync", to.path(), errno);
    (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (const auto identity = options.begun ? identify(data, file) : std::nullopt) options.begun(*identity);
  const auto copied = copy_content(data.get(), file.get(), options, is_partial);
  if (!copied) return pass_on(copied.error());
  copy.way = *copied;
  if (auto kept = copy_attributes(data.get(), file.get()); !kept) return pass_on(kept.error());
  if (::fsync(file.get()) != 0) return write_failure("sync", to.path(), errno);
  bool is_same = true;
  if (options.verify == Verify::full) {
    (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);  // compare with the device, not with the page cache
    const auto same = same_content(data.get(), file.get(), options.progress);
    if (!same) return pass_on(same.error());
    is_same = *same;
  }
  if (::fstat(data.get(), &after) != 0) return failure("inspect");
  if (!same_version(before, after)) return still_written();
  if (!is_same)
    return fail(ErrorKind::system,
                "the copy that was read back differs from the data: a program still writes them through a mapping, or "
                "the device is faulty");
  return copy;
}

std::string describe(CopyWay way, Verify verify) {
  if (way == CopyWay::shared) return verify == Verify::full ? "blocks shared and verified" : "blocks shared";
  return verify == Verify::none ? "copied, not verified" : "copied and verified";
}

Result<void> copy_attributes(int from, int to) {
  struct stat status {
  }, made{};
  if (::fstat(from, &status) != 0 || ::fstat(to, &made) != 0) return failure("inspect");
  const gid_t group = status.st_gid == ::getegid() ? made.st_gid : status.st_gid;
  if (::fchown(to, status.st_uid, group) != 0) (void)!::fchown(to, -1, group);
  auto copied = copy_extended_attributes(from, to);
  mode_t mode = status.st_mode & 07777;
  if (::fgetxattr(to, access_list, nullptr, 0) < 0) mode = mode_without_list(from, mode);
  (void)::fchmod(to, mode);  // after fchown, which clears set-uid
  const struct timespec times[2] = {status.st_atim, status.st_mtim};
  (void)::futimens(to, times);
  return copied;
}

}  // namespace iosig
