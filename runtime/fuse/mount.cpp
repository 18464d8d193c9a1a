#include "mount.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "iosig/container/admin/container.h"
#include "iosig/format/container_globs.h"

namespace iosig::fuse {
namespace {

std::string linked_path(int fd) {
  std::array<char, PATH_MAX + 1> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), PATH_MAX);
  return length < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

int refused(const Error& error) {
  ::syslog(LOG_WARNING, "%s", error.message.c_str());
  return errno_of(error);
}

}  // namespace

std::uint64_t Handles::keep(std::unique_ptr<Handle> handle) {
  Handle* const kept = handle.get();
  const std::lock_guard lock(mutex_);
  open_.emplace(kept, std::move(handle));
  return reinterpret_cast<std::uint64_t>(kept);
}

void Handles::close(Handle& handle) {
  std::unique_ptr<Handle> closed;
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(&handle);
  if (found == open_.end()) return;
  closed = std::move(found->second);
  open_.erase(found);
}

int Mount::attributes(Inode& inode, struct stat& status) {
  const PathFd file = inodes.fd(inode);
  if (!file || ::fstatat(file->get(), "", &status, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (inode.is_container()) {
    const auto container = inode.open_container(file);
    inodes.used_container(inode);
    if (container) {
      if (const int failure = (*container)->status().get(status, options.cache_s); failure != 0) return failure;
    } else {  // the manifest is damaged: the file is visible but cannot be opened
      status.st_mode = S_IFREG;
      status.st_size = status.st_blocks = 0;
      status.st_nlink = 1;
    }
    if (inode.is_unlinked()) status.st_nlink = 0;
  }
  status.st_ino = inodes.shown_number(inode.identity.device, inode.identity.number);
  return 0;
}

int Mount::entry(Inode& directory, const char* name, fuse_entry_param& entry) {
  if (is_hidden_name(name)) return ENOENT;
  Inode* const inode = inodes.look_up(directory, name);
  if (inode == nullptr) return errno;
  entry = {};
  if (const int failure = attributes(*inode, entry.attr); failure != 0) {
    inodes.forget(*inode, 1);
    return failure;
  }
  entry.ino = number(*inode);
  entry.generation = inode->generation;
  entry.attr_timeout = entry.entry_timeout = options.cache_s;
  return 0;
}

bool Mount::wants_container(const PathFd& directory, const char* name) const {
  for (const std::string& glob : options.containers) {
    if (is_shared_memory(glob, name)) continue;
    if (glob.find('/') == std::string::npos) {
      if (::fnmatch(glob.c_str(), name, 0) == 0) return true;
      continue;
    }
    const std::string source = linked_path(inodes.root().fd->get()), above = linked_path(directory->get());
    if (!above.starts_with(source)) continue;
    const std::string below = above.substr(source == "/" ? 0 : source.size()) + "/" + name;
    if (::fnmatch(glob.c_str(), below.c_str() + below.find_first_not_of('/'), FNM_PATHNAME) == 0) return true;
  }
  return false;
}

int Mount::make_container(const PathFd& directory, const char* name, unsigned mode) const {
  if (std::string_view(name).size() > NAME_MAX) return ENAMETOOLONG;
  ContainerOptions wanted;
  wanted.index = options.index;
  wanted.mode = mode & 07777;
  const std::string path = fmt::format("{}/{}", path_of(directory), name);
  const auto made = create_container(path, wanted);
  if (!made) return errno_of(made.error()) == EEXIST ? EEXIST : refused(made.error());
  return 0;
}

}  // namespace iosig::fuse
