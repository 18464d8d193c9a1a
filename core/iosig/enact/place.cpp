#include "iosig/enact/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "iosig/base/text.h"

namespace iosig {
namespace {

#ifndef SYS_openat2
constexpr long SYS_openat2 = 437;
#endif

/// Whether the path is absolute and has none of "//", "/./" and "/../".
bool is_normal(std::string_view path) {
  if (!path.starts_with('/')) return false;
  for (std::size_t at = 0; at != std::string_view::npos; at = path.find('/', at + 1)) {
    const std::string_view rest = path.substr(at);
    for (const std::string_view abnormal : {"//", "/./", "/../"})
      if (rest.starts_with(abnormal)) return false;
    if (rest == "/." || rest == "/..") return false;
  }
  return true;
}

/// Opens the directory unless a component of the path is a symbolic link. The path is then the one that /proc would
/// give for the descriptor, which takes longer to ask than the directory to open. Empty also on kernels before 5.6.
Fd open_without_links(const std::string& path) {
  struct {  // struct open_how of linux/openat2.h
    std::uint64_t flags = O_PATH | O_DIRECTORY | O_CLOEXEC, mode = 0, resolve = 0x04;  // RESOLVE_NO_SYMLINKS
  } how;
  return Fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

Result<Place> make_place(Fd directory, std::string directory_path, std::string name) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return system_failure("inspect the directory of", name);
  return Place{std::move(directory), std::move(directory_path), std::move(name), status.st_dev, status.st_ino};
}

/// Whether the path leads there by the calls of libc, too. A library before libc (fakechroot, GekkoFS) may give the
/// program other directories than the kernel's at their paths.
bool is_what_program_sees(const Place& place, const std::string& directory_path) {
  struct stat status {};
  return ::stat(directory_path.c_str(), &status) == 0 && status.st_dev == place.device && status.st_ino == place.inode;
}

}  // namespace

std::string Place::path() const {
  return fmt::format("{}{}{}", directory_path, directory_path == "/" ? "" : "/", name);
}

Result<Place> place_in(Fd directory, std::string name) {
  char resolved[PATH_MAX];
  const std::string self = fmt::format("/proc/self/fd/{}", directory.get());
  const ssize_t length = ::readlink(self.c_str(), resolved, sizeof resolved);
  if (length < 0) return system_failure("inspect the directory of", name);
  return make_place(std::move(directory), std::string(resolved, static_cast<std::size_t>(length)), std::move(name));
}

Result<Place> locate(int from_directory, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string name(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
  if (name.empty() || name == "." || name == "..")
    return fail(ErrorKind::usage, "'{}' is the path of a directory; a file's is wanted", printable(path));
  const std::string parent(slash == std::string_view::npos ? "." : path.substr(0, slash + 1));
  if (is_normal(parent))
    if (Fd directory = open_without_links(parent)) {
      auto place = make_place(std::move(directory), parent.substr(0, std::max<std::size_t>(slash, 1)), name);
      if (place && is_what_program_sees(*place, parent)) return place;
    }
  Fd directory(::openat(from_directory, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_failure("open the directory", parent);
  return place_in(std::move(directory), std::move(name));
}

std::optional<std::string> link_target(const Place& place) {
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(place.directory.get(), place.name.c_str(), target, sizeof target);
  if (length < 0) return {};
  return std::string(target, static_cast<std::size_t>(length));
}

}  // namespace iosig
