#include "inodes.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <syslog.h>

#include <algorithm>
#include <cerrno>

#include "iosig/container/admin/removal.h"

namespace iosig::fuse {
namespace {

/// The most directories above a file whose descriptor is closed. Directories that are moved in the source itself can
/// leave inodes that are parents of each other.
constexpr std::size_t max_depth = 4096;

/// Of containers that are open in the daemon although no program has them open. Each takes up to 3 descriptors.
std::size_t max_idle_containers() { return std::max<std::size_t>(max_kept_fds() / 16, 1); }

/// The kernel forgets a file without a name when the last program closes it.
std::size_t max_pinned() { return std::max<std::size_t>(max_kept_fds() / 2, 1); }

/// A file that was opened, with its identity.
struct Opened {
  Fd fd;  ///< invalid: failed, see errno
  FileIdentity identity;
};

Opened open_path(const PathFd& directory, const char* name) {
  Opened opened{open_file_at(directory->get(), name, O_PATH | O_NOFOLLOW), {}};
  struct statx status {};
  if (!opened.fd) return opened;
  if (::statx(opened.fd.get(), "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &status) != 0) return {};
  opened.identity.device = makedev(status.stx_dev_major, status.stx_dev_minor);
  opened.identity.number = status.stx_ino;
  opened.identity.is_container = S_ISDIR(status.stx_mode) && is_container_at(opened.fd.get(), ".");
  if ((status.stx_mask & STATX_BTIME) != 0) {
    opened.identity.born_s = status.stx_btime.tv_sec;
    opened.identity.born_ns = status.stx_btime.tv_nsec;
  }
  return opened;
}

}  // namespace

bool is_container_at(int directory, const char* name) {
  struct stat status {};
  const std::string manifest = fmt::format("{}/{}", name, container_manifest_name);
  return ::fstatat(directory, manifest.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

Result<std::shared_ptr<SharedContainer>> Inode::open_container(const PathFd& directory) {
  const std::lock_guard lock(mutex);
  if (container) return container;
  const auto say = [](const std::string& said) { ::syslog(LOG_WARNING, "%s", said.c_str()); };
  auto opened = SharedContainer::open(directory->get(), say, fill_with_zeros, unsynced);
  if (opened) container = *opened;
  return opened;
}

void Inode::close_container() {
  std::shared_ptr<SharedContainer> closed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex);
  if (handles > 0) return;
  closed = std::exchange(container, nullptr);
  shown_changes = UINT64_MAX;  // the next SharedContainer counts anew
}

int Inode::hold(const PathFd& directory) {
  const std::lock_guard lock(mutex);
  if (handles == 0) {
    Fd opened = open_file_at(directory->get(), ".", O_RDONLY | O_DIRECTORY);
    if (!opened) return errno == ENOENT ? ESTALE : errno;
    if (!hold_container(opened.get())) return errno == ENOENT ? ESTALE : errno;
    if (iosig::is_unlinked(opened.get())) {
      let_go_container(std::move(opened), *directory);
      return ESTALE;
    }
    held = std::move(opened);
  }
  ++handles;
  return 0;
}

void Inode::let_go(const PathFd& directory) {
  Fd last;
  {
    const std::lock_guard lock(mutex);
    if (--handles == 0) last = std::exchange(held, Fd());
  }
  if (last) let_go_container(std::move(last), *directory);
}

bool Inode::is_unlinked() {
  const std::lock_guard lock(mutex);
  return held && iosig::is_unlinked(held.get());
}

Inodes::Inodes(Fd source) {
  struct stat status {};
  ::fstat(source.get(), &status);
  root_.fd = std::make_shared<const Fd>(std::move(source));
  root_.identity.device = status.st_dev;
  root_.identity.number = status.st_ino;
}

Inodes::~Inodes() {
  for (const auto& [key, inode] : known_) delete inode;
}

ino_t Inodes::shown_number(dev_t device, ino_t number) const {
  const dev_t here = root_.identity.device;
  return device == here ? number : number ^ (device - here) * 0x9e3779b97f4a7c15;
}

PathFd Inodes::fd(Inode& inode) {
  Dead dead;
  PathFd found;
  std::vector<std::pair<Inode*, std::string>> closed;  // the file and the directories above it, upwards
  {
    const std::lock_guard lock(mutex_);
    const auto open_fd = [](const Inode& at) { return at.fd ? at.fd : at.pinned ? at.pinned : at.used.lock(); };
    for (Inode* at = &inode; !(found = open_fd(*at)) && closed.size() < max_depth; at = at->parent) {
      closed.emplace_back(at, at->name);
      ++at->references;
    }
  }
  if (closed.empty()) return found;
  int failure = found ? 0 : ESTALE;
  for (auto at = closed.rbegin(); at != closed.rend() && failure == 0; ++at) {
    Opened opened = open_path(found, at->second.c_str());
    if (!opened.fd)
      failure = errno == ENOENT || errno == ENOTDIR ? ESTALE : errno;
    else if (opened.identity != at->first->identity)
      failure = ESTALE;
    else
      found = keep(*at->first, std::move(opened.fd));
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [at, name] : closed) drop(*at, 1, dead);
  }
  errno = failure;
  return failure == 0 ? found : nullptr;
}

std::string Inodes::path_below(const Inode& inode) {
  std::string path;
  const std::lock_guard lock(mutex_);
  std::size_t depth = 0;
  for (const Inode* at = &inode; at != nullptr && at != &root_ && depth < max_depth; at = at->parent, ++depth)
    path.insert(0, "/" + at->name);
  return path;
}

/// Stores an inode's descriptor if the daemon may have one more. Returns it in any case.
PathFd Inodes::keep(Inode& inode, Fd fd) {
  auto opened = std::make_shared<const Fd>(std::move(fd));
  const bool may_keep = keeper_.may_keep(1);
  const std::lock_guard lock(mutex_);
  if (!may_keep) {
    if (inode.used.expired()) inode.used = opened;
    return opened;
  }
  if (inode.fd) {
    keeper_.closed(1);
    return inode.fd;
  }
  inode.fd = opened;
  if (inode.used.expired()) inode.used = opened;
  inode.kept_place = kept_.insert(kept_.end(), &inode);
  return opened;
}

/// For the keeper: closes the descriptors that nobody is using.
std::size_t Inodes::close_idle() {
  std::vector<PathFd> closed;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;
  for (auto at = kept_.begin(); at != kept_.end();) {
    Inode& inode = **at++;
    if (inode.fd.use_count() > 1) continue;
    closed.push_back(std::move(inode.fd));
    kept_.erase(inode.kept_place);
  }
  return closed.size();
}

Inode* Inodes::look_up(Inode& directory, const char* name) {
  const PathFd above = fd(directory);
  if (!above) return nullptr;
  Opened opened = open_path(above, name);
  if (!opened.fd) return nullptr;
  const FileIdentity& identity = opened.identity;
  if (identity.device == root_.identity.device && identity.number == root_.identity.number) return &root_;
  Dead dead;
  Inode* found = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // A directory that has become a container since the last lookup, or vice versa, needs a new inode.
    Inode*& known = known_[{identity.device, identity.number}];
    if (known == nullptr || known->identity != identity) {
      known = new Inode;
      known->identity = identity;
      known->generation = ++generation_;
    }
    found = known;
    ++found->references;
    set_name(*found, directory, name, dead);
  }
  (void)keep(*found, std::move(opened.fd));
  return found;
}

/// The caller holds the lock, and destroys the inodes in `dead` after it has released the lock.
void Inodes::set_name(Inode& inode, Inode& directory, const char* name, Dead& dead) {
  inode.name = name;
  Inode* const before = std::exchange(inode.parent, &directory);
  if (before == &directory) return;
  if (&directory != &root_) ++directory.references;
  if (before != nullptr) drop(*before, 1, dead);
}

Inode* Inodes::pin(Inode& directory, const char* name) {
  const PathFd above = fd(directory);
  Opened opened = above ? open_path(above, name) : Opened{};
  if (!opened.fd) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = known_.find({opened.identity.device, opened.identity.number});
  if (known == known_.end() || known->second->identity != opened.identity) return nullptr;
  Inode& inode = *known->second;
  if (!inode.pinned) {
    // That of an open file takes no descriptor more.
    inode.pinned = inode.fd == nullptr || inode.fd.use_count() > 1 ? inode.used.lock() : nullptr;
    inode.is_pin_counted = inode.pinned == nullptr;
    if (inode.is_pin_counted && pinned_ >= max_pinned()) return nullptr;
    if (inode.is_pin_counted) {
      inode.pinned = inode.fd ? inode.fd : std::make_shared<const Fd>(std::move(opened.fd));
      ++pinned_;
    }
  }
  ++inode.references;
  return &inode;
}

void Inodes::unpin(Inode* pinned, bool is_name_gone) {
  if (pinned == nullptr) return;
  Dead dead;
  const std::lock_guard lock(mutex_);
  if (!is_name_gone && std::exchange(pinned->pinned, nullptr) && pinned->is_pin_counted) --pinned_;
  drop(*pinned, 1, dead);
}

void Inodes::renamed(Inode& directory, const char* name) {
  const PathFd above = fd(directory);
  struct stat status {};
  if (!above || ::fstatat(above->get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  Dead dead;
  const std::lock_guard lock(mutex_);
  const auto known = known_.find({status.st_dev, status.st_ino});
  if (known != known_.end()) set_name(*known->second, directory, name, dead);
}

/// The caller holds the lock, and destroys the inodes in `dead` after it has released the lock.
void Inodes::drop(Inode& inode, std::uint64_t references, Dead& dead) {
  for (Inode* at = &inode; at != &root_; references = 1) {
    at->references -= std::min(references, at->references);
    if (at->references > 0) return;
    const auto known = known_.find({at->identity.device, at->identity.number});
    if (known != known_.end() && known->second == at) known_.erase(known);
    if (at->fd) {
      kept_.erase(at->kept_place);
      keeper_.closed(1);
    }
    if (at->pinned && at->is_pin_counted) --pinned_;
    if (at->is_listed) containers_.erase(at->container_place);
    dead.emplace_back(at);
    at = at->parent;
  }
}

void Inodes::forget(Inode& inode, std::uint64_t lookups) {
  Dead dead;
  const std::lock_guard lock(mutex_);
  drop(inode, lookups, dead);
}

void Inodes::used_container(Inode& inode) {
  Inode* oldest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (inode.is_listed) containers_.erase(inode.container_place);
    inode.container_place = containers_.insert(containers_.end(), &inode);
    inode.is_listed = true;
    if (containers_.size() <= max_idle_containers()) return;
    oldest = containers_.front();
    containers_.pop_front();
    oldest->is_listed = false;
    ++oldest->references;
  }
  oldest->close_container();
  forget(*oldest, 1);
}

}  // namespace iosig::fuse
