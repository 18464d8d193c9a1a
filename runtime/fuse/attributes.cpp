// Requests on attributes and extended attributes.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "mount.h"

namespace iosig::fuse {
namespace {

constexpr std::string_view daemon_attribute = "user.iosig.daemon";

void wanted_times(const struct stat& wanted, int what, timespec times[2]) {
  const auto time = [&](int given, int now, const timespec& value) -> timespec {
    if ((what & now) != 0) return {0, UTIME_NOW};
    if ((what & given) != 0) return value;
    return {0, UTIME_OMIT};
  };
  times[0] = time(FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, wanted.st_atim);
  times[1] = time(FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, wanted.st_mtim);
}

int change_container(Inode& inode, const PathFd& directory, const struct stat& wanted, int what, Handle* handle) {
  const auto container = inode.open_container(directory);
  if (!container) return errno_of(container.error());
  int failure = 0;
  if ((what & FUSE_SET_ATTR_MODE) != 0) failure = (*container)->set_mode(wanted.st_mode & 07777);
  if (failure == 0 && (what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0)
    failure = (*container)
                  ->set_owner((what & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1),
                              (what & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1));
  if (failure == 0 && (what & FUSE_SET_ATTR_SIZE) != 0)
    failure = (*container)->truncate(handle == nullptr ? nullptr : handle->writer, wanted.st_size);
  if (failure == 0 && (what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) != 0) {
    timespec times[2];
    wanted_times(wanted, what, times);
    failure = (*container)->set_times(times);
  }
  return failure;
}

int change_file(const PathFd& file, const struct stat& wanted, int what, const Handle* handle) {
  const std::string path = path_of(file);
  if ((what & FUSE_SET_ATTR_MODE) != 0 && ::chmod(path.c_str(), wanted.st_mode & 07777) != 0) return errno;
  if ((what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 &&
      ::fchownat(file->get(), "", (what & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1),
                 (what & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1),
                 AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return errno;
  if ((what & FUSE_SET_ATTR_SIZE) != 0) {
    const bool is_open = handle != nullptr && handle->fd;
    if ((is_open ? ::ftruncate(handle->fd.get(), wanted.st_size) : ::truncate(path.c_str(), wanted.st_size)) != 0)
      return errno;
  }
  if ((what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) != 0) {
    timespec times[2];
    wanted_times(wanted, what, times);
    if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return errno;
  }
  return 0;
}

void reply_attributes(fuse_req_t request, fuse_ino_t number) {
  Mount& mount = mount_of(request);
  struct stat status {};
  if (const int failure = mount.attributes(mount.inode(number), status); failure != 0)
    fuse_reply_err(request, failure);
  else
    fuse_reply_attr(request, &status, mount.options.cache_s);
}

/// Replies with `got` bytes of `value`, with their number if `asked` is 0, or with errno if `got` is negative.
void reply_value(fuse_req_t request, ssize_t got, const char* value, std::size_t asked) {
  if (got < 0)
    fuse_reply_err(request, errno);
  else if (asked == 0)
    fuse_reply_xattr(request, static_cast<std::size_t>(got));
  else if (static_cast<std::size_t>(got) > asked)
    fuse_reply_err(request, ERANGE);
  else
    fuse_reply_buf(request, value, static_cast<std::size_t>(got));
}

/// Refuses access control lists of containers, because the files inside a container would not follow them. The calls
/// here do not follow symbolic links: path_of() leads to the open file itself, link or not.
bool refuses(fuse_req_t request, const Inode& inode, const PathFd& file, std::string_view attribute) {
  const bool is_list = inode.is_container() && attribute.starts_with("system.posix_acl_");
  if (!is_list && file) return false;
  fuse_reply_err(request, is_list ? EOPNOTSUPP : errno);
  return true;
}

}  // namespace

void add_attributes(fuse_lowlevel_ops& all) {
  all.getattr = [](fuse_req_t request, fuse_ino_t number, fuse_file_info*) { reply_attributes(request, number); };
  all.setattr = [](fuse_req_t request, fuse_ino_t number, struct stat* wanted, int what, fuse_file_info* info) {
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    const PathFd file = mount.inodes.fd(inode);
    Handle* const handle = info == nullptr ? nullptr : &handle_of(info);
    const int failure = !file                  ? errno
                        : inode.is_container() ? change_container(inode, file, *wanted, what, handle)
                                               : change_file(file, *wanted, what, handle);
    if (failure != 0)
      fuse_reply_err(request, failure);
    else
      reply_attributes(request, number);
  };
  all.getxattr = [](fuse_req_t request, fuse_ino_t number, const char* name, std::size_t bytes) {
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    const PathFd file = mount.inodes.fd(inode);
    if (number == FUSE_ROOT_ID && name == daemon_attribute) {  // `iosig unmount` waits for the end of this process
      const std::string pid = fmt::format("{}", ::getpid());
      return reply_value(request, static_cast<ssize_t>(pid.size()), pid.data(), bytes);
    }
    if (refuses(request, inode, file, name)) return;
    std::vector<char> value(bytes);
    reply_value(request, ::getxattr(path_of(file).c_str(), name, value.data(), bytes), value.data(), bytes);
  };
  all.listxattr = [](fuse_req_t request, fuse_ino_t number, std::size_t bytes) {
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    const PathFd file = mount.inodes.fd(inode);
    if (refuses(request, inode, file, {})) return;
    std::vector<char> names(bytes);
    reply_value(request, ::listxattr(path_of(file).c_str(), names.data(), bytes), names.data(), bytes);
  };
  all.setxattr = [](fuse_req_t request, fuse_ino_t number, const char* name, const char* value, std::size_t bytes,
                    int flags) {
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    const PathFd file = mount.inodes.fd(inode);
    if (refuses(request, inode, file, name)) return;
    fuse_reply_err(request, ::setxattr(path_of(file).c_str(), name, value, bytes, flags) == 0 ? 0 : errno);
  };
  all.removexattr = [](fuse_req_t request, fuse_ino_t number, const char* name) {
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    const PathFd file = mount.inodes.fd(inode);
    if (refuses(request, inode, file, name)) return;
    fuse_reply_err(request, ::removexattr(path_of(file).c_str(), name) == 0 ? 0 : errno);
  };
}

}  // namespace iosig::fuse
