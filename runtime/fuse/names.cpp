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
  mount.forgetting.looked_up();
}

/// Replies with the new entry, or with errno if `failed`.
void reply_made(fuse_req_t request, fuse_ino_t directory, const char* name, bool failed) {
  if (failed)
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
  const Inode& directory = mount.inode(parent);
  if (S_ISREG(mode) && mount.wants_container(directory, name)) {
    if (const int failure = mount.make_container(directory, name, mode); failure != 0)
      fuse_reply_err(request, failure);
    else
      reply_entry(request, parent, name);
    return;
  }
  reply_made(request, parent, name, ::mknodat(directory.fd.get(), name, mode, device) != 0);
}

NameAt name_in(const Inode& directory, const char* name) { return {directory.fd.get(), name}; }

void reply_done(fuse_req_t request, const NameResult& done) {
  if (!done && !done.error().message.empty()) ::syslog(LOG_WARNING, "%s", done.error().message.c_str());
  fuse_reply_err(request, done ? 0 : done.error().number);
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
    reply_made(request, parent, name, ::mkdirat(mount_of(request).inode(parent).fd.get(), name, mode) != 0);
  };
  all.symlink = [](fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) {
    if (refuses_name(request, name)) return;
    reply_made(request, parent, name, ::symlinkat(target, mount_of(request).inode(parent).fd.get(), name) != 0);
  };
  all.link = [](fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
    if (refuses_name(request, name)) return;
    Mount& mount = mount_of(request);
    const Inode& inode = mount.inode(number);
    if (inode.is_container) {
      fuse_reply_err(request, EPERM);  // a directory can have only one name
      return;
    }
    const int directory = mount.inode(parent).fd.get();
    reply_made(request, parent, name,
               ::linkat(AT_FDCWD, inode.path().c_str(), directory, name, AT_SYMLINK_FOLLOW) != 0);
  };
  all.readlink = [](fuse_req_t request, fuse_ino_t number) {
    std::array<char, PATH_MAX + 1> target{};
    const ssize_t length = ::readlinkat(mount_of(request).inode(number).fd.get(), "", target.data(), target.size() - 1);
    if (length < 0)
      fuse_reply_err(request, errno);
    else
      fuse_reply_readlink(request, target.data());
  };
  all.unlink = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    if (is_hidden_name(name))
      fuse_reply_err(request, ENOENT);
    else
      reply_done(request, unlink_at(name_in(mount_of(request).inode(parent), name)));
  };
  all.rmdir = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    reply_done(request, unlink_at(name_in(mount_of(request).inode(parent), name), AT_REMOVEDIR));
  };
  all.rename = [](fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                  unsigned flags) {
    if (refuses_name(request, new_name)) return;
    Mount& mount = mount_of(request);
    if (is_hidden_name(name))
      fuse_reply_err(request, ENOENT);
    else
      reply_done(request,
                 rename_at(name_in(mount.inode(parent), name), name_in(mount.inode(new_parent), new_name), flags));
  };
}

}  // namespace iosig::fuse
