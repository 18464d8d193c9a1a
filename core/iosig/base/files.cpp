#include "iosig/base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "iosig/base/kept_fds.h"
#include "iosig/base/signals.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// Returns the value of an environment variable if it is an absolute path; else an empty text.
[[gnu::hot]] std::string_view path_in_environment(const char* variable) {
  const char* const value = variable == nullptr ? nullptr : ::secure_getenv(variable);
  return value != nullptr && value[0] == '/' ? value : std::string_view{};
}

[[gnu::hot]] NamedDirectory named_directory(const char* override_name, const char* xdg_name,
                                            std::string_view below_home) {
  if (const auto set = path_in_environment(override_name); !set.empty()) return {.root = set, .below = ""};
  if (const auto xdg = path_in_environment(xdg_name); !xdg.empty()) return {.root = xdg, .below = "/iosig"};
  return {.root = path_in_environment("HOME"), .below = below_home};
}

std::string joined(const NamedDirectory& named) {
  if (!named.root.empty()) return fmt::format("{}{}", named.root, named.below);
  const std::string home = home_directory();
  return home.empty() ? home : fmt::format("{}{}", home, named.below);
}

/// Checks the type before opening, because opening alone activates some devices, and again afterwards.
Result<std::string> read_at(int directory, const std::string& name, int flags, std::string_view shown,
                            std::uint64_t limit_bytes) {
  struct stat status {};
  const auto is_regular = [&] { return S_ISREG(status.st_mode); };
  const auto refuse = [&] { return fail(ErrorKind::system, "'{}' is not a regular file", printable(shown)); };
  if (::fstatat(directory, name.c_str(), &status, flags == 0 ? 0 : AT_SYMLINK_NOFOLLOW) != 0)
    return system_failure("open", shown);
  if (!is_regular()) return refuse();
  const auto open = [&](int more) {
    return open_file_at(directory, name.c_str(), O_RDONLY | O_NONBLOCK | flags | more);
  };
  Fd fd = flags == 0 ? open(0) : open(O_NOATIME);  // only the owner may use O_NOATIME
  if (!fd && errno == EPERM) fd = open(0);
  if (!fd) return system_failure("open", shown);
  if (::fstat(fd.get(), &status) != 0) return system_failure("inspect", shown);
  if (!is_regular()) return refuse();
  std::string content;
  std::string piece(1 << 16, '\0');  // not on the stack: threads of host programs may have small ones
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", shown);
    if (got == 0) return content;
    content.append(piece, 0, static_cast<std::size_t>(got));
    if (content.size() > limit_bytes)
      return fail(ErrorKind::bad_input, "'{}' is larger than {} bytes, the limit for such a file", printable(shown),
                  limit_bytes);
  }
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path, int error_number) {
  const char* why = ::strerrordesc_np(error_number);  // unlike strerror, it allocates nothing
  return fail_with_errno(error_number, ErrorKind::system, "cannot {} '{}': {}", doing, printable(path),
                         why != nullptr ? why : "unknown error");
}

tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path) {
  return system_failure(doing, path, errno);
}

tl::unexpected<Error> write_failure(std::string_view doing, std::string_view path, int error_number) {
  auto failure = system_failure(doing, path, error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) failure.value().kind = ErrorKind::infeasible;
  return failure;
}

Result<std::string> read_file(const std::string& path, std::uint64_t limit_bytes) {
  return read_at(AT_FDCWD, path, 0, path, limit_bytes);
}

bool is_transient(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == EINTR;
}

Result<std::string> read_file_in(const Fd& directory, const std::string& name, std::string_view shown,
                                 std::uint64_t limit_bytes) {
  return read_at(directory.get(), name, O_NOFOLLOW, shown, limit_bytes);
}

bool is_same_inode(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

bool is_same_inode(const Fd& one, const Fd& other) {
  struct stat a {
  }, b{};
  return ::fstat(one.get(), &a) == 0 && ::fstat(other.get(), &b) == 0 && is_same_inode(a, b);
}

Result<void> write_all(int fd, std::string_view data, std::string_view path) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_failure("write", path);
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

void write_in_place(int fd) {
  const int errno_before = errno;
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags |= FS_NOCOW_FL) != 0)
    (void)::ioctl(fd, FS_IOC_SETFLAGS, &flags);  // fails where it does not apply
  errno = errno_before;
}

namespace {

Result<std::vector<std::string>> list(const Fd& directory, bool links_only) {
  const auto failure = [&] { return system_failure("list", fmt::format("/proc/self/fd/{}", directory.get())); };
  Fd fd = open_file_at(directory.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!fd) return failure();
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::fdopendir(fd.get()), ::closedir);
  if (!listed) return failure();
  (void)fd.release();  // closedir() closes it
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(listed.get());
    if (item == nullptr && errno != 0) return failure();
    if (item == nullptr) return names;
    if (links_only && item->d_type != DT_LNK && item->d_type != DT_UNKNOWN) continue;
    if (const std::string_view name = item->d_name; name != "." && name != "..") names.emplace_back(name);
  }
}

}  // namespace

Result<std::vector<std::string>> names_in(const Fd& directory) { return list(directory, /*links_only=*/false); }
Result<std::vector<std::string>> link_names_in(const Fd& directory) { return list(directory, /*links_only=*/true); }

Result<void> make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0) {
      (void)::chmod(part.c_str(), 0700);  // independent of the umask
    } else if (errno != EEXIST) {
      struct stat status {};
      // An existing parent that we cannot write (or an automounter's) is no obstacle.
      const int failure = errno;
      if (::stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        return system_failure("make the directory", part, failure);
    }
    if (end == std::string::npos) return {};
  }
}

Result<void> replace_file_in(const Fd& directory, const std::string& name, std::string_view content,
                             const Replacement& how) {
  const char* const draft = how.draft.c_str();
  if (exceeds_size_limit(static_cast<std::int64_t>(content.size()))) return write_failure("write", how.shown, EFBIG);
  const SignalsLater until_renamed;  // ^C leaves no draft
  if (::unlinkat(directory.get(), draft, 0) != 0 && errno != ENOENT) return system_failure("replace", how.shown);
  const Fd fd = open_file_at(directory.get(), draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!fd) return write_failure("make", how.shown, errno);
  auto done = write_all(fd.get(), content, how.shown);
  if (done && ::fchmod(fd.get(), how.mode) != 0) done = system_failure("change the mode of", how.shown);
  if (done && how.before_sync) done = how.before_sync(fd.get());
  if (done && ::fsync(fd.get()) != 0) done = system_failure("sync", how.shown);
  if (done && ::renameat(directory.get(), draft, directory.get(), name.c_str()) != 0)
    done = system_failure("replace", how.shown);
  if (!done) {
    (void)::unlinkat(directory.get(), draft, 0);
    return done;
  }
  const Fd to_sync = open_file_at(directory.get(), ".", O_RDONLY | O_DIRECTORY);
  if (to_sync && ::fsync(to_sync.get()) != 0) return system_failure("sync the directory of", how.shown);
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> count{0};
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (auto made = make_directories(directory); !made) return made;
  const Fd parent = open_file_at(AT_FDCWD, directory.c_str(), O_PATH | O_DIRECTORY);
  if (!parent) return system_failure("open", directory);
  struct stat old {};
  const bool had_one = ::fstatat(parent.get(), name.c_str(), &old, 0) == 0 && S_ISREG(old.st_mode) &&
                       old.st_uid == ::geteuid();  // another user's mode would be that user's choice
  const std::string draft = fmt::format(".{}.{}.{}", name.substr(0, 200), ::getpid(), count++);
  return replace_file_in(parent, name, content,
                         {.draft = draft, .mode = had_one ? old.st_mode & 0777 : 0644, .shown = path});
}

Result<void> write_output(const std::string& path, std::string_view content) {
  Fd fd = open_file_at(AT_FDCWD, path.c_str(), O_WRONLY | O_NOCTTY);
  struct stat found {};
  if (!fd && errno == ENOENT) {
    if (::lstat(path.c_str(), &found) != 0) return replace_file(path, content);
    fd = open_file_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_NOCTTY, 0644);  // a dangling link
  }
  if (!fd) return system_failure("open", path);
  if (::fstat(fd.get(), &found) != 0) return system_failure("inspect", path);
  for (const int mine : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat status {};
    if (::fstat(mine, &status) == 0 && status.st_dev == found.st_dev && status.st_ino == found.st_ino)
      return write_all(mine, content, path);  // a second descriptor would start at offset 0
  }
  if (!S_ISREG(found.st_mode)) return write_all(fd.get(), content, path);
  const std::unique_ptr<char, void (*)(void*)> place(::realpath(path.c_str(), nullptr), std::free);
  if (!place) return system_failure("find", path);
  return replace_file(place.get(), content);
}

bool is_same_file(const std::string& one, const std::string& other) {
  const auto look = [](const std::string& path, struct stat& status) {
    return (path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) == 0;
  };
  struct stat a {
  }, b{};
  return look(one, a) && look(other, b) && S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<std::uint64_t> free_bytes_at(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return system_failure("ask the free space of", path);
  // Not even its size is told by ramfs and many file systems of FUSE.
  if (status.f_blocks == 0) return system_failure("ask the free space of", path, ENOSYS);
  if (status.f_files != 0 && status.f_favail == 0) return 0;
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

Result<std::uint64_t> total_bytes_at(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return system_failure("ask the size of", path);
  return static_cast<std::uint64_t>(status.f_blocks) * status.f_frsize;
}

std::string home_directory() {
  if (const auto home = path_in_environment("HOME"); !home.empty()) return std::string(home);
  struct passwd entry {};
  struct passwd* found = nullptr;
  char space[4096];
  if (::getpwuid_r(::geteuid(), &entry, space, sizeof space, &found) == 0 && found != nullptr && entry.pw_dir[0] == '/')
    return entry.pw_dir;
  return {};
}

[[gnu::hot]] NamedDirectory state_directory_in_environment() {
  return named_directory("IOSIG_STATE", "XDG_STATE_HOME", "/.local/state/iosig");
}
std::string state_directory() { return joined(state_directory_in_environment()); }
std::string config_directory() { return joined(named_directory(nullptr, "XDG_CONFIG_HOME", "/.config/iosig")); }

}  // namespace iosig
