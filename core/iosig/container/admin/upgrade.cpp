#include "iosig/container/admin/upgrade.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/container.h"

namespace iosig {
namespace {

constexpr const char* access_list = "system.posix_acl_access";

/// Gives `fd` the owner, the mode, the access control list and the times of the manifest: they are the file's.
Result<void> keep_attributes(const Fd& manifest, const std::string& shown, int fd) {
  struct stat old {
  }, made{};
  if (::fstat(manifest.get(), &old) != 0 || ::fstat(fd, &made) != 0) return system_failure("inspect", shown);
  const bool is_owned = made.st_uid == old.st_uid && made.st_gid == old.st_gid;
  if (!is_owned && ::fchown(fd, old.st_uid, old.st_gid) != 0) return system_failure("keep the owner of", shown);
  if (::fchmod(fd, old.st_mode & 07777) != 0) return system_failure("keep the permissions of", shown);
  std::string list(XATTR_SIZE_MAX, '\0');
  const ssize_t size = ::fgetxattr(manifest.get(), access_list, list.data(), list.size());
  if (size > 0 && ::fsetxattr(fd, access_list, list.data(), static_cast<std::size_t>(size), 0) != 0)
    return system_failure("keep the permissions of", shown);
  const timespec times[2] = {old.st_atim, old.st_mtim};
  if (::futimens(fd, times) != 0) return system_failure("keep the times of", shown);
  return {};
}

/// Opens the manifest and takes the locks of the file, which programs take on it, until the descriptor is closed. Fails
/// if the caller does not own it, or a program holds a lock: on the manifest that replaces this one, it would no longer
/// count.
Result<Fd> lock_manifest(const ContainerDirectory& directory, const std::string& name, const std::string& shown) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  Fd manifest = open_file_at(directory.fd().get(), name.c_str(), O_RDWR | flags);
  if (!manifest) {  // its mode forbids writing
    whole.l_type = F_RDLCK;
    manifest = open_file_at(directory.fd().get(), name.c_str(), O_RDONLY | flags);
  }
  struct stat status {};
  if (!manifest || ::fstat(manifest.get(), &status) != 0) return system_failure("open", shown);
  if (status.st_uid != ::geteuid() && ::geteuid() != 0) return system_failure("replace", shown, EPERM);
  const auto is_refused = [](int done) { return done != 0 && (errno == EWOULDBLOCK || errno == EACCES); };
  if (is_refused(::flock(manifest.get(), LOCK_EX | LOCK_NB)) ||
      is_refused(::fcntl(manifest.get(), F_OFD_SETLK, &whole)))
    return fail(
        ErrorKind::infeasible,
        "'{}': a program holds a lock on the file, which would not count after the upgrade: upgrade it when the "
        "program has given the lock back",
        printable(directory.path()));
  return manifest;
}

}  // namespace

Result<std::uint32_t> upgrade_container(const ContainerDirectory& directory, bool dry_run) {
  const std::uint32_t before = directory.manifest().version;
  if (before == newest_container_version || dry_run) return before;
  const std::string name(container_manifest_name), shown = fmt::format("{}/{}", directory.path(), name);
  const auto locked = lock_manifest(directory, name, shown);
  if (!locked) return pass_on(locked.error());
  const Fd& old = *locked;
  struct stat status {};
  if (::fstat(old.get(), &status) != 0) return system_failure("open", shown);
  ContainerManifest manifest = directory.manifest();
  manifest.version = newest_container_version;
  auto replaced = replace_file_in(
      directory.fd(), name, container_manifest_text(manifest),
      {.draft = std::string(manifest_copy_draft), .mode = 0600, .shown = shown, .before_sync = [&](int draft) {
         return keep_attributes(old, shown, draft);
       }});
  if (!replaced) return pass_on(std::move(replaced.error()));
  auto kept = keep_manifest_readable(directory.fd(), directory.path(), manifest, status.st_mode & 07777);
  if (!kept) return pass_on(std::move(kept.error()));
  return before;
}

}  // namespace iosig
