// Requests on directories: containers appear as files, hidden names do not appear.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "mount.h"

namespace iosig::fuse {
namespace {

bool is_dot(const char* name) {
  const std::string_view text = name;
  return text == "." || text == "..";
}

/// Replies to one readdir request. `plus`: with the result of a lookup of each name.
void read_directory(fuse_req_t request, fuse_ino_t number, std::size_t bytes, off_t offset, fuse_file_info* info,
                    bool plus) {
  Mount& mount = mount_of(request);
  Inode& directory = mount.inode(number);
  Handle& handle = handle_of(info);
  if (offset != handle.offset) {
    ::seekdir(handle.directory.get(), offset);
    handle.next = nullptr;
    handle.offset = offset;
  }
  std::vector<char> answer(bytes);
  std::size_t used = 0;
  int failure = 0;
  for (;;) {
    if (handle.next == nullptr) {
      errno = 0;
      handle.next = ::readdir(handle.directory.get());
      if (handle.next == nullptr) {
        failure = errno;
        break;
      }
    }
    const dirent& found = *handle.next;
    const char* const name = found.d_name;
    if (!is_hidden_name(name)) {
      fuse_entry_param entry{};
      bool is_known = false;
      if (plus && !is_dot(name)) {
        const int failed = mount.entry(directory, name, entry);
        if (failed == ENOENT || failed == ESTALE) {  // removed meanwhile
          handle.offset = found.d_off;
          handle.next = nullptr;
          continue;
        }
        is_known = failed == 0;
      }
      if (!is_known) {  // also after a failed lookup (EACCES, EMFILE): the name must not be missing
        const bool is_file =
            found.d_type == DT_DIR && !is_dot(name) && is_container_at(::dirfd(handle.directory.get()), name);
        entry.attr.st_ino = mount.inodes.shown_number(directory.identity.device, found.d_ino);
        entry.attr.st_mode = is_file ? S_IFREG : static_cast<mode_t>(found.d_type) << 12;
      }
      char* const at = answer.data() + used;
      const std::size_t room = bytes - used;
      const std::size_t taken = plus ? fuse_add_direntry_plus(request, at, room, name, &entry, found.d_off)
                                     : fuse_add_direntry(request, at, room, name, &entry.attr, found.d_off);
      if (taken > room) {
        if (is_known) mount.inodes.forget(mount.inode(entry.ino), 1);
        break;
      }
      used += taken;
    }
    handle.offset = found.d_off;
    handle.next = nullptr;
  }
  if (failure != 0 && used == 0)
    fuse_reply_err(request, failure);
  else
    fuse_reply_buf(request, answer.data(), used);
}

}  // namespace

void add_directories(fuse_lowlevel_ops& all) {
  all.opendir = [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    Mount& mount = mount_of(request);
    const PathFd above = mount.inodes.fd(mount.inode(number));
    const int fd = above ? open_file_at(above->get(), ".", O_RDONLY | O_DIRECTORY).release() : -1;
    DIR* const directory = fd < 0 ? nullptr : ::fdopendir(fd);
    if (directory == nullptr) {
      fuse_reply_err(request, errno);
      return;
    }
    auto handle = std::make_unique<Handle>();
    handle->directory.reset(directory);
    info->fh = mount.handles.keep(std::move(handle));
    if (fuse_reply_open(request, info) != 0) mount.handles.close(handle_of(info));
  };
  all.readdir = [](fuse_req_t request, fuse_ino_t number, std::size_t bytes, off_t offset, fuse_file_info* info) {
    read_directory(request, number, bytes, offset, info, false);
  };
  all.readdirplus = [](fuse_req_t request, fuse_ino_t number, std::size_t bytes, off_t offset, fuse_file_info* info) {
    read_directory(request, number, bytes, offset, info, true);
  };
  all.releasedir = [](fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
    mount_of(request).handles.close(handle_of(info));
    fuse_reply_err(request, 0);
  };
  all.fsyncdir = [](fuse_req_t request, fuse_ino_t, int, fuse_file_info* info) {
    fuse_reply_err(request, ::fsync(::dirfd(handle_of(info).directory.get())) == 0 ? 0 : errno);
  };
  all.statfs = [](fuse_req_t request, fuse_ino_t number) {
    Mount& mount = mount_of(request);
    struct statvfs status {};
    const PathFd file = mount.inodes.fd(mount.inode(number));
    if (!file || ::fstatvfs(file->get(), &status) != 0)
      fuse_reply_err(request, errno);
    else
      fuse_reply_statfs(request, &status);
  };
}

}  // namespace iosig::fuse
