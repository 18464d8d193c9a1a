// A thread that is at work in one of the library's layers, marked so that the layer is not entered again from a signal
// handler, or by way of another library.
#pragma once

namespace iosig::runtime {

/// Sets `flag`, the layer's own for this thread, until it goes out of scope. False: it was set already, and stays.
class ReentrancyGuard {
 public:
  explicit ReentrancyGuard(bool& flag) : flag_(flag), is_first_(!flag) { flag_ = true; }
  ReentrancyGuard(const ReentrancyGuard&) = delete;
  ReentrancyGuard& operator=(const ReentrancyGuard&) = delete;
  ~ReentrancyGuard() {
    if (is_first_) flag_ = false;
  }
  explicit operator bool() const { return is_first_; }

 private:
  bool& flag_;
  bool is_first_;
};

}  // namespace iosig::runtime
