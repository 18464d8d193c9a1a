#include "iosig/container/admin/removal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <new>
#include <system_error>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/layout/target_owner.h"

namespace iosig {
namespace {

constexpr std::string_view removed_mark = ".iosig-removed-";
/// How long open waits for a process with the exclusive lock. flatten holds that lock for one exchange of names.
constexpr std::int64_t max_wait_ns = 5'000'000'000;

enum class DirectoryLock { taken, refused, unsupported };

DirectoryLock lock(int directory, int operation) {
  if (::flock(directory, operation | LOCK_NB) == 0) return DirectoryLock::taken;
  return errno == EWOULDBLOCK || errno == EINTR ? DirectoryLock::refused : DirectoryLock::unsupported;
}

void pause_for(std::int64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

bool is_deleted(int directory) {
  struct stat status {};
  return ::fstat(directory, &status) != 0 || status.st_nlink == 0;
}

}  // namespace

std::string removed_name(std::string_view path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(unix_ns());
  return name_beside(path, "removed", fmt::format("{:016x}", random));
}

bool is_removed_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with('.') && name.find(removed_mark) != std::string_view::npos;
}

bool hold_container(int directory) {
  std::int64_t waited_ns = 0, step_ns = 100'000;
  // On file systems without flock(2), holders cannot be detected.
  while (lock(directory, LOCK_SH) == DirectoryLock::refused) {
    if (is_unlinked(directory) || is_deleted(directory)) {
      errno = ENOENT;
      return false;
    }
    if (waited_ns >= max_wait_ns) {
      errno = EBUSY;
      return false;
    }
    pause_for(step_ns);
    waited_ns += step_ns;
    step_ns = std::min<std::int64_t>(2 * step_ns, 20'000'000);
  }
  const bool may_be_replaced = waited_ns > 0 && is_hidden_name(split_path(place_of(directory)).name);
  if (!is_deleted(directory) && !may_be_replaced) return true;
  errno = ENOENT;
  return false;
}

bool is_unlinked(int directory) { return is_removed_name(place_of(directory)); }

void let_go_container(Fd directory) {
  const Fd known = open_file_at(directory.get(), ".", O_PATH | O_DIRECTORY);
  let_go_container(std::move(directory), known);
}

void let_go_container(Fd directory, const Fd& known) {
  // Releases the lock first, then checks the name. unlink_at() renames the container first, then tries to lock it.
  // Therefore one of the two always deletes it.
  directory = {};
  std::string where = known ? place_of(known.get()) : std::string();
  struct stat held {
  }, there{};
  if (!is_removed_name(where) || ::fstat(known.get(), &held) != 0 || held.st_nlink == 0) return;
  for (int tries_left = 16; tries_left > 0 && is_removed_name(where); --tries_left) {
    const SplitPath at = split_path(where);
    const Fd parent = open_file_at(AT_FDCWD, at.directory.c_str(), O_PATH | O_DIRECTORY);
    const bool is_it = parent && ::fstatat(parent.get(), at.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                       is_same_inode(held, there);
    if (is_it) {
      (void)discard_removed(parent.get(), at.name);
      return;
    }
    // The parent directory was removed or renamed meanwhile, and the container has another path now.
    const std::string now = place_of(known.get());
    if (now == where) return;
    where = now;
  }
}

Result<ContainerHold> ContainerHold::take(const ContainerDirectory& directory) {
  ContainerHold hold;
  hold.directory_ = open_file_at(directory.fd().get(), ".", O_RDONLY | O_DIRECTORY);
  if (!hold.directory_) return system_failure("open the container", directory.path());
  if (hold_container(hold.directory_.get())) return hold;
  const int failure = errno;
  hold.directory_ = {};
  return system_failure("open the container", directory.path(), failure);
}

ContainerHold::~ContainerHold() {
  try {
    if (directory_) let_go_container(std::move(directory_));
  } catch (const std::bad_alloc&) {  // the container has its hidden name; its data stay, as after a crash
  }
}

bool discard_removed(int directory, const std::string& name) {
  const Fd alone = open_file_at(directory, name.c_str(), directory_flags);
  if (!alone || lock(alone.get(), LOCK_EX) == DirectoryLock::refused) return false;
  struct stat locked {
  }, there{};
  if (::fstat(alone.get(), &locked) != 0 || ::fstatat(directory, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_same_inode(locked, there))
    return false;
  delete_removed(directory, name);
  return ::fstatat(directory, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

namespace {

/// Flushes the directory of `path`. False: that failed. A directory that may not be read is not flushed.
bool store_names_beside(const std::string& path) {
  const Fd parent = open_file_at(AT_FDCWD, split_path(path).directory.c_str(), O_RDONLY | O_DIRECTORY);
  return !parent || ::fsync(parent.get()) == 0 || errno == EINVAL || errno == EROFS;
}

}  // namespace

void delete_removed(int directory, const std::string& name) {
  const bool is_path = directory == AT_FDCWD || name.starts_with('/');
  const std::string path = is_path ? name : fmt::format("/proc/self/fd/{}/{}", directory, name);
  // Deletes the data on targets first: an interrupted removal can be repeated as long as the manifest names the
  // targets.
  if (const auto container = ContainerDirectory::open(path)) {
    const ContainerManifest& manifest = (*container)->manifest();
    // A target is another file system: **a power failure could undo the rename to the hidden name, or the exchange by
    // which a file took the container's place, but not the deletion of the data.** So the names are stored first.
    if (!manifest.targets.empty() && !store_names_beside(path)) return;
    // Deletes only directories that are named by this container's id and belong to no other container.
    for (std::size_t n = 0; n < manifest.targets.size(); ++n)
      if (split_path(manifest.targets[n]).name == manifest.id && !other_owner(**container, n))
        remove_tree(manifest.targets[n]);
  }
  remove_tree(path);
}

Result<Removal> removal_of(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  struct stat status {};
  if (::lstat(plain.c_str(), &status) != 0) return system_failure("remove", plain);
  if (S_ISLNK(status.st_mode)) return fail(ErrorKind::usage, "'{}' is a link", printable(plain));
  const auto directory = ContainerDirectory::open(plain);
  if (!directory) return pass_on(directory.error());
  Removal removal{{plain}, 0};
  const std::vector<std::string>& targets = (*directory)->manifest().targets;
  for (std::size_t n = 0; n < targets.size(); ++n)
    if (::lstat(targets[n].c_str(), &status) == 0 && !other_owner(**directory, n))
      removal.directories.push_back(targets[n]);
  for (const std::int64_t id : (*directory)->list().data) {
    const Fd data = (*directory)->open_dropping(Dropping::data, id, O_PATH);
    if (data && ::fstat(data.get(), &status) == 0) removal.data_bytes += status.st_size;
  }
  return removal;
}

Result<void> unlink_container(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  if (auto removed = unlink_at({AT_FDCWD, plain}); !removed) return as_error(removed.error(), "remove", plain);
  return {};
}

}  // namespace iosig
