// The descriptors that the engine keeps open in the program's process: the program may not close or replace them, and a
// child by fork, whose engine begins anew, closes them.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace iosig::preload {

/// Of larger numbers none is remembered.
inline constexpr unsigned max_fds = 1u << 16;

class EngineFds {
 public:
  void add(int fd) {
    if (static_cast<unsigned>(fd) < max_fds) word(fd).fetch_or(bit(fd), std::memory_order_relaxed);
  }
  void remove(int fd) {
    if (static_cast<unsigned>(fd) < max_fds) word(fd).fetch_and(~bit(fd), std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(int fd) const {
    return static_cast<unsigned>(fd) < max_fds &&
           (words_[static_cast<unsigned>(fd) / 64].load(std::memory_order_relaxed) & bit(fd)) != 0;
  }
  /// Calls visit(descriptor) for all, in order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (unsigned n = 0; n < words_.size(); ++n)
      for (std::uint64_t rest = words_[n].load(std::memory_order_relaxed); rest != 0; rest &= rest - 1)
        visit(static_cast<int>(64 * n + static_cast<unsigned>(std::countr_zero(rest))));
  }

 private:
  static std::uint64_t bit(int fd) { return std::uint64_t{1} << (static_cast<unsigned>(fd) % 64); }
  std::atomic<std::uint64_t>& word(int fd) { return words_[static_cast<unsigned>(fd) / 64]; }
  std::array<std::atomic<std::uint64_t>, max_fds / 64> words_{};
};

inline constinit EngineFds engine_fds;

/// The numbers that the engine keeps begin here.
int min_engine_fd();

/// Gives an open descriptor a large number, and close-on-exec; -1 stays -1. Its new number.
int keep_for_engine(int fd);

}  // namespace iosig::preload
