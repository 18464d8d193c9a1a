// Extended attributes. They are stored on the container's directory, where all access paths find them: the file's path,
// a descriptor, the mount, and programs without this library. The file's mode decides whether a user may read and set
// them. Access control lists are not supported, because the files inside a container would not follow them.

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "iosig/container/layout/container_directory.h"
#include "preload/files/answer.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"
#include "preload/names/paths.h"

namespace iosig::preload {
namespace {

constexpr std::string_view access_list_prefix = "system.posix_acl_";

/// Returns 0 or the errno with which a call is refused. As in the kernel, attributes in the user namespace need the
/// file's permission; other namespaces have their own rules.
int xattr_refusal(int directory, const char* name, int wanted) {
  if (!is_string(name)) return 0;  // the kernel fails with EFAULT, or the call lists the names
  const std::string_view text(name);
  if (text.starts_with(access_list_prefix)) return EOPNOTSUPP;
  if (!text.starts_with("user.")) return 0;
  return ::faccessat(directory, container_manifest_name.data(), wanted, AT_EACCESS) == 0 ? 0 : errno;
}

/// Returns the result of call(descriptor of the container's directory), which returns a value or -1 with errno.
template <class Call>
ssize_t answer_of_directory(int directory, const char* name, int wanted, Call call) {
  const int before = errno;
  if (const int failure = xattr_refusal(directory, name, wanted); failure != 0) return answer(-failure, before);
  const ssize_t value = call(directory);
  return answer(value < 0 ? -errno : value, before);
}

template <class Call, class Otherwise>
ssize_t of_file(int fd, const char* name, int wanted, Call call, Otherwise otherwise) {
  if (!is_ours(fd)) return otherwise();
  const InUse file(fd);
  if (!file || file->directory < 0) return answer(file ? -EIO : -EBADF, errno);
  return answer_of_directory(file->directory, name, wanted, call);
}

template <class Call, class Otherwise>
ssize_t at_path(const char* path, int flags, const char* name, int wanted, Call call, Otherwise otherwise) {
  if (path == nullptr) return otherwise();
  if (is_taken_for_directory(AT_FDCWD, path)) return -1;
  const ResolvedPath meant(AT_FDCWD, path, flags);
  const bool is_container = !meant.is_open_file() && (flags & AT_SYMLINK_NOFOLLOW) != 0
                                ? is_container_not_link_at(AT_FDCWD, path)
                                : is_container_at(meant.directory, meant.path);
  if (!is_container) return as_below_file(static_cast<int>(otherwise()), AT_FDCWD, path);
  if (meant.is_open_file()) return answer_of_directory(meant.directory, name, wanted, call);
  // O_PATH needs no permission on the directory itself.
  const EngineGuard inside;
  if (!inside) return answer(-EDEADLK, errno);
  const Fd directory(::openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -1;
  return answer_of_directory(directory.get(), name, wanted, call);
}

/// The path of a descriptor in /proc/self/fd, with which path-based calls reach a file opened with O_PATH.
struct Place {
  explicit Place(int directory) : name(directory) {}
  FdPath name;
  operator const char*() const { return name.text; }
};

ssize_t list_of(int directory, char* names, size_t bytes) {
  std::string all;
  int failure = run_isolated_step([&] {
    ssize_t length = 0;
    do {  // the list may grow between the two calls
      length = real().listxattr(Place(directory), nullptr, 0);
      if (length < 0) return errno;
      all.resize(static_cast<std::size_t>(length));
      length = length == 0 ? 0 : real().listxattr(Place(directory), all.data(), all.size());
    } while (length < 0 && errno == ERANGE);
    if (length < 0) return errno;
    all.resize(static_cast<std::size_t>(length));
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\0', at) + 1;
      if (std::string_view(all).substr(at).starts_with(access_list_prefix))
        all.erase(at, end - at);
      else
        at = end;
    }
    return 0;
  });
  const std::size_t length = all.size();
  if (failure == 0 && bytes != 0 && bytes < length) failure = ERANGE;
  if (failure == 0 && bytes != 0 && !fill_with_zeros_if_there(reinterpret_cast<std::byte*>(names), length))
    failure = EFAULT;
  if (failure == 0 && bytes != 0) (void)all.copy(names, length);
  (void)run_isolated_step([&] {
    all = {};
    return 0;
  });
  errno = failure;
  return failure != 0 ? -1 : static_cast<ssize_t>(length);
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

int hook::setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) {
  return static_cast<int>(at_path(
      path, 0, name, W_OK, [&](int directory) { return real().setxattr(Place(directory), name, value, bytes, flags); },
      [&] { return real().setxattr(path, name, value, bytes, flags); }));
}
int hook::lsetxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) {
  return static_cast<int>(at_path(
      path, AT_SYMLINK_NOFOLLOW, name, W_OK,
      [&](int directory) { return real().setxattr(Place(directory), name, value, bytes, flags); },
      [&] { return real().lsetxattr(path, name, value, bytes, flags); }));
}
int hook::fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) {
  return static_cast<int>(of_file(
      fd, name, W_OK, [&](int directory) { return real().setxattr(Place(directory), name, value, bytes, flags); },
      [&] { return real().fsetxattr(fd, name, value, bytes, flags); }));
}

ssize_t hook::getxattr(const char* path, const char* name, void* value, size_t bytes) {
  return at_path(
      path, 0, name, R_OK, [&](int directory) { return real().getxattr(Place(directory), name, value, bytes); },
      [&] { return real().getxattr(path, name, value, bytes); });
}
ssize_t hook::lgetxattr(const char* path, const char* name, void* value, size_t bytes) {
  return at_path(
      path, AT_SYMLINK_NOFOLLOW, name, R_OK,
      [&](int directory) { return real().getxattr(Place(directory), name, value, bytes); },
      [&] { return real().lgetxattr(path, name, value, bytes); });
}
ssize_t hook::fgetxattr(int fd, const char* name, void* value, size_t bytes) {
  return of_file(
      fd, name, R_OK, [&](int directory) { return real().getxattr(Place(directory), name, value, bytes); },
      [&] { return real().fgetxattr(fd, name, value, bytes); });
}

// Listing the names needs no permission.
ssize_t hook::listxattr(const char* path, char* names, size_t bytes) {
  return at_path(
      path, 0, nullptr, 0, [&](int directory) { return list_of(directory, names, bytes); },
      [&] { return real().listxattr(path, names, bytes); });
}
ssize_t hook::llistxattr(const char* path, char* names, size_t bytes) {
  return at_path(
      path, AT_SYMLINK_NOFOLLOW, nullptr, 0, [&](int directory) { return list_of(directory, names, bytes); },
      [&] { return real().llistxattr(path, names, bytes); });
}
ssize_t hook::flistxattr(int fd, char* names, size_t bytes) {
  return of_file(
      fd, nullptr, 0,
      [&](int directory) {
        const EngineGuard inside;
        if (inside) return list_of(directory, names, bytes);
        errno = EDEADLK;
        return ssize_t{-1};
      },
      [&] { return real().flistxattr(fd, names, bytes); });
}

int hook::removexattr(const char* path, const char* name) {
  return static_cast<int>(at_path(
      path, 0, name, W_OK, [&](int directory) { return real().removexattr(Place(directory), name); },
      [&] { return real().removexattr(path, name); }));
}
int hook::lremovexattr(const char* path, const char* name) {
  return static_cast<int>(at_path(
      path, AT_SYMLINK_NOFOLLOW, name, W_OK, [&](int directory) { return real().removexattr(Place(directory), name); },
      [&] { return real().lremovexattr(path, name); }));
}
int hook::fremovexattr(int fd, const char* name) {
  return static_cast<int>(of_file(
      fd, name, W_OK, [&](int directory) { return real().removexattr(Place(directory), name); },
      [&] { return real().fremovexattr(fd, name); }));
}
