#include "iosig/storage/scratch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "iosig/base/signals.h"

namespace iosig {

Result<Fd> open_scratch_file(const std::string& folder) {
  Fd unnamed(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (unnamed) return unnamed;
  if (errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT || errno == ENOTDIR || errno == ENOSPC)
    return system_failure("create a file in", folder);
  const SignalsLater until_unlinked;  // ^C leaves no file
  std::string path = folder + "/.iosig-scratch-XXXXXX";
  Fd named(::mkostemp(path.data(), O_CLOEXEC));
  const int failure = errno;
  if (named) ::unlink(path.c_str());
  if (!named) return system_failure("create a file in", folder, failure);
  return named;
}

}  // namespace iosig
