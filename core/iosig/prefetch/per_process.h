// A value that each process has for itself: a child made by fork() begins with a new one, because a thread of its
// parent may just have changed the old one. The parent's is left in memory.
#pragma once

#include <unistd.h>

#include <atomic>

namespace iosig::prefetch {

/// get() is called by one thread of a process.
template <class Value>
class PerProcess {
 public:
  PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    if (const Held* const held = held_; held != nullptr && held->process == ::getpid()) delete held;
  }
  Value& get() {
    Held* held = held_.load();
    if (held == nullptr || held->process != ::getpid()) {
      held = new Held{::getpid()};
      held_ = held;
    }
    return held->value;
  }

 private:
  struct Held {
    pid_t process;
    Value value = {};
  };
  std::atomic<Held*> held_{nullptr};
};

}  // namespace iosig::prefetch
