#include "iosig/enact/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "iosig/base/text.h"

namespace iosig {
namespace {

/// Returns the id of the mount of `opened`. The device number does not suffice: a bind mount can have the same one as
/// the directory around it.
std::uint64_t mount_of(const Fd& opened) {
  struct statx status {};
  return ::statx(opened.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) == 0 ? status.stx_mnt_id : 0;
}

Fd open_directory(const Fd& parent, const std::string& name) {
  return Fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void add_up(const Fd& parent, const std::string& name, Extent& extent) {
  struct stat status {};
  if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  extent.changed_unix_s = std::max<std::int64_t>(extent.changed_unix_s, status.st_mtim.tv_sec);
  if (S_ISREG(status.st_mode)) extent.data_bytes += static_cast<std::uint64_t>(status.st_size);
  if (!S_ISDIR(status.st_mode)) return;
  const Fd directory = open_directory(parent, name);
  const auto names = directory ? names_in(directory) : std::vector<std::string>{};
  if (names)
    for (const std::string& inner : *names) add_up(directory, inner, extent);
}

}  // namespace

Extent extent_of(const Fd& parent, const std::string& name) {
  Extent extent;
  add_up(parent, name, extent);
  return extent;
}

Result<void> remove_tree(const Fd& parent, const std::string& name, const std::string& shown) {
  if (::unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return system_failure("remove", shown);
  const Fd directory = open_directory(parent, name);
  if (!directory) return system_failure("open the directory", shown);
  if (mount_of(directory) != mount_of(parent))
    return fail(ErrorKind::infeasible, "'{}': another file system is mounted there; it stays", printable(shown));
  const auto names = names_in(directory);
  if (!names) return pass_on(names.error());
  for (const std::string& inner : *names)
    if (auto removed = remove_tree(directory, inner, fmt::format("{}/{}", shown, inner)); !removed) return removed;
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return system_failure("remove", shown);
}

}  // namespace iosig
