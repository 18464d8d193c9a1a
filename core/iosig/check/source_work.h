// A bound on what one source may cost. Macros that double, files that include themselves and statements in statements
// can ask for more than a machine has; whoever reads a source spends before each piece of work, and stops when told.
#pragma once

#include <cstddef>

namespace iosig {

/// Counted in bytes lexed, some nanoseconds each; other work as many of them as take as long.
class SourceWork {
 public:
  static constexpr std::size_t token = 16;  ///< to make, copy or look at one

  explicit SourceWork(std::size_t most) : most_(most), left_(most) {}

  /// False: this is not to be done, nor anything after it.
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
