// Starts a program from within the host, which does not notice: it gets no SIGCHLD, and its wait(2) returns no process
// that it did not start.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace iosig::runtime {

struct UnseenProgram {
  const char* const* words;        ///< the first is an absolute path; ends with a null pointer
  const char* const* environment;  ///< ends with a null pointer
  int output = -1;                 ///< its stdout; -1: /dev/null
  bool is_awaited = false;         ///< the destructor waits for its end; else only for its start
};

/// A child of this process: shares its memory, but none of its descriptors. It starts the program, because execve(2)
/// would make the child itself one that sends SIGCHLD and that wait(2) returns.
///
/// A program that is not awaited becomes a child of init when this child ends. In a process that takes the place of
/// init for its descendants it would be seen after all: inherits_orphans().
class UnseenProcess {
 public:
  /// Uses no memory of the allocator's, and is safe in signal handlers.
  explicit UnseenProcess(const UnseenProgram& program);
  UnseenProcess(const UnseenProcess&) = delete;
  UnseenProcess& operator=(const UnseenProcess&) = delete;
  ~UnseenProcess();
  /// Whether the child runs.
  explicit operator bool() const { return child_ > 0; }

 private:
  struct Arguments {
    UnseenProgram program;
    std::byte* stack_end;
  };
  static int become_program(void* arguments);
  static int start_program(void* arguments);

  Arguments arguments_;
  void* stack_;
  int child_ = -1;
};

/// Whether this process becomes the parent of the processes that its children leave behind (PR_SET_CHILD_SUBREAPER, or
/// process 1 of a container).
[[nodiscard]] bool inherits_orphans();

}  // namespace iosig::runtime
