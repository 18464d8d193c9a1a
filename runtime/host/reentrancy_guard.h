// Marks a thread as running inside one of the library's layers. The layer then refuses to be entered again by a signal
// handler of that thread, or through another library.
#pragma once

namespace iosig::runtime {

/// Sets `flag`, the thread-local flag of the layer, until the guard goes out of scope. Converts to false if the flag
/// was already set; then it stays set.
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
