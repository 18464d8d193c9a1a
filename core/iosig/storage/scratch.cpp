#include "iosig/storage/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "iosig/base/signals.h"
#include "iosig/model/filesystem.h"

namespace iosig {

Result<Fd> open_scratch_file(const std::string& directory) {
  Fd unnamed(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (unnamed) return unnamed;
  if (errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT || errno == ENOTDIR || errno == ENOSPC)
    return system_failure("create a file in", directory);
  const SignalsLater until_unlinked;  // an interrupt must not leave the file
  std::string path = directory + "/.iosig-scratch-XXXXXX";
  Fd named(::mkostemp(path.data(), O_CLOEXEC));
  const int failure = errno;
  if (named) ::unlink(path.c_str());
  if (!named) return system_failure("create a file in", directory, failure);
  return named;
}

bool follows_links(const std::string& directory, std::string_view filesystem) {
  constexpr unsigned long no_symfollow = 0x2000;  // ST_NOSYMFOLLOW, which glibc 2.36 does not name
  struct statvfs flags {};
  if (::statvfs(directory.c_str(), &flags) == 0 && (flags.f_flag & no_symfollow) != 0) return false;
  if (const FilesystemType* const type = find_filesystem(filesystem); type != nullptr && type->is.follows_links)
    return true;
  // "/" is on another file system, or is the only directory to which a link in `directory` may lead.
  struct stat there {
  }, reached{};
  if (::stat("/", &there) != 0) return true;
  const SignalsLater until_unlinked;
  constexpr int max_tries = 8;
  for (int attempt = 0; attempt < max_tries; ++attempt) {
    const std::string path = fmt::format("{}/.iosig-link-{}-{}", directory, ::getpid(), attempt);
    if (::symlink("/", path.c_str()) != 0) {
      if (errno == EEXIST) continue;
      return errno != EPERM && errno != ENOSYS && errno != EOPNOTSUPP;
    }
    const bool leads =
        ::stat(path.c_str(), &reached) == 0 && reached.st_dev == there.st_dev && reached.st_ino == there.st_ino;
    ::unlink(path.c_str());
    return leads;
  }
  return true;
}

}  // namespace iosig
