// Requests on open files: open, read, write, and so on.
//
// A file that is opened for writing only bypasses the kernel's cache. A container that is opened for reading only uses
// the cache, because mmap(2) needs it. A container that is opened for writing bypasses the cache: each write arrives
// here at once and as the program made it, and regular writers stay regular.

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "mount.h"
#include "prefetching.h"
#include "traced_requests.h"

namespace iosig::fuse {
namespace {

constexpr std::uint32_t parallel_direct_writes = 1u << 6;  // FOPEN_PARALLEL_DIRECT_WRITES, since Linux 6.2

constexpr std::size_t min_splice = 32u << 10;  ///< below this size copying is cheaper

/// Returns a buffer for one request of this thread.
std::span<std::byte> buffer(std::size_t bytes) {
  thread_local std::vector<std::byte> room;
  if (room.size() < bytes) room.resize(bytes);
  return {room.data(), bytes};
}

fuse_bufvec at(int fd, off_t offset, std::size_t bytes) {
  fuse_bufvec vector = FUSE_BUFVEC_INIT(bytes);
  vector.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY);
  vector.buf[0].fd = fd;
  vector.buf[0].pos = offset;
  return vector;
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// Opens a container for `handle`. Returns 0 or errno.
int open_container(const Mount& mount, Inode& inode, fuse_file_info& info, Handle& handle) {
  if (const int failure = inode.hold(handle.file); failure != 0) return failure;
  const auto container = inode.open_container(handle.file);
  int failure = container ? 0 : errno_of(container.error());
  if (failure == 0 && (info.flags & O_TRUNC) != 0) failure = (*container)->truncate(nullptr, 0);
  if (failure != 0) {
    inode.let_go(handle.file);
    return failure;
  }
  handle.container = *container;
  if (writes(info.flags)) handle.writer = handle.container->writers().add();
  handle.is_cached = !writes(info.flags) && (info.flags & O_DIRECT) == 0 && !mount.options.uncached;
  info.direct_io = handle.is_cached ? 0 : 1;
  if (handle.is_cached) ++inode.cached_readers;  // before the status: a write from now on invalidates the cache
  const std::lock_guard lock(inode.mutex);
  if (handle.is_cached) {
    struct stat status {};
    (void)handle.container->status().get(status, 0);
    const std::uint64_t changes = handle.container->status().changes();
    info.keep_cache = inode.shown_changes == changes ? 1 : 0;
    inode.shown_changes = changes;
  }
  return 0;
}

/// Decides whether an ordinary file uses the kernel's cache, and whether the cached bytes stay valid because the file
/// is unchanged.
void decide_cache(const Mount& mount, Inode& inode, fuse_file_info& info, Handle& handle) {
  struct stat status {};
  // A write-only handle needs no cache. With it each write would cost a second request, for the file's capabilities.
  handle.is_cached = (info.flags & O_DIRECT) == 0 && (info.flags & O_ACCMODE) != O_WRONLY && !mount.options.uncached;
  info.direct_io = handle.is_cached ? 0 : 1;
  if (handle.is_cached) ++inode.cached_readers;
  if (::fstat(handle.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const std::lock_guard lock(inode.mutex);
  const auto is_same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  // A program may put the time of the last write back, but not that of the last change.
  info.keep_cache = inode.shown_size == status.st_size && is_same(inode.shown_modified, status.st_mtim) &&
                            is_same(inode.shown_changed, status.st_ctim)
                        ? 1
                        : 0;
  inode.shown_size = status.st_size;
  inode.shown_modified = status.st_mtim;
  inode.shown_changed = status.st_ctim;
}

/// The kernel ignores the offsets of all writes to a descriptor with O_APPEND, also those of mapped pages, so each
/// write says whether it appends. Only a file that can be nothing but appended to (chattr +a) keeps the flag.
void append_by_write(const Fd& fd, int flags) {
  if ((flags & O_APPEND) != 0) (void)::fcntl(fd.get(), F_SETFL, flags & ~O_APPEND);
}

int open_file(const Mount& mount, Inode& inode, fuse_file_info& info, Handle& handle) {
  const int flags = (info.flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL | O_DIRECT)) | O_CLOEXEC;
  handle.fd = open_file_at(AT_FDCWD, path_of(handle.file).c_str(), flags);
  if (!handle.fd) return errno;
  append_by_write(handle.fd, flags);
  decide_cache(mount, inode, info, handle);
  return 0;
}

void release(Mount& mount, Inode& inode, Handle& handle) {
  if (handle.is_cached) --inode.cached_readers;
  if (handle.container) {
    if (handle.writer != nullptr) (void)handle.container->writers().remove(handle.writer);
    inode.let_go(handle.file);
    mount.inodes.used_container(inode);
  }
  mount.handles.close(handle);
}

void reply_opened(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Mount& mount = mount_of(request);
  Inode& inode = mount.inode(number);
  auto handle = std::make_unique<Handle>();
  handle->file = mount.inodes.fd(inode);
  int failure = handle->file ? 0 : errno;
  if (failure == 0)
    failure =
        inode.is_container() ? open_container(mount, inode, *info, *handle) : open_file(mount, inode, *info, *handle);
  if (failure != 0) {
    fuse_reply_err(request, failure);
    return;
  }
  const bool writes_container = handle->writer != nullptr;
  info->fh = mount.handles.keep(std::move(handle));  // before the reply: the program may close it at once
  int answered = 0;
  if (writes_container) {  // libfuse has no name for the flag yet
    const fuse_open_out answer{info->fh, FOPEN_DIRECT_IO | parallel_direct_writes, 0};
    answered = fuse_reply_buf(request, reinterpret_cast<const char*>(&answer), sizeof answer);
  } else {
    answered = fuse_reply_open(request, info);
  }
  if (answered != 0) release(mount, inode, handle_of(info));  // the program's open was interrupted
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* info) {
  Mount& mount = mount_of(request);
  Inode& directory = mount.inode(parent);
  auto handle = std::make_unique<Handle>();
  const PathFd above = mount.inodes.fd(directory);
  int failure = is_hidden_name(name) ? EPERM : above ? 0 : errno;
  if (failure == 0 && mount.wants_container(above, name)) {
    failure = mount.make_container(above, name, mode);
    if (failure == 0) info->flags &= ~O_TRUNC;                          // as in the kernel: a new file is not truncated
    if (failure == EEXIST && (info->flags & O_EXCL) == 0) failure = 0;  // another process made it first
  } else if (failure == 0) {
    const int flags = (info->flags & ~O_DIRECT) | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    handle->fd = open_file_at(above->get(), name, flags, mode);
    // EISDIR: another process has made a container meanwhile, which is opened below.
    if (!handle->fd && (errno != EISDIR || (info->flags & O_EXCL) != 0)) failure = errno;
  }
  fuse_entry_param entry{};
  if (failure == 0) failure = mount.entry(directory, name, entry);
  if (failure != 0) {
    fuse_reply_err(request, failure);
    return;
  }
  Inode& inode = mount.inode(entry.ino);
  handle->file = mount.inodes.fd(inode);
  if (!handle->file)
    failure = errno;
  else if (inode.is_container())
    failure = open_container(mount, inode, *info, *handle);
  else if (handle->fd) {
    append_by_write(handle->fd, info->flags);
    decide_cache(mount, inode, *info, *handle);
  } else
    failure = open_file(mount, inode, *info, *handle);
  if (failure != 0) {
    mount.inodes.forget(inode, 1);
    fuse_reply_err(request, failure);
    return;
  }
  info->fh = mount.handles.keep(std::move(handle));
  if (fuse_reply_create(request, &entry, info) == 0) return;
  release(mount, inode, handle_of(info));
  mount.inodes.forget(inode, 1);
}

/// Replies with bytes of a file, which are moved in the kernel if it can.
void reply_with(fuse_req_t request, int fd, off_t offset, std::size_t bytes) {
  prefetch::Observer::Reading reading = prefetcher().begin(fd, offset, static_cast<std::int64_t>(bytes));
  fuse_bufvec data = at(fd, offset, bytes);
  fuse_reply_data(request, &data, FUSE_BUF_SPLICE_MOVE);
  prefetcher().end(reading, 0);
}

void read(fuse_req_t request, fuse_ino_t, std::size_t bytes, off_t offset, fuse_file_info* info) {
  const Handle& handle = handle_of(info);
  if (!handle.container && mount_of(request).tracer) {  // libfuse does not say how many bytes it replied with
    const std::span<std::byte> room = buffer(bytes);
    const ssize_t got = ::pread(handle.fd.get(), room.data(), bytes, offset);
    if (got < 0)
      fuse_reply_err(request, errno);
    else
      fuse_reply_buf(request, reinterpret_cast<const char*>(room.data()), static_cast<std::size_t>(got));
    return;
  }
  if (!handle.container) {
    reply_with(request, handle.fd.get(), offset, bytes);
    return;
  }
  (void)handle.container->status().refresh_if_older_than(mount_of(request).options.cache_s);
  const bool is_given = bytes >= min_splice &&
                        handle.container->view().with_data_of(offset, static_cast<std::int64_t>(bytes),
                                                              [&](int fd, std::int64_t physical, std::size_t length) {
                                                                reply_with(request, fd, physical, length);
                                                              });
  if (is_given) return;
  const std::span<std::byte> room = buffer(bytes);
  const std::int64_t got = handle.container->view().read(offset, room);
  if (got < 0)
    fuse_reply_err(request, static_cast<int>(-got));
  else
    fuse_reply_buf(request, reinterpret_cast<const char*>(room.data()), static_cast<std::size_t>(got));
}

void reply_written(fuse_req_t request, fuse_ino_t number, const Handle& by, off_t offset, std::size_t bytes) {
  Mount& mount = mount_of(request);
  if (!by.is_cached && mount.inode(number).cached_readers > 0)
    mount.invalidation.answer_write(request, number, offset, bytes);
  else
    fuse_reply_write(request, bytes);
}

/// The bytes of a request; nothing if they cannot be read.
std::optional<std::span<const std::byte>> in_memory(fuse_bufvec& data, std::size_t bytes) {
  if (data.count == 1 && (data.buf[0].flags & FUSE_BUF_IS_FD) == 0)
    return std::span(static_cast<const std::byte*>(data.buf[0].mem) + data.off, bytes);
  const std::span<std::byte> room = buffer(bytes);
  fuse_bufvec place = FUSE_BUFVEC_INIT(bytes);
  place.buf[0].mem = room.data();
  if (fuse_buf_copy(&place, &data, fuse_buf_copy_flags{}) != static_cast<ssize_t>(bytes)) return {};
  return room;
}

/// Writes to an ordinary file. Returns the bytes written, or -errno. Pages of a mapping have their places, also where
/// the program opened the file with O_APPEND.
ssize_t put_in_file(const Handle& handle, fuse_bufvec& data, std::size_t bytes, off_t offset,
                    const fuse_file_info& info) {
  if ((info.flags & O_APPEND) == 0 || info.writepage != 0) {
    fuse_bufvec place = at(handle.fd.get(), offset, bytes);
    return fuse_buf_copy(&place, &data, fuse_buf_copy_flags{});
  }
  const auto given = in_memory(data, bytes);
  if (!given) return -EIO;
  const iovec piece{const_cast<std::byte*>(given->data()), given->size()};
  const ssize_t done = ::pwritev2(handle.fd.get(), &piece, 1, offset, RWF_APPEND);
  return done < 0 ? -errno : done;
}

void write(fuse_req_t request, fuse_ino_t number, fuse_bufvec* data, off_t offset, fuse_file_info* info) {
  Handle& handle = handle_of(info);
  const std::size_t bytes = fuse_buf_size(data);
  if (!handle.container) {
    const ssize_t done = put_in_file(handle, *data, bytes, offset, *info);
    if (done < 0)
      fuse_reply_err(request, static_cast<int>(-done));
    else
      reply_written(request, number, handle, offset, static_cast<std::size_t>(done));
    return;
  }
  if (handle.writer == nullptr) {
    fuse_reply_err(request, EBADF);
    return;
  }
  const auto given = in_memory(*data, bytes);
  if (!given) {
    fuse_reply_err(request, EIO);
    return;
  }
  std::int64_t place = offset;
  std::int64_t done = handle.container->writers().write(*handle.writer, place, *given, (info->flags & O_APPEND) != 0);
  if (place != offset) TracedRequest::set_offset(place);  // O_APPEND
  if (done > 0 && (info->flags & (O_SYNC | O_DSYNC)) != 0)
    if (const int failure = handle.container->writers().sync(); failure != 0) done = -failure;
  if (done < 0)
    fuse_reply_err(request, static_cast<int>(-done));
  else
    reply_written(request, number, handle, place, static_cast<std::size_t>(done));
}

void copy_range(fuse_req_t request, fuse_ino_t, off_t from, fuse_file_info* source, fuse_ino_t, off_t to,
                fuse_file_info* target, std::size_t bytes, int flags) {
  const Handle &in = handle_of(source), &out = handle_of(target);
  if (in.container || out.container) {
    fuse_reply_err(request, EOPNOTSUPP);  // the kernel falls back to reads and writes
    return;
  }
  const ssize_t done = ::copy_file_range(in.fd.get(), &from, out.fd.get(), &to, bytes, static_cast<unsigned>(flags));
  if (done < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_write(request, static_cast<std::size_t>(done));
}

/// Lets the file system below report what it reports at a close, as network file systems do. Where no descriptor is
/// free for the copy that is closed, flushes the file instead. Returns an errno.
int flush_file(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0) return ::close(copy) == 0 ? 0 : errno;
  if (::fsync(fd) == 0 || errno == EINVAL || errno == EROFS) return 0;  // EINVAL: it has no data to flush
  return errno;
}

}  // namespace

void add_data(fuse_lowlevel_ops& all) {
  all.open = reply_opened;
  all.create = create;
  all.read = read;
  all.write_buf = write;
  all.copy_file_range = copy_range;
  all.flush = [](fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
    const Handle& handle = handle_of(info);
    // All writes of a container have arrived already, and a dropping for each closed duplicate would be too many.
    fuse_reply_err(request, handle.container ? 0 : flush_file(handle.fd.get()));
  };
  all.release = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    Mount& mount = mount_of(request);
    release(mount, mount.inode(number), handle_of(info));
    fuse_reply_err(request, 0);
  };
  all.fsync = [](fuse_req_t request, fuse_ino_t, int data_only, fuse_file_info* info) {
    const Handle& handle = handle_of(info);
    if (handle.container)
      fuse_reply_err(request, handle.container->writers().sync());
    else
      fuse_reply_err(request,
                     (data_only != 0 ? ::fdatasync(handle.fd.get()) : ::fsync(handle.fd.get())) == 0 ? 0 : errno);
  };
  all.fallocate = [](fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length, fuse_file_info* info) {
    const Handle& handle = handle_of(info);
    if (!handle.container)
      fuse_reply_err(request, ::fallocate(handle.fd.get(), mode, offset, length) == 0 ? 0 : errno);
    else
      fuse_reply_err(
          request, handle.writer == nullptr ? EBADF : handle.container->allocate(*handle.writer, mode, offset, length));
  };
  all.lseek = [](fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
    const Handle& handle = handle_of(info);
    const std::int64_t found =
        handle.container ? handle.container->view().seek(offset, whence) : ::lseek(handle.fd.get(), offset, whence);
    if (found < 0)
      fuse_reply_err(request, handle.container ? static_cast<int>(-found) : errno);
    else
      fuse_reply_lseek(request, found);
  };
}

}  // namespace iosig::fuse
