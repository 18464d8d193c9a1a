// What open_file.h is made of: all the containers and files of this process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "preload/files/open_file.h"

namespace iosig::preload {

/// The process's containers and files. Never destroyed: programs write to the very end, and a child by fork leaves its
/// parent's alone.
struct Process {
  std::mutex lock;  ///< of all that follows, and of changes of open_files
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SharedContainer>> containers;
  std::weak_ptr<SharedContainer> looked_at;
  std::vector<OpenFile*> files;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Fd> record_locks;  ///< by the container's device and inode
  std::atomic<bool> has_record_locks{false};
  pid_t pid = ::getpid();
};

extern Process* process_of_now;   ///< null until this library is loaded
extern std::atomic<int> last_fd;  ///< the largest that ever was a container's

inline Process& process() { return *process_of_now; }

/// With the process's lock held. null: there is no memory.
[[nodiscard]] OpenFile* new_file();

/// `fd` stands for `file` from now on.
void set(int fd, OpenFile* file);

/// Finds the containers of the placeholders that this program was started with. The caller holds the process's lock;
/// runs isolated.
void adopt_inherited();

}  // namespace iosig::preload
