// File operations without domain knowledge: an owned descriptor, reading of whole files, atomic replacement.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// Owns a file descriptor; -1 is none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }  ///< gives up the descriptor without closing it
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Makes the error "cannot open '/x': No such file or directory" of ErrorKind::system; stores errno in it.
[[nodiscard]] tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path);
[[nodiscard]] tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path, int error_number);

/// As system_failure, but `infeasible` for ENOSPC and EDQUOT.
[[nodiscard]] tl::unexpected<Error> write_failure(std::string_view doing, std::string_view path, int error_number);

/// Whether a call that failed with the error may succeed if it is made again: there was no descriptor or no memory, or
/// it was interrupted.
[[nodiscard]] bool is_transient(int error_number);

/// Reads the whole file. Refuses files above `limit_bytes`, directories and devices.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::uint64_t limit_bytes = 64u << 20);
/// As read_file, for the file `name` in `directory`, which must not be a symbolic link; messages call it `shown`.
/// Preserves the access time if the caller owns the file.
[[nodiscard]] Result<std::string> read_file_in(const Fd& directory, const std::string& name, std::string_view shown,
                                               std::uint64_t limit_bytes);

/// How replace_file_in() makes the new file.
struct Replacement {
  std::string draft;     ///< its name in the same directory until it is complete; a leftover of that name is deleted
  unsigned mode = 0600;  ///< whatever the umask
  std::string shown;     ///< the path of the replaced file, for messages
  /// Called with the complete file before it is synced and renamed; a failure gives up.
  std::function<Result<void>(int fd)> before_sync = {};
};
/// Replaces `name` in `directory` (O_PATH suffices) atomically and durably by a file with `content`: writes a draft,
/// syncs it, renames it, syncs the directory. On failure the old file is as it was, and the draft is deleted.
/// `infeasible` if there is no space.
[[nodiscard]] Result<void> replace_file_in(const Fd& directory, const std::string& name, std::string_view content,
                                           const Replacement& how);

/// Replaces `path` atomically by a file with `content`: writes a temporary file in the same directory, syncs it and
/// renames it. Creates missing directories with mode 0700. Keeps the mode of the previous file if this user owns it.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view content);

/// Writes `content` to the output that the user named. Replaces a regular or missing file as replace_file does,
/// following the symbolic links of `path`; fails if an existing file is not writable. Writes in place to pipes, devices
/// and this process's own standard output and error.
[[nodiscard]] Result<void> write_output(const std::string& path, std::string_view content);

/// Returns whether both are the same existing regular file; "-" is standard input.
[[nodiscard]] bool is_same_file(const std::string& one, const std::string& other);

/// Writes all of `data` or fails; retries short and interrupted writes.
[[nodiscard]] Result<void> write_all(int fd, std::string_view data, std::string_view path);

/// Returns whether both descriptors refer to the same file.
[[nodiscard]] bool is_same_inode(const Fd& one, const Fd& other);
[[nodiscard]] bool is_same_inode(const struct stat& one, const struct stat& other);

/// **Deletes `path` and everything below it** as far as possible, ignoring errors. Does not follow symbolic links.
void remove_tree(const std::string& path);

/// Flags for opening a directory for its entries, never through a symbolic link.
inline constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

/// Disables copy-on-write for the empty file open as `fd` on file systems that have it (btrfs). Space reserved for the
/// file then remains valid: stores to its mapped pages cannot fail for lack of space.
void write_in_place(int fd);

/// Returns the names in the open `directory` (O_PATH suffices) except "." and "..", unsorted.
[[nodiscard]] Result<std::vector<std::string>> names_in(const Fd& directory);
/// As names_in, but only symbolic links and entries whose type the file system does not list (DT_UNKNOWN).
[[nodiscard]] Result<std::vector<std::string>> link_names_in(const Fd& directory);

/// Creates the missing directories of `path` with mode 0700, like `mkdir -p`.
[[nodiscard]] Result<void> make_directories(const std::string& path);

/// Returns the bytes available to this user on the file system of `path` (statvfs); 0 also if no inodes are left. Fails
/// where the file system does not even tell its size (ramfs, FUSE without statfs).
[[nodiscard]] Result<std::uint64_t> free_bytes_at(const std::string& path);
/// Returns the size of the file system of `path` in bytes, used ones included (statvfs).
[[nodiscard]] Result<std::uint64_t> total_bytes_at(const std::string& path);

// In a program with elevated privileges (set-uid), these functions ignore the environment.
/// Returns $HOME, or the home directory of the password entry if $HOME is not set; empty if there is neither.
[[nodiscard]] std::string home_directory();
/// Returns `$XDG_STATE_HOME/iosig` or `~/.local/state/iosig` (IOSIG_STATE overrides) for the journal. Empty: no home.
[[nodiscard]] std::string state_directory();
/// The path root + below, in texts of the environment, so that nothing is allocated.
struct NamedDirectory {
  std::string_view root, below;
};
/// The same directory; `root` is empty if only the password entry tells it.
[[nodiscard]] NamedDirectory state_directory_in_environment();
/// Returns `$XDG_CONFIG_HOME/iosig` or `~/.config/iosig` for storage.toml and rules. Empty: no home.
[[nodiscard]] std::string config_directory();

}  // namespace iosig
