#include "preload/hooks/full.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <mutex>
#include <string>

#include "host/process.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/move_on.h"
#include "preload/files/drained.h"
#include "preload/files/process_files.h"

namespace iosig::preload {
namespace {

/// A file that cannot be moved is not tried again for a second: a program may repeat its write in a loop.
std::atomic<std::uint64_t> refused_inode{0};
std::atomic<std::int64_t> refused_until_s{0};

std::int64_t now_s() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/// Moves the file and tells the user. Must run isolated.
bool move(int fd, std::uint64_t more_bytes) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  const auto inode = static_cast<std::uint64_t>(status.st_ino);
  if (refused_inode == inode && now_s() < refused_until_s) return false;
  const auto moved = move_on(fd, more_bytes);
  if (!moved) {
    refused_inode = inode;
    refused_until_s = now_s() + 1;
    runtime::say_once("full",
                      fmt::format("the storage that was chosen for a file of this program is full, and the file "
                                  "cannot be moved home: {}",
                                  moved.error().message));
    return false;
  }
  if (moved->path.empty()) return true;
  std::string text =
      fmt::format("'{}': '{}' is full; the file is at its own path now ({} copied), and is written there",
                  printable(moved->path), printable(moved->from), about_bytes(static_cast<double>(moved->data_bytes)));
  if (!moved->trouble.empty()) text += fmt::format("; {}", moved->trouble);
  runtime::say_once("full", text);
  return true;
}

}  // namespace

bool has_moved(int fd, int failure, off_t more_bytes) {
  const runtime::ErrnoKept kept;
  if (!is_full(failure) || process_of_now == nullptr || is_stray_child() || runtime::is_disabled() ||
      !leads_to_redirected(fd))
    return false;
  const EngineGuard inside;
  if (!inside) return false;
  bool moved = false;
  (void)run_isolated_step([&] {
    moved = move(fd, static_cast<std::uint64_t>(std::max<off_t>(more_bytes, 0)));
    return 0;
  });
  return moved;
}

/// Example: 4096 of 8192 bytes fit, and the kernel returned that. At home all would have fitted, so the rest is tried:
/// ENOSPC, the file moves, the rest is written there, and the program gets 8192.
ssize_t write_rest(int fd, const void* bytes, size_t count, off_t offset, ssize_t done) {
  const int before = errno;
  if (done < 0 ? !is_full(before) : done == 0 || !leads_to_redirected(fd)) return done;
  const auto write_at = [&](size_t put) {
    const void* const rest = static_cast<const char*>(bytes) + put;
    return offset == at_own_offset ? real().write(fd, rest, count - put)
                                   : real().pwrite(fd, rest, count - put, offset + static_cast<off_t>(put));
  };
  size_t put = static_cast<size_t>(std::max<ssize_t>(done, 0));
  int failure = done < 0 ? before : 0;
  for (bool may_move = true; put < count;) {
    if (failure != 0) {
      if (!may_move || !has_moved(fd, failure, static_cast<off_t>(count - put))) break;
      may_move = false;
    }
    const ssize_t more = write_at(put);
    if (more == 0) break;
    failure = more < 0 ? errno : 0;
    if (more > 0) put += static_cast<size_t>(more);
  }
  errno = put > 0 ? before : failure;
  return put > 0 ? static_cast<ssize_t>(put) : -1;
}

[[gnu::hot]] void watch_stream(int fd) {
  if (fd < 0 || process_of_now == nullptr || !leads_to_redirected(fd) || is_stray_child()) return;
  if (starts_drains()) remember_drained(fd);
  const runtime::ErrnoKept kept;
  const EngineGuard inside;
  if (!inside) return;
  (void)run_isolated_step([] {
    const std::lock_guard lock(process().lock);
    stand_in_for_streams();
    return 0;
  });
}

namespace {

/// A shell may have redirected them.
__attribute__((constructor(103))) void watch_standard_streams() {
  watch_stream(STDOUT_FILENO);
  watch_stream(STDERR_FILENO);
}

}  // namespace
}  // namespace iosig::preload
