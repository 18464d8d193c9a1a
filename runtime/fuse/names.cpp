// Requests on names: look up, create, link, rename, remove.

#include "iosig/container/admin/names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

#include "mount.h"

namespace iosig::fuse {
namespace {

void reply_entry(fuse_req_t request, fuse_ino_t directory, const char* name) {
  Mount& mount = mount_of(request);
  fuse_entry_param entry{};
  if (const int failure = mount.entry(mount.inode(directory), name, entry); failure != 0)
    fuse_reply_err(request, failure);
  else
    fuse_reply_entry(request, &entry);
}

/// Makes an entry of a directory by make(directory), which returns 0, or -1 with errno. Replies.
template <class Make>
void reply_made(fuse_req_t request, fuse_ino_t directory, const char* name, Make&& make) {
  Mount& mount = mount_of(request);
  const PathFd above = mount.inodes.fd(mount.inode(directory));
  if (!above || make(above) != 0)
    fuse_reply_err(request, errno);
  else
    reply_entry(request, directory, name);
}

bool refuses_name(fuse_req_t request, const char* name) {
  if (!is_hidden_name(name)) return false;
  fuse_reply_err(request, EPERM);
  return true;
}

void make_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  if (refuses_name(request, name)) return;
  Mount& mount = mount_of(request);
  reply_made(request, parent, name, [&](const PathFd& directory) {
    if (!S_ISREG(mode) || !mount.wants_container(directory, name))
      return ::mknodat(directory->get(), name, mode, device);
    errno = mount.make_container(directory, name, mode);
    return errno == 0 ? 0 : -1;
  });
}

void reply_done(fuse_req_t request, const NameResult& done) {
  if (!done && !done.error().message.empty()) ::syslog(LOG_WARNING, "%s", done.error().message.c_str());
  fuse_reply_err(request, done ? 0 : done.error().number);
}

void reply_removed(fuse_req_t request, fuse_ino_t parent, const char* name, int flags) {
  Mount& mount = mount_of(request);
  const PathFd directory = mount.inodes.fd(mount.inode(parent));
  if (!directory) {
    fuse_reply_err(request, errno);
    return;
  }
  Inode* const pinned = mount.inodes.pin(mount.inode(parent), name);
  const NameResult done = unlink_at({directory->get(), name}, flags);
  mount.inodes.unpin(pinned, done.has_value());
  reply_done(request, done);
}

}  // namespace

void add_names(fuse_lowlevel_ops& all) {
  all.lookup = [](fuse_req_t request, fuse_ino_t parent, const char* name) { reply_entry(request, parent, name); };
  all.forget = [](fuse_req_t request, fuse_ino_t inode, std::uint64_t lookups) {
    Mount& mount = mount_of(request);
    mount.inodes.forget(mount.inode(inode), lookups);
    fuse_reply_none(request);
  };
  all.forget_multi = [](fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
    Mount& mount = mount_of(request);
    for (std::size_t n = 0; n < count; ++n) mount.inodes.forget(mount.inode(forgets[n].ino), forgets[n].nlookup);
    fuse_reply_none(request);
  };
  all.mknod = make_node;
  all.mkdir = [](fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
    if (refuses_name(request, name)) return;
    reply_made(request, parent, name, [&](const PathFd& directory) { return ::mkdirat(directory->get(), name, mode); });
  };
  all.symlink = [](fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
    if (refuses_name(request, name)) return;
    reply_made(request, parent, name,
               [&](const PathFd& directory) { return ::symlinkat(target, directory->get(), name); });
  };
  all.link = [](fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
    if (refuses_name(request, name)) return;
    Mount& mount = mount_of(request);
    Inode& inode = mount.inode(number);
    if (inode.is_container()) {
      fuse_reply_err(request, EPERM);  // a directory can have only one name
      return;
    }
    reply_made(request, parent, name, [&](const PathFd& directory) {
      const PathFd file = mount.inodes.fd(inode);
      return file ? ::linkat(AT_FDCWD, path_of(file).c_str(), directory->get(), name, AT_SYMLINK_FOLLOW) : -1;
    });
  };
  all.readlink = [](fuse_req_t request, fuse_ino_t number) {
    std::array<char, PATH_MAX + 1> target{};
    Mount& mount = mount_of(request);
    const PathFd file = mount.inodes.fd(mount.inode(number));
    const ssize_t length = file ? ::readlinkat(file->get(), "", target.data(), target.size() - 1) : -1;
    if (length < 0)
      fuse_reply_err(request, errno);
    else
      fuse_reply_readlink(request, target.data());
  };
  all.unlink = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    if (is_hidden_name(name))
      fuse_reply_err(request, ENOENT);
    else
      reply_removed(request, parent, name, 0);
  };
  all.rmdir = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    reply_removed(request, parent, name, AT_REMOVEDIR);
  };
  all.rename = [](fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                  unsigned flags) {
    if (refuses_name(request, new_name)) return;
    Mount& mount = mount_of(request);
    if (is_hidden_name(name)) {
      fuse_reply_err(request, ENOENT);
      return;
    }
    Inode &from = mount.inode(parent), &to = mount.inode(new_parent);
    const PathFd from_fd = mount.inodes.fd(from), to_fd = from_fd ? mount.inodes.fd(to) : nullptr;
    if (!to_fd) {
      fuse_reply_err(request, errno);
      return;
    }
    Inode* const replaced = (flags & RENAME_EXCHANGE) != 0 ? nullptr : mount.inodes.pin(to, new_name);
    const NameResult done = rename_at({from_fd->get(), name}, {to_fd->get(), new_name}, flags);
    mount.inodes.unpin(replaced, done.has_value());
    if (done) {
      mount.inodes.renamed(to, new_name);
      mount.inodes.renamed(from, name);  // after an exchange
    }
    reply_done(request, done);
  };
}

}  // namespace iosig::fuse
