// The tables behind open_file.h: all open containers and files of this process.
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

/// The process's containers and files. Never destroyed, because programs write until the very end of the process, and a
/// child made by fork() must not touch its parent's objects.
struct Process {
  std::mutex lock;  ///< protects the members below and all changes of open_files
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SharedContainer>> containers;
  std::map<std::pair<dev_t, ino_t>, std::shared_ptr<UnsyncedWriters>> unsynced;  ///< of all containers that were open
  std::weak_ptr<SharedContainer> looked_at;
  std::vector<OpenFile*> files;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Fd> record_locks;  ///< by the container's device and inode
  std::atomic<bool> has_record_locks{false};
  pid_t pid = ::getpid();
};

extern Process* process_of_now;   ///< null until this library's constructor has run
extern std::atomic<int> last_fd;  ///< the largest descriptor that ever referred to a container

inline Process& process() { return *process_of_now; }

/// Returns an unused OpenFile, or null if there is no memory. The caller holds the process's lock and runs isolated.
[[nodiscard]] OpenFile* new_file();

/// Makes `fd` refer to `file`, or to no container if `file` is null. Releases what it referred to before, and returns
/// what release() does.
int set(int fd, OpenFile* file);

/// Makes the FILE streams of libc reach containers (hooks/calls_stdio.cpp). The caller holds the process's lock and
/// runs isolated.
void stand_in_for_streams();

/// Whether this program may have inherited a placeholder, or a descriptor of an engine, through execve(2). Quick: most
/// programs have not.
[[nodiscard]] bool may_have_inherited();
/// Finds the containers of the placeholders that this program inherited through execve(2). The caller holds the
/// process's lock and runs isolated.
void adopt_inherited();

}  // namespace iosig::preload
