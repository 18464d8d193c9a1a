#include "iosig/enact/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "iosig/base/text.h"

namespace iosig {

std::string Place::path() const {
  return fmt::format("{}{}{}", directory_path, directory_path == "/" ? "" : "/", name);
}

Result<Place> place_in(Fd directory, std::string name) {
  struct stat status {};
  char resolved[PATH_MAX];
  const std::string self = fmt::format("/proc/self/fd/{}", directory.get());
  const ssize_t length = ::readlink(self.c_str(), resolved, sizeof resolved);
  if (length < 0 || ::fstat(directory.get(), &status) != 0) return system_failure("inspect the directory of", name);
  return Place{std::move(directory), std::string(resolved, static_cast<std::size_t>(length)), std::move(name),
               status.st_dev};
}

Result<Place> locate(int from_directory, std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string name(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
  if (name.empty() || name == "." || name == "..")
    return fail(ErrorKind::usage, "'{}' is the path of a directory; a file's is wanted", printable(path));
  const std::string parent(slash == std::string_view::npos ? "." : path.substr(0, slash + 1));
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
