// Which program a request comes from, as /proc knows it.
//
// A daemon that looks into /proc while the program waits for it can wait for itself: /proc/PID/environ and cmdline take
// locks that a program may hold across a request, in execve(2) or in a page fault. Only a thread of its own reads these
// two (FactsReader); what the other functions read needs no such lock.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "iosig/trace/part_write.h"

namespace iosig::fuse {

/// A thread, and its process.
struct Requester {
  pid_t pid = 0, parent_pid = 0;
  std::uint64_t thread_began = 0, process_began = 0;  ///< clock ticks since boot
  std::string program = {};                           ///< as program_of()
};

/// Returns the thread's process; nothing if it has ended.
[[nodiscard]] std::optional<Requester> requester_of(pid_t tid);
/// Returns when the thread began; 0: it has ended. With the number, this tells a thread from a later one.
[[nodiscard]] std::uint64_t begin_of(pid_t tid);
/// Returns the path of the program that the thread executes, or its name in brackets: of a thread of the kernel, and of
/// a program that this user may not inspect.
[[nodiscard]] std::string program_of(pid_t tid);
[[nodiscard]] bool is_alive(pid_t pid, pid_t tid);

class FactsReader {
 public:
  FactsReader() : thread_(&FactsReader::run, this) {}
  ~FactsReader();
  FactsReader(const FactsReader&) = delete;
  FactsReader& operator=(const FactsReader&) = delete;
  /// Returns the arguments, rank and job of a process; nothing if they cannot be read, or not within 0.2 s.
  [[nodiscard]] trace::Facts facts_of(pid_t pid);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable asked_, answered_, free_;
  std::optional<pid_t> pid_;            ///< whose facts are read, or could not be read yet; else the reader is free
  std::optional<trace::Facts> answer_;  ///< for `pid_`
  bool is_awaited_ = false, is_over_ = false;
  std::thread thread_;
};

}  // namespace iosig::fuse
