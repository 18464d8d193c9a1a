// The placeholder: a small file in memory (memfd) that stands behind each descriptor that the program has of a
// container.
//
// The kernel therefore handles descriptor numbers, dup, fork, exec, limits, and passing descriptors to other processes.
// The placeholder also stores the state that all duplicates share in POSIX, in any process: the file offset and the
// flags. After execve(2) a program finds its inherited placeholders by their name, and through them the containers,
// even if those were moved. The kernel refuses to read and write placeholders: a call that this library does not
// intercept fails, and its bytes are not lost silently.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string_view>
#include <vector>

namespace iosig::preload {

/// The content of a placeholder. All processes that share the placeholder map it.
struct SharedState {
  static constexpr std::uint64_t expected_magic = 0x03454c4946584f49;
  std::uint64_t magic = expected_magic;
  std::atomic<std::int64_t> offset{0};
  std::atomic<int> flags{0};            ///< of open(2)
  std::uint64_t device = 0, inode = 0;  ///< of the container's directory
  /// Processes that have that directory open: process id << 32 | descriptor; 0: free. Entries of killed processes are
  /// harmless, because every reader verifies the directory that it finds.
  std::array<std::atomic<std::uint64_t>, 32> holders{};
  /// The descriptor that bears the open file's locks, in processes that inherited it from the process that opened the
  /// file; -1: there is none.
  std::atomic<int> lock_fd{-1};
  std::array<char, PATH_MAX> path{};  ///< of the container's directory when it was opened
  /// Number of children made by fork() that have the file but are not in `holders` yet.
  std::atomic<std::uint32_t> begun_children{0};
};
inline constexpr std::size_t placeholder_bytes = 8192;
static_assert(sizeof(SharedState) <= placeholder_bytes);

/// The beginning of a placeholder's link in /proc/self/fd.
inline constexpr std::string_view placeholder_link = "/memfd:iosig-container";

/// The path /proc/self/fd/N of an open descriptor.
struct FdPath {
  char text[40];
  explicit FdPath(long fd);
};

/// Makes a placeholder and maps its content as `state`. Returns its descriptor, the lowest free number; -1 with errno.
[[nodiscard]] int make_placeholder(bool closes_on_exec, SharedState*& state);
/// Maps the content of the placeholder that is open as `fd`. Returns null if `fd` is not a placeholder.
[[nodiscard]] SharedState* map_placeholder(int fd);
void unmap_placeholder(SharedState* state);

/// Records that this process has the container's directory open as `directory`.
void add_holder(SharedState& state, int directory);
/// Removes that record.
void remove_holder(SharedState& state, int directory);

/// Whether the container is still at the path at which it was opened.
[[nodiscard]] bool is_in_place(const SharedState& state);

/// Returns a descriptor of the container's directory, held (container/admin/removal.h), for the engine. Takes one of
/// the `inherited` descriptors and removes it from the list, or opens the directory: at its old path, through a process
/// that has it open, or under another name in the same parent directory. Returns -1 if the directory is not found.
[[nodiscard]] int find_directory(const SharedState& state, std::vector<int>& inherited);

}  // namespace iosig::preload
