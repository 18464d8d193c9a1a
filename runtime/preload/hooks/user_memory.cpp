#include "preload/hooks/user_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace iosig::preload {
namespace {

constexpr std::size_t page_bytes = 4096, word_bytes = 8;
constexpr std::size_t few_bytes = 4 * page_bytes;
constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which glibc has no name for yet

// Address 0 is never passed to the kernel, which takes it for an absent argument.

/// rt_sigprocmask reads 8 bytes and then rejects the unknown operation.
bool can_read_word(std::uintptr_t at) {
  constexpr int nothing = -1;
  return at != 0 && (::syscall(SYS_rt_sigprocmask, nothing, at, nullptr, word_bytes) == 0 || errno != EFAULT);
}

/// rt_sigprocmask writes 8 bytes, the signal mask of the thread.
bool can_write_word(std::uintptr_t at) {
  return at != 0 && (::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, at, word_bytes) == 0 || errno != EFAULT);
}

std::uintptr_t next_page(std::uintptr_t at) { return (at & ~(page_bytes - 1)) + page_bytes; }

bool can_write(std::byte* memory, std::size_t count) {
  if (count < word_bytes) return ::syscall(SYS_getrandom, memory, count, 0) >= 0 || errno != EFAULT;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + count;
  if (end < begin) return false;
  if (count > few_bytes) {
    const std::uintptr_t first = begin & ~(page_bytes - 1);
    if (::syscall(SYS_madvise, first, end - first, populate_write) == 0) return true;
    if (errno != EINVAL) return errno != ENOMEM && errno != EFAULT;  // EINVAL: an old kernel, or not writable
  }
  for (std::uintptr_t at = begin; at < end; at = next_page(at))
    if (!can_write_word(std::min(at, end - word_bytes))) return false;
  return true;
}

}  // namespace

std::size_t readable_bytes(const void* memory, std::size_t count) {
  const int errno_before = errno;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  std::uintptr_t at = begin;
  while (at - begin < count && can_read_word(at & ~(word_bytes - 1))) at = next_page(at);
  errno = errno_before;
  return std::min(at - begin, count);
}

bool fill_with_zeros_if_there(std::byte* memory, std::size_t count) {
  const int errno_before = errno;
  const bool is_there = count == 0 || can_write(memory, count);
  errno = errno_before;
  if (is_there) std::memset(memory, 0, count);
  return is_there;
}

}  // namespace iosig::preload
