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

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/layout/target_owner.h"

namespace iosig {
namespace {

constexpr std::string_view removed_mark = ".iosig-removed-";
/// How long an opener waits for a process that has a container alone: flatten needs it for one exchange of names.
constexpr std::int64_t max_wait_ns = 5'000'000'000;

enum class FolderLock { taken, refused, unsupported };

FolderLock lock(int folder, int operation) {
  if (::flock(folder, operation | LOCK_NB) == 0) return FolderLock::taken;
  return errno == EWOULDBLOCK || errno == EINTR ? FolderLock::refused : FolderLock::unsupported;
}

void pause_for(std::int64_t ns) {
  const timespec time{0, static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

bool is_deleted(int folder) {
  struct stat status {};
  return ::fstat(folder, &status) != 0 || status.st_nlink == 0;
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

bool hold_container(int folder) {
  std::int64_t waited_ns = 0, step_ns = 100'000;
  // Where the file system has no such locks, a holder cannot be seen.
  while (lock(folder, LOCK_SH) == FolderLock::refused) {
    if (is_unlinked(folder) || is_deleted(folder)) {
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
  const bool may_be_replaced = waited_ns > 0 && is_hidden_name(split_path(place_of(folder)).name);
  if (!is_deleted(folder) && !may_be_replaced) return true;
  errno = ENOENT;
  return false;
}

bool is_unlinked(int folder) { return is_removed_name(place_of(folder)); }

void let_go_container(Fd folder) {
  const Fd known(::openat(folder.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  let_go_container(std::move(folder), known);
}

void let_go_container(Fd folder, const Fd& known) {
  // In this order: unlink_at() renames the container first, then asks for the lock; so one of the two deletes it.
  folder = {};
  std::string where = known ? place_of(known.get()) : std::string();
  struct stat held {
  }, there{};
  if (!is_removed_name(where) || ::fstat(known.get(), &held) != 0 || held.st_nlink == 0) return;
  for (int tries_left = 16; tries_left > 0 && is_removed_name(where); --tries_left) {
    const SplitPath at = split_path(where);
    const Fd parent(::open(at.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const bool is_it = parent && ::fstatat(parent.get(), at.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                       is_same_inode(held, there);
    if (is_it) {
      (void)discard_removed(parent.get(), at.name);
      return;
    }
    // Its directory was removed or renamed meanwhile, and it moved.
    const std::string now = place_of(known.get());
    if (now == where) return;
    where = now;
  }
}

Result<ContainerHold> ContainerHold::take(const ContainerFolder& folder) {
  ContainerHold hold;
  hold.folder_ = Fd(::openat(folder.fd().get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!hold.folder_) return system_failure("open the container", folder.path());
  if (hold_container(hold.folder_.get())) return hold;
  const int failure = errno;
  hold.folder_ = {};
  return system_failure("open the container", folder.path(), failure);
}

ContainerHold::~ContainerHold() {
  try {
    if (folder_) let_go_container(std::move(folder_));
  } catch (const std::bad_alloc&) {  // it has no name any more; its data stay, as after a crash
  }
}

bool discard_removed(int folder, const std::string& name) {
  const Fd alone(::openat(folder, name.c_str(), folder_flags));
  if (!alone || lock(alone.get(), LOCK_EX) == FolderLock::refused) return false;
  struct stat locked {
  }, there{};
  if (::fstat(alone.get(), &locked) != 0 || ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_same_inode(locked, there))
    return false;
  delete_removed(folder, name);
  return ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

void delete_removed(int folder, const std::string& name) {
  const bool is_path = folder == AT_FDCWD || name.starts_with('/');
  const std::string path = is_path ? name : fmt::format("/proc/self/fd/{}/{}", folder, name);
  // The data first: a removal that is cut short can be begun again while the manifest says where they are.
  if (const auto container = ContainerFolder::open(path)) {
    const ContainerManifest& manifest = (*container)->manifest();
    // A target's folder is ours if it bears the container's id, and is no other container's: nothing else goes.
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
  const auto folder = ContainerFolder::open(plain);
  if (!folder) return pass_on(folder.error());
  Removal removal{{plain}, 0};
  const std::vector<std::string>& targets = (*folder)->manifest().targets;
  for (std::size_t n = 0; n < targets.size(); ++n)
    if (::lstat(targets[n].c_str(), &status) == 0 && !other_owner(**folder, n)) removal.folders.push_back(targets[n]);
  for (const std::int64_t id : (*folder)->list().data) {
    const Fd data = (*folder)->open_dropping(Dropping::data, id, O_PATH);
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
