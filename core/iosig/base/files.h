// Files without domain knowledge: an owned descriptor, whole-file reads, replacement that is never half done.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
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

/// "cannot open '/x': No such file or directory" as ErrorKind::system, from errno, which the error bears.
[[nodiscard]] tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path);
[[nodiscard]] tl::unexpected<Error> system_failure(std::string_view doing, std::string_view path, int error_number);

/// As system_failure, but `infeasible` when there is no room or no quota.
[[nodiscard]] tl::unexpected<Error> write_failure(std::string_view doing, std::string_view path, int error_number);

/// The whole file. Refuses more than `limit_bytes`, directories and devices.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::uint64_t limit_bytes = 64u << 20);
/// The same for the file `name` in `directory`, which must be no link; messages call it `shown`. Leaves the time of its
/// last access as it is where the caller owns it.
[[nodiscard]] Result<std::string> read_file_in(const Fd& directory, const std::string& name, std::string_view shown,
                                               std::uint64_t limit_bytes);

/// Replaces `path` by a file that holds `content`: written beside it, synced, renamed. Missing directories are made
/// (0700); this user's own former file leaves its mode to the new one.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view content);

/// Writes `content` to what a person has named as output. A regular file, or none, as replace_file does, where the
/// symbolic links of `path` lead; what may not be written to is left alone. A pipe, a device or this process's own
/// standard output or error is written to instead.
[[nodiscard]] Result<void> write_output(const std::string& path, std::string_view content);

/// Whether both are one regular file that is there; "-" is standard input.
[[nodiscard]] bool is_same_file(const std::string& one, const std::string& other);

/// All of `data` or an error; retries short and interrupted writes.
[[nodiscard]] Result<void> write_all(int fd, std::string_view data, std::string_view path);

/// Whether both descriptors are of one file.
[[nodiscard]] bool is_same_inode(const Fd& one, const Fd& other);
[[nodiscard]] bool is_same_inode(const struct stat& one, const struct stat& other);

/// Removes what is at `path` and all below it, as far as that is possible; follows no links.
void remove_tree(const std::string& path);

/// To open a directory for what is in it, never through a link.
inline constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

/// Has the empty file that is open as `fd` written in place where the file system would write each block anew (btrfs):
/// what is reserved for it then holds, so that a store into its mapped pages finds room.
void write_in_place(int fd);

/// The names in the open `directory` (O_PATH will do), but "." and ".."; in no order.
[[nodiscard]] Result<std::vector<std::string>> names_in(const Fd& directory);
/// Those of symbolic links, and of what the file system gives no type for in the listing.
[[nodiscard]] Result<std::vector<std::string>> link_names_in(const Fd& directory);

/// `mkdir -p` with mode 0700 for each directory that was missing.
[[nodiscard]] Result<void> make_directories(const std::string& path);

/// Free bytes for this user on the file system of `path` (statvfs); 0 also when it can hold no more files.
[[nodiscard]] Result<std::uint64_t> free_bytes_at(const std::string& path);

// A program that runs with more rights than its user has (set-uid) does not follow that user's environment in these.
/// $HOME, or the password file's entry when it is not set; nothing when there is neither.
[[nodiscard]] std::string home_directory();
/// `$XDG_STATE_HOME/iosig` or `~/.local/state/iosig` (IOSIG_STATE overrides): journal. Empty: nowhere to write.
[[nodiscard]] std::string state_directory();
/// `$XDG_CONFIG_HOME/iosig` or `~/.config/iosig`: storage.toml, rules. Empty: there is no home.
[[nodiscard]] std::string config_directory();

}  // namespace iosig
