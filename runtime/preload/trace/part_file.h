// The file of a thread's part. The program is to notice nothing of its descriptor: it has a large number, the library's
// close(2) and dup2(2) refuse it, and children do not inherit it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "preload/trace/recorder.h"

namespace iosig::preload::trace {

/// Calls is_done() until it returns true, for a quarter of a second at most: the thread that it waits for may be one
/// that a handler of SIGSYS has interrupted, or may not exist any more.
template <class IsDone>
[[nodiscard]] bool is_soon(const IsDone& is_done) {
  constexpr int tries = 1000;
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 250'000};
  for (int n = 0; n < tries; ++n) {
    if (is_done()) return true;
    ::syscall(SYS_nanosleep, &moment, nullptr);
  }
  return false;
}

/// Creates the part's file at `path` and sets its device and inode. Returns a descriptor that the program does not get
/// and cannot close; -1 with errno: EBUSY if the program has replaced it meanwhile.
[[nodiscard]] long create_file(ThreadPart& part, const char* path);

/// Closes a descriptor of create_file().
void close_file(long fd);

/// Keeps the part's file open, unless the parts have a quarter of the process's descriptors already. A part without
/// one opens its file for each use, which costs a moment in which a small number is taken.
void keep_file(ThreadPart& part, long fd);

/// The part's file while it is used; it is opened at `path` if it is not kept open.
class UsedFile {
 public:
  UsedFile(ThreadPart& part, const char* path);
  ~UsedFile();
  UsedFile(const UsedFile&) = delete;
  UsedFile& operator=(const UsedFile&) = delete;
  /// -1: no descriptor is free, or the file's name is gone, or leads to another file by now.
  [[nodiscard]] long fd() const { return fd_; }

 private:
  ThreadPart& part_;
  long fd_;
};

/// Writes all bytes at `offset` of the part's file.
[[nodiscard]] bool put_in_file(ThreadPart& part, const char* path, const void* bytes, std::size_t count,
                               std::uint64_t offset);

/// Makes the file's bytes from `first` to `end` real: a mapped hole of a full file system would be a SIGBUS.
[[nodiscard]] bool fill_file(long fd, std::size_t first, std::size_t end);

/// For the handlers of pthread_atfork(3): no thread is about to open a part's file during a fork(), whose child would
/// inherit the descriptor. The caller holds the process's lock.
void hold_opens_at_fork();
void release_opens_after_fork(bool is_child);

}  // namespace iosig::preload::trace
