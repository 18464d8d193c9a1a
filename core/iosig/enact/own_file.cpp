#include "iosig/enact/own_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

#ifndef SYS_getxattrat
constexpr long SYS_getxattrat = 464;
#endif

/// Whether the kernel says that the directory lacks the attribute. Does not go through /proc, which takes longer. False
/// on kernels before 6.13.
bool has_no_attribute(const Fd& directory, const char* attribute) {
  struct {  // struct xattr_args of linux/xattr.h; size 0: asks for the attribute's size
    alignas(8) std::uint64_t value = 0;
    std::uint32_t size = 0, flags = 0;
  } asked;
  // "." and not AT_EMPTY_PATH, which refuses a descriptor with O_PATH.
  return ::syscall(SYS_getxattrat, directory.get(), ".", 0, attribute, &asked, sizeof asked) < 0 &&
         (errno == ENODATA || errno == EOPNOTSUPP);
}

}  // namespace

Fd open_own_to_read(int directory, const std::string& name) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd file(::openat(directory, name.c_str(), flags | O_NOATIME));  // only the owner may use O_NOATIME
  if (!file && errno == EPERM) file = Fd(::openat(directory, name.c_str(), flags));
  if (file || errno != EACCES) return file;
  const auto refused = [] {
    errno = EACCES;
    return Fd();
  };
  // Changes the mode through the inode's descriptor: another user cannot replace it in between.
  const Fd found(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!found || ::fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & S_IRUSR) != 0)
    return refused();
  const std::string self = fmt::format("/proc/self/fd/{}", found.get());
  const mode_t mode = status.st_mode & 07777;
  if (::chmod(self.c_str(), mode | S_IRUSR) != 0) return refused();
  file = Fd(::open(self.c_str(), O_RDONLY | O_NONBLOCK | O_NOATIME | O_CLOEXEC));
  (void)::chmod(self.c_str(), mode);
  return file ? std::move(file) : refused();
}

Result<void> sync_file(const Fd& file, const std::string& shown) {
  if (::fsync(file.get()) == 0 || errno == EINVAL || errno == EROFS) return {};
  return system_failure("sync", shown);
}

void ensure_mode(const Fd& directory, const std::string& name, unsigned mode) {
  struct stat status {};
  if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(status.st_mode)) return;
  if (status.st_uid == ::geteuid() && (status.st_mode & mode) != mode)
    (void)set_mode_at(directory.get(), name.c_str(), mode);
}

Result<void> inherit_default_acl(const Fd& home, const Fd& directory, const std::string& name,
                                 const std::string& shown) {
  constexpr const char* attribute = "system.posix_acl_default";
  if (has_no_attribute(home, attribute)) return {};
  const std::string from = fmt::format("/proc/self/fd/{}", home.get());
  const ssize_t size = ::getxattr(from.c_str(), attribute, nullptr, 0);
  if (size <= 0) return {};
  std::string acl(static_cast<std::size_t>(size), '\0');
  const ssize_t got = ::getxattr(from.c_str(), attribute, acl.data(), acl.size());
  const std::string to = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
  if (got == size && ::setxattr(to.c_str(), attribute, acl.data(), acl.size(), 0) == 0) return {};
  return system_failure("give the default ACL of the file's directory to", shown);
}

Result<void> move_locks(const Fd& from, const Fd& to, const std::string& shown) {
  constexpr int locks = FS_IMMUTABLE_FL | FS_APPEND_FL;
  int flags = 0, home = 0;
  if (::ioctl(from.get(), FS_IOC_GETFLAGS, &flags) != 0 || (flags & locks) == 0) return {};
  const int found = flags & locks;
  flags &= ~locks;
  if (::ioctl(from.get(), FS_IOC_SETFLAGS, &flags) != 0)
    return system_failure("take the attribute immutable or append-only (chattr -i -a) from", shown);
  if (::ioctl(to.get(), FS_IOC_GETFLAGS, &home) != 0) return {};
  home |= found;
  (void)::ioctl(to.get(), FS_IOC_SETFLAGS, &home);
  return {};
}

}  // namespace iosig
