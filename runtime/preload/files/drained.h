// Files that `prepare --drain` wants at home once they are closed: the library remembers this process's descriptors of
// them, and starts the drain when the last one is closed, if none is at work (enact/drain_request.h). The drain is a
// process of its own (host/unseen_process.h), which waits while other processes have the file open.
//
// A descriptor that the program inherited beyond stdout and stderr is not remembered. A process that is killed starts
// nothing; `finalize` brings its files home as ever.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "preload/engine/engine_fds.h"

namespace iosig::preload {

extern std::array<std::atomic<std::uint64_t>, max_fds>
    drained_ids;                                    ///< id of the redirect behind a descriptor; 0: none
extern constinit std::atomic<int> last_drained_fd;  ///< the largest that ever was one; -1: none

[[nodiscard]] inline bool is_drained(int fd) {
  return fd >= 0 && fd <= last_drained_fd.load(std::memory_order_relaxed) &&
         drained_ids[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != 0;
}

/// Whether this process can start drains at all: `iosig run` has said by which program.
[[nodiscard]] bool starts_drains();
/// The same, and whether there is a wish in the journal, which is looked up once a second: the first look at each file
/// costs as much as its open.
[[nodiscard]] bool may_start_drains();
/// Called after a file was opened to write, or an inherited descriptor was found: remembers it. Keeps errno.
void remember_drained(int fd);
inline void opened_to_write(int fd, int flags) {
  if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY && may_start_drains()) remember_drained(fd);
}
/// Called after the kernel has made `fd` a duplicate of `of`.
inline void duplicated_drained(int fd, int of) {
  if (fd < 0 || static_cast<unsigned>(fd) >= max_fds || (!is_drained(of) && !is_drained(fd))) return;
  drained_ids[static_cast<unsigned>(fd)].store(is_drained(of) ? drained_ids[static_cast<unsigned>(of)].load() : 0);
  for (int last = last_drained_fd; last < fd && !last_drained_fd.compare_exchange_weak(last, fd);) {
  }
}

/// The end of a descriptor, or of its use of a number: forgets it before the call, and starts the drain after it if it
/// was the process's last one of its file.
class Closing {
 public:
  explicit Closing(int fd) : id_(is_drained(fd) ? forget(fd) : 0) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() {
    if (id_ != 0) start();
  }

 private:
  [[gnu::cold]] static std::uint64_t forget(int fd);
  [[gnu::cold]] void start() const;
  std::uint64_t id_;
};

/// Before the process ends, or executes another program and so closes what is close-on-exec: starts the drains of the
/// files behind the descriptors that will be closed. They wait for that.
enum class Before { exit, exec };
void start_drains(Before what);

}  // namespace iosig::preload
