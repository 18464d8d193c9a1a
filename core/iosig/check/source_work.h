// A limit on the work for one source. Macros that double, files that include themselves and nested statements can
// exceed any machine. Every step spends work before it runs, and stops when none is left.
#pragma once

#include <cstddef>

namespace iosig {

/// Measured in bytes lexed, some nanoseconds each; other work counts as the number of bytes that take as long.
class SourceWork {
 public:
  static constexpr std::size_t token = 16;  ///< for creating, copying or inspecting a token

  explicit SourceWork(std::size_t most) : most_(most), left_(most) {}

  /// Returns false if neither this nor any further work may be done.
  bool spend(std::size_t work) {
    if (work > left_) stop();
    if (!is_spent_) left_ -= work;
    return !is_spent_;
  }
  void stop() { is_spent_ = true; }

  [[nodiscard]] bool is_spent() const { return is_spent_; }
  [[nodiscard]] std::size_t done() const { return most_ - left_; }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  std::size_t most_, left_;
  bool is_spent_ = false;
};

}  // namespace iosig
