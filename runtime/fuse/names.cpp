// What is done to names: looked up, made, renamed, removed.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

#include "iosig/store/target_owner.h"
#include "mount.h"

namespace iosig::fuse {
namespace {

void reply_entry(fuse_req_t request, fuse_ino_t folder, const char* name) {
  Mount& mount = mount_of(request);
  fuse_entry_param entry{};
  if (const int failure = mount.entry(mount.inode(folder), name, entry); failure != 0)
    fuse_reply_err(request, failure);
  else
    fuse_reply_entry(request, &entry);
}

/// Answers with the new entry, or with errno if `failed`.
void reply_made(fuse_req_t request, fuse_ino_t folder, const char* name, bool failed) {
  if (failed)
    fuse_reply_err(request, errno);
  else
    reply_entry(request, folder, name);
}

bool refuses_name(fuse_req_t request, const char* name) {
  if (!is_hidden_name(name)) return false;
  fuse_reply_err(request, EPERM);
  return true;
}

void make_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  if (refuses_name(request, name)) return;
  Mount& mount = mount_of(request);
  const Inode& folder = mount.inode(parent);
  if (S_ISREG(mode) && mount.wants_container(folder, name)) {
    if (const int failure = mount.make_container(folder, name, mode); failure != 0)
      fuse_reply_err(request, failure);
    else
      reply_entry(request, parent, name);
    return;
  }
  reply_made(request, parent, name, ::mknodat(folder.fd.get(), name, mode, device) != 0);
}

enum class Kind { none, container, folder, other };

Kind kind_at(const Inode& folder, const char* name) {
  struct stat status {};
  if (::fstatat(folder.fd.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return Kind::none;
  if (!S_ISDIR(status.st_mode)) return Kind::other;
  return is_container_at(folder.fd.get(), name) ? Kind::container : Kind::folder;
}

int unlink_at(Mount& mount, Inode& folder, const char* name) {
  if (kind_at(folder, name) == Kind::container) return mount.remove_container_at(folder, name);
  return ::unlinkat(folder.fd.get(), name, 0) == 0 ? 0 : errno;
}

/// rename(2) knows a container for a folder, which cannot replace a file, nor a file it: their names are exchanged in
/// one step, then what was replaced is removed.
int rename_over(Mount& mount, Inode& from, const char* name, Inode& to, const char* new_name) {
  const auto exchange = [&] {
    return ::renameat2(from.fd.get(), name, to.fd.get(), new_name, RENAME_EXCHANGE) == 0 ? 0 : errno;
  };
  struct stat here {
  }, there{};
  if (::fstatat(from.fd.get(), name, &here, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fstatat(to.fd.get(), new_name, &there, AT_SYMLINK_NOFOLLOW) != 0)
    return errno;
  if (here.st_dev == there.st_dev && here.st_ino == there.st_ino) return 0;
  if (share_data(fmt::format("{}/{}", from.path(), name), fmt::format("{}/{}", to.path(), new_name))) return EROFS;
  if (const int failure = exchange(); failure != 0) return failure;
  const int failure = unlink_at(mount, from, name);
  if (failure != 0) (void)exchange();
  return failure;
}

int rename_at(Mount& mount, Inode& from, const char* name, Inode& to, const char* new_name, unsigned flags) {
  const Kind here = kind_at(from, name), there = kind_at(to, new_name);
  const bool meets = (here == Kind::container || there == Kind::container) && there != Kind::none;
  if (!meets || flags != 0) {
    // What is made at a free name meanwhile must not be met as if it were a folder.
    const unsigned guarded = flags == 0 && here == Kind::container ? RENAME_NOREPLACE : flags;
    return ::renameat2(from.fd.get(), name, to.fd.get(), new_name, guarded) == 0 ? 0 : errno;
  }
  if (there == Kind::folder) return EISDIR;
  if (here == Kind::folder) return ENOTDIR;
  if (here == Kind::none) return ENOENT;
  return rename_over(mount, from, name, to, new_name);
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
      fuse_reply_err(request, EPERM);  // a folder has one name
      return;
    }
    const int folder = mount.inode(parent).fd.get();
    reply_made(request, parent, name, ::linkat(AT_FDCWD, inode.path().c_str(), folder, name, AT_SYMLINK_FOLLOW) != 0);
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
    Mount& mount = mount_of(request);
    fuse_reply_err(request, is_hidden_name(name) ? ENOENT : unlink_at(mount, mount.inode(parent), name));
  };
  all.rmdir = [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    const Inode& folder = mount_of(request).inode(parent);
    if (kind_at(folder, name) == Kind::container)
      fuse_reply_err(request, ENOTDIR);
    else
      fuse_reply_err(request, ::unlinkat(folder.fd.get(), name, AT_REMOVEDIR) == 0 ? 0 : errno);
  };
  all.rename = [](fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                  unsigned flags) {
    if (refuses_name(request, new_name)) return;
    Mount& mount = mount_of(request);
    fuse_reply_err(request, is_hidden_name(name) ? ENOENT
                                                 : rename_at(mount, mount.inode(parent), name, mount.inode(new_parent),
                                                             new_name, flags));
  };
}

}  // namespace iosig::fuse
