#include "iosig/enact/user_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/base/trust.h"

namespace iosig {

std::string user_folder_name() { return fmt::format(".iosig-{}", ::geteuid()); }

Result<UserFolder> open_user_folder(const std::string& mount_point, IfMissing if_missing) {
  const std::string name = user_folder_name();
  // Data that lie there already are fetched from anywhere: what is held open and proven ours cannot be swapped.
  if (if_missing == IfMissing::make)
    if (auto sound = check_folder(mount_point); !sound) return pass_on(sound.error());
  const Fd mount(::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!mount) return system_failure("open the mount point", mount_point);
  UserFolder folder{{}, mount_point + (mount_point.ends_with('/') ? "" : "/") + name};
  const auto open_folder = [&] {
    return Fd(::openat(mount.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  };
  folder.fd = open_folder();
  if (!folder.fd && errno == ENOENT && if_missing == IfMissing::make) {
    if (::mkdirat(mount.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return system_failure("make the folder", folder.path);
    folder.fd = open_folder();
  }
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::system,
                "'{}' {}, so nothing of yours is put there: somebody may have planted it; "
                "have it removed, and IOSIG will make its own",
                printable(folder.path), why);
  };
  if (!folder.fd && (errno == ELOOP || errno == ENOTDIR)) return refuse("is not a folder but a link or a file");
  if (!folder.fd && errno == EACCES) return refuse("is closed to you");
  if (!folder.fd) return system_failure("open the folder", folder.path);
  struct stat status {};
  if (::fstat(folder.fd.get(), &status) != 0) return system_failure("inspect", folder.path);
  if (status.st_uid != ::geteuid()) return refuse(fmt::format("belongs to user {}", status.st_uid));
  if ((status.st_mode & 0077) != 0) return refuse(fmt::format("is open to others (mode {:o})", status.st_mode & 07777));
  return folder;
}

Result<std::string> make_destination(const UserFolder& folder, const std::string& id, std::string_view name) {
  std::string path = fmt::format("{}/{}", folder.path, id);
  if (::mkdirat(folder.fd.get(), id.c_str(), 0700) == 0) {
    if (::fchmodat(folder.fd.get(), id.c_str(), 0700, 0) != 0) return system_failure("set the mode of", path);
  } else if (errno != EEXIST) {
    return write_failure("make the directory", path, errno);
  }
  return fmt::format("{}/{}", path, name);
}

}  // namespace iosig
