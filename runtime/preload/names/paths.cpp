#include "preload/names/paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "host/binding.h"
#include "host/process.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/shared/shared_container.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"

namespace iosig::preload {
namespace {

constexpr std::size_t max_own_name = 100;  ///< limit of the bytes that the engine appends to a container's path

/// Returns a path without a directory descriptor, for the engine.
std::string reachable(int directory, const char* path) {
  if (path[0] == '/' || directory == AT_FDCWD) return path;
  return fmt::format("/proc/self/fd/{}/{}", directory, path);
}

/// Sets `whole` to the absolute path without resolving symbolic links in `path`. Returns false if it is too long or the
/// directory is unknown.
bool absolute(int directory, const char* path, std::array<char, 2 * PATH_MAX>& whole) {
  std::size_t used = 0;
  if (path[0] != '/') {
    std::array<char, 40> link{"/proc/self/cwd"};
    if (directory != AT_FDCWD) (void)std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", directory);
    const ssize_t length = ::readlink(link.data(), whole.data(), PATH_MAX);
    if (length <= 0) return false;
    used = static_cast<std::size_t>(length);
    whole[used++] = '/';
  }
  while (path[0] == '.' && path[1] == '/')
    for (path += 2; *path == '/'; ++path) {
    }
  const std::size_t rest = std::strlen(path);
  if (rest >= PATH_MAX) return false;
  std::memcpy(whole.data() + used, path, rest + 1);
  return true;
}

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

constinit bool are_files = true;

__attribute__((constructor(102))) void load() {
  are_files = runtime::setting("IOSIG_TRACE_CONTAINERS") != "directories" || runtime::has_bindings();
}

bool has_manifest(int directory, const char* path) {
  if (!are_files || !is_string(path)) return false;
  struct stat status {};
  return with_manifest_of(
             path,
             [&](const char* manifest) { return ::fstatat(directory, manifest, &status, AT_SYMLINK_NOFOLLOW); }) == 0 &&
         S_ISREG(status.st_mode);
}

/// Cuts `path` to its directory part. Returns false if it has none, or if that is the root.
bool cut_to_parent(char* path) {
  std::string_view rest(path);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t slash = rest.rfind('/');
  if (slash == std::string_view::npos) return false;
  rest = rest.substr(0, slash);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.empty()) return false;
  path[rest.size()] = '\0';
  return true;
}

/// Returns the result of use(copy of `path`). As for with_manifest_of().
template <class Use>
[[gnu::noinline]] bool with_copy_of(const char* path, Use use) {
  if (!is_string(path)) return false;
  const std::size_t length = std::strlen(path);
  if (length >= PATH_MAX) return false;
  char* const copy = static_cast<char*>(__builtin_alloca(length + 1));
  std::memcpy(copy, path, length + 1);
  return use(copy);
}

/// Returns the number if all of `text` is one, else -1.
int number_in(std::string_view text) {
  int number = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() ? number : -1;
}

bool take(std::string_view& from, std::string_view begin) {
  if (!from.starts_with(begin)) return false;
  from.remove_prefix(begin.size());
  return true;
}

/// Returns the descriptor that a path in /dev or /proc names, or -1.
int descriptor_of(std::string_view name) {
  constexpr std::array<std::string_view, 3> streams = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (std::size_t n = 0; n < streams.size(); ++n)
    if (name == streams[n]) return static_cast<int>(n);
  if (take(name, "/dev/fd/")) return number_in(name);
  if (!take(name, "/proc/")) return -1;
  const auto next = [&name] {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    return part;
  };
  std::string_view part = next();
  if (part != "self" && part != "thread-self" && number_in(part) != ::getpid()) return -1;
  part = next();
  if (part == "task") {
    if (number_in(next()) < 0) return -1;  // all threads share the descriptors
    part = next();
  }
  return part == "fd" ? number_in(name) : -1;
}

/// Reports the error of an operation on reachable(directory, ...) and returns its errno. Replaces /proc/self/fd/N in
/// the message by the directory's path, which the user knows.
int failed(const Error& error, int directory) {
  std::string message = error.message;
  const std::string given = reachable(directory, "");
  if (const std::size_t at = given.empty() ? std::string::npos : message.find(given); at != std::string::npos)
    message.replace(at, given.size(), place_of(directory) + "/");
  say_failure(message);
  return errno_of(error);
}

/// Returns 0 or errno. Prints the message of an error that errno alone does not explain.
int told(const NameResult& done) {
  if (done) return 0;
  if (!done.error().message.empty()) say_failure(done.error().message);
  return done.error().number;
}

/// Whether the parent directory of `path` is not writable. The program then gets errno without a message.
bool is_refused(int directory, const char* path) {
  const std::string_view whole(path);
  const std::size_t slash = whole.rfind('/');
  const std::string parent(slash == std::string_view::npos ? "." : whole.substr(0, slash + 1));
  return ::faccessat(directory, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0;
}

}  // namespace

int access_container(int directory, const char* path, int mode, int flags) {
  return with_manifest_of(
      path, [&](const char* manifest) { return real().faccessat(directory, manifest, mode, flags & AT_EACCESS); });
}

int named_descriptor(const char* path) {
  if (!is_string(path) || path[0] != '/' || (path[1] != 'd' && path[1] != 'p')) return -1;
  const int fd = descriptor_of(path);
  return fd >= 0 && is_ours(fd) ? fd : -1;
}

bool is_string(const char* path) {
  static constinit thread_local const char* known __attribute__((tls_model("initial-exec"))) = nullptr;
  constexpr std::size_t page_bytes = 4096;
  if (path == nullptr || path == known) return path != nullptr;
  for (std::size_t length = 0; length < PATH_MAX;) {
    const char* const at = path + length;
    const std::size_t in_page = page_bytes - reinterpret_cast<std::uintptr_t>(at) % page_bytes;
    if (readable_bytes(at, 1) == 0) return false;
    if (std::memchr(at, 0, in_page) != nullptr) {
      known = path;
      return true;
    }
    length += in_page;
  }
  return false;
}

bool is_empty_string(const char* path) { return is_string(path) && *path == '\0'; }

bool are_containers_files() { return are_files; }

bool is_container_at(int directory, const char* path) {
  const int before = errno;
  const bool found = has_manifest(directory, path);
  errno = before;
  return found;
}

bool is_container_not_link_at(int directory, const char* path) {
  const int before = errno;
  struct stat status {};
  const bool found = ::fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
                     has_manifest(directory, path);
  errno = before;
  return found;
}

bool is_taken_for_directory(int directory, const char* path) {
  if (!is_string(path) || *path == '\0') return false;
  const std::string_view whole(path);
  if (!whole.ends_with('/') && !whole.ends_with("/.")) return false;
  if (!is_container_at(directory, path)) return false;
  errno = ENOTDIR;
  return true;
}

bool would_lie_in_container(int directory, const char* path) {
  if (!with_copy_of(path, [&](char* parent) { return cut_to_parent(parent) && is_container_at(directory, parent); }))
    return false;
  errno = ENOTDIR;
  return true;
}

namespace {

[[gnu::noinline]] int as_below_file_slowly(int done, int directory, const char* path) {
  const bool is_below = with_copy_of(path, [&](char* above) {
    struct stat status {};
    while (cut_to_parent(above)) {
      if (has_manifest(directory, above)) return true;
      if (::fstatat(directory, above, &status, 0) == 0) break;
    }
    return false;
  });
  errno = is_below ? ENOTDIR : ENOENT;
  return done;
}

[[gnu::noinline]] bool is_bound_slowly(int directory, const char* path) {
  const std::string_view name = last_name(path);
  if (name.empty() || name.size() > NAME_MAX || is_hidden_name(name)) return false;
  bool is_bound = false;
  return runtime::run_isolated([&] {
           std::array<char, 2 * PATH_MAX> whole;  // too large for the stack of a signal handler
           // The names that the engine makes in and beside a container are longer, and must also fit into PATH_MAX.
           is_bound = absolute(directory, path, whole) && std::strlen(whole.data()) + max_own_name < PATH_MAX &&
                      std::strlen(path) + max_own_name < PATH_MAX && runtime::is_bound(whole.data());
         }) &&
         is_bound;
}

}  // namespace

int as_below_file(int done, int directory, const char* path) {
  return done >= 0 || errno != ENOENT ? done : as_below_file_slowly(done, directory, path);
}

bool is_bound(int directory, const char* path) {
  return runtime::has_bindings() && is_string(path) && is_bound_slowly(directory, path);
}

bool concerns_container(int directory, const char* path, int flags) {
  return is_container_at(directory, path) ||
         ((flags & O_CREAT) != 0 && (is_bound(directory, path) || would_lie_in_container(directory, path)));
}

int make_container(int directory, const char* path, mode_t mode) {
  return run_isolated_step([&] {
    ContainerOptions wanted;
    wanted.mode = mode & 07777;
    std::array<char, 2 * PATH_MAX> whole;
    const auto binding = absolute(directory, path, whole) ? runtime::binding_of(whole.data()) : std::nullopt;
    if (binding) wanted.targets = binding->targets;
    const auto made = create_container(reachable(directory, path), wanted);
    if (!made) {
      if (errno_of(made.error()) == EEXIST) return EEXIST;
      return is_refused(directory, path) ? errno_of(made.error()) : failed(made.error(), directory);
    }
    return 0;
  });
}

int open_directory_at(int directory, const char* path, int flags) {
  return ::openat(directory, *path == '\0' ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

int unlink_container_at(int directory, const char* path) {
  return run_isolated_step([&] { return told(unlink_at({directory, path})); });
}

int remove_directory_at(int directory, const char* path) {
  return run_isolated_step([&] { return told(unlink_at({directory, path}, AT_REMOVEDIR)); });
}

int rename_container_at(int from, const char* path, int to, const char* name, unsigned flags) {
  return run_isolated_step([&] { return told(rename_at({from, path}, {to, name}, flags)); });
}

}  // namespace iosig::preload
