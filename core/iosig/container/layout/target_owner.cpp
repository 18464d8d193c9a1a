#include "iosig/container/layout/target_owner.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

std::uint64_t inode_of(const ContainerDirectory& directory) {
  struct stat status {};
  return ::fstat(directory.fd().get(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::optional<ContainerOwner> other_owner(const ContainerDirectory& directory, std::size_t n) {
  const std::string& target = directory.manifest().targets[n];
  const Fd fd = open_file_at(AT_FDCWD, target.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const auto text = fd ? read_file_in(fd, std::string(container_manifest_name), target, max_manifest_bytes)
                       : Result<std::string>(fail(ErrorKind::system, "none"));
  const auto manifest = text ? parse_container_manifest(*text, target) : pass_on(text.error());
  if (!manifest || manifest->id != directory.manifest().id || !manifest->owner) return {};
  if (manifest->owner->inode == inode_of(directory)) return {};
  return manifest->owner;
}

Result<void> may_be_written(const ContainerDirectory& directory) {
  for (std::size_t n = 0; n < directory.manifest().targets.size(); ++n)
    if (const auto owner = other_owner(directory, n)) {
      return fail_with_errno(
          EROFS, ErrorKind::infeasible,
          "'{}' is a copy: its data on '{}' are those of the container that was made as '{}'; it can be read, and "
          "exported. If that one is gone: iosig container repair --claim",
          printable(directory.path()), printable(directory.manifest().targets[n]), printable(owner->path));
    }
  return {};
}

bool share_data(const std::string& one, const std::string& other) {
  const auto first = ContainerDirectory::open(one), second = ContainerDirectory::open(other);
  return first && second && (*first)->manifest().id == (*second)->manifest().id &&
         !(*first)->manifest().targets.empty();
}

Result<void> may_be_claimed(const ContainerDirectory& directory) {
  for (std::size_t n = 0; n < directory.manifest().targets.size(); ++n) {
    const auto owner = other_owner(directory, n);
    struct stat there {};
    if (owner && ::stat(owner->path.c_str(), &there) == 0 && there.st_ino == owner->inode && is_container(owner->path))
      return fail(ErrorKind::infeasible, "'{}' is a copy of '{}', which is there: its data belong to that one",
                  printable(directory.path()), printable(owner->path));
  }
  return {};
}

Result<void> claim_targets(const ContainerDirectory& directory) {
  ContainerManifest manifest = directory.manifest();
  manifest.owner = ContainerOwner{place_of(directory.fd().get()), inode_of(directory)};
  for (std::size_t n = 0; n < manifest.targets.size(); ++n) {
    if (!other_owner(directory, n)) continue;
    const std::string path = fmt::format("{}/{}", manifest.targets[n], container_manifest_name);
    if (auto written = replace_file(path, container_manifest_text(manifest)); !written) return written;
  }
  return {};
}

}  // namespace iosig
