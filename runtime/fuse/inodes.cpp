#include "inodes.h"

#include <fcntl.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "iosig/base/kept_fds.h"
#include "iosig/container/admin/removal.h"

namespace iosig::fuse {

bool is_container_at(int directory, const char* name) {
  struct stat status {};
  const std::string manifest = fmt::format("{}/{}", name, container_manifest_name);
  return ::fstatat(directory, manifest.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

Result<std::shared_ptr<SharedContainer>> Inode::open_container() {
  const std::lock_guard lock(mutex);
  if (container) return container;
  auto opened =
      SharedContainer::open(fd.get(), [](const std::string& said) { ::syslog(LOG_WARNING, "%s", said.c_str()); });
  if (opened) container = *opened;
  return opened;
}

int Inode::hold() {
  const std::lock_guard lock(mutex);
  if (handles == 0) {
    Fd directory = open_file_at(fd.get(), ".", O_RDONLY | O_DIRECTORY);
    if (!directory) return errno == ENOENT ? ESTALE : errno;
    if (!hold_container(directory.get())) return errno == ENOENT ? ESTALE : errno;
    if (iosig::is_unlinked(directory.get())) {
      let_go_container(std::move(directory), fd);
      return ESTALE;
    }
    held = std::move(directory);
  }
  ++handles;
  return 0;
}

void Inode::let_go() {
  Fd last;
  {
    const std::lock_guard lock(mutex);
    if (--handles == 0) last = std::exchange(held, Fd());
  }
  if (last) let_go_container(std::move(last), fd);
}

bool Inode::is_unlinked() {
  const std::lock_guard lock(mutex);
  return held && iosig::is_unlinked(held.get());
}

Inodes::Inodes(Fd source) {
  struct stat status {};
  ::fstat(source.get(), &status);
  root_.fd = std::move(source);
  root_.device = status.st_dev;
  root_.number = status.st_ino;
}

Inodes::~Inodes() {
  for (const auto& [key, inode] : known_) delete inode;
}

ino_t Inodes::shown_number(dev_t device, ino_t number) const {
  return device == root_.device ? number : number ^ (device - root_.device) * 0x9e3779b97f4a7c15;
}

Inode* Inodes::look_up(const Inode& directory, const char* name) {
  Fd fd = open_file_at(directory.fd.get(), name, O_PATH | O_NOFOLLOW);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return nullptr;
  if (status.st_dev == root_.device && status.st_ino == root_.number) return &root_;
  const bool is_container = S_ISDIR(status.st_mode) && is_container_at(fd.get(), ".");
  const std::lock_guard lock(mutex_);
  // A directory that has become a container since the last lookup, or vice versa, needs a new inode.
  Inode*& known = known_[{status.st_dev, status.st_ino}];
  const auto look_up = [&](Inode& inode) {
    ++inode.lookups;
    inode.parent = &directory == &root_ ? FUSE_ROOT_ID : reinterpret_cast<std::uint64_t>(&directory);
    inode.name = name;
  };
  if (known != nullptr && known->is_container == is_container) {
    look_up(*known);
    by_lookup_.splice(by_lookup_.end(), by_lookup_, known->place);
    return known;
  }
  auto* const made = new Inode;
  made->fd = std::move(fd);
  made->device = status.st_dev;
  made->number = status.st_ino;
  made->generation = ++generation_;
  made->is_container = is_container;
  look_up(*made);
  made->place = by_lookup_.insert(by_lookup_.end(), made);
  ++count_;
  known = made;
  return made;
}

std::vector<Inodes::Name> Inodes::oldest(std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::vector<Name> names;
  for (most = std::min(most, by_lookup_.size()); names.size() < most;) {
    names.push_back({by_lookup_.front()->parent, by_lookup_.front()->name});
    by_lookup_.splice(by_lookup_.end(), by_lookup_, by_lookup_.begin());
  }
  return names;
}

void Inodes::forget(Inode& inode, std::uint64_t lookups) {
  if (&inode == &root_) return;
  {
    const std::lock_guard lock(mutex_);
    inode.lookups -= std::min(lookups, inode.lookups);
    if (inode.lookups > 0) return;
    const auto known = known_.find({inode.device, inode.number});
    if (known != known_.end() && known->second == &inode) known_.erase(known);
    by_lookup_.erase(inode.place);
    --count_;
  }
  delete &inode;
}

}  // namespace iosig::fuse
