// What a program has for a descriptor of a container: a small file in memory, a placeholder.
//
// So numbers, dup, fork, exec, limits and passing descriptors on are handled by the kernel. It also holds what
// POSIX wants all duplicates to share, in whatever process they are: the offset, and the flags. A program that is
// started anew finds its inherited placeholders by their name, and through them the container, wherever that is by
// then. The kernel refuses to read and write them: what gets past us fails, and is not lost.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string_view>
#include <vector>

namespace iosig::preload {

/// The placeholder's content, mapped by all who share it.
struct SharedState {
  static constexpr std::uint64_t expected_magic = 0x03454c4946584f49;
  std::uint64_t magic = expected_magic;
  std::atomic<std::int64_t> offset{0};
  std::atomic<int> flags{0};            ///< as open(2)'s
  std::uint64_t device = 0, inode = 0;  ///< of the container's directory
  /// Processes that have that directory open: their id << 32 | descriptor; 0: none. What is left of one that was killed
  /// does no harm, since what is found is looked at.
  std::array<std::atomic<std::uint64_t>, 32> holders{};
  /// The number of the descriptor that bears the open file's locks, in processes that have it from the one that opened
  /// the file; -1: there is none.
  std::atomic<int> lock_fd{-1};
  std::array<char, PATH_MAX> path{};  ///< where it was when it was opened
  /// Children by fork that have it, and have not told so in `holders` yet.
  std::atomic<std::uint32_t> begun_children{0};
};
inline constexpr std::size_t placeholder_bytes = 8192;
static_assert(sizeof(SharedState) <= placeholder_bytes);

/// What /proc/self/fd shows of one begins like this.
inline constexpr std::string_view placeholder_link = "/memfd:iosig-container";

/// The name of an open descriptor.
struct FdPath {
  char text[40];
  explicit FdPath(long fd);
};

/// A new one: the descriptor, with the lowest number that is free, and its mapped content. -1 with errno.
[[nodiscard]] int make_placeholder(bool closes_on_exec, SharedState*& state);
/// The content of the one that is open as `fd`; null: it is none.
[[nodiscard]] SharedState* map_placeholder(int fd);
void unmap_placeholder(SharedState* state);

/// This process has the container's directory open as `directory`.
void add_holder(SharedState& state, int directory);
/// It has not any more.
void remove_holder(SharedState& state, int directory);

/// Whether it is where it was when it was opened.
[[nodiscard]] bool is_in_place(const SharedState& state);

/// The container's directory, opened for the engine and held: one of the `inherited` descriptors, which is taken out of
/// them, or where it was, where other processes have it open, or under another name beside where it was. -1: it is not
/// there any more.
[[nodiscard]] int find_directory(const SharedState& state, std::vector<int>& inherited);

}  // namespace iosig::preload
