// Descriptors that are kept open to save time, and are closed when the process needs their numbers.
//
// A process may often open 1024 files (RLIMIT_NOFILE), and most of that belongs to the program. All keepers together
// keep a quarter of the limit. When a process has no free descriptor, open_file_at() closes what the keepers can do
// without, and tries again.
#pragma once

#include <cstddef>
#include <functional>
#include <list>

#include "iosig/base/files.h"

namespace iosig {

/// An owner of descriptors that it can open again. Functions may be called from any thread.
class FdKeeper {
 public:
  /// `close_idle` closes the descriptors that no thread is using and returns their number. It runs in any thread that
  /// needs a descriptor, with any lock held: it must only try to acquire locks, and open no file.
  explicit FdKeeper(std::function<std::size_t()> close_idle);
  FdKeeper(const FdKeeper&) = delete;
  FdKeeper& operator=(const FdKeeper&) = delete;
  /// Waits while `close_idle` runs.
  ~FdKeeper();

  /// Asks to keep `count` more descriptors. If all keepers together have reached their share, the least recent ones
  /// close idle descriptors first. false: keep none; the share is in use.
  [[nodiscard]] bool may_keep(std::size_t count);
  /// Reports that `count` descriptors, which may_keep() allowed, are closed. `close_idle` must not call this.
  void closed(std::size_t count);

 private:
  std::function<std::size_t()> close_idle_;
  std::size_t kept_ = 0;
  std::list<FdKeeper*>::iterator place_;  ///< in the list of all keepers
  unsigned forks_ = 0;                    ///< that had led to the process when it was put there
  friend class Keepers;
};

/// Returns how many descriptors all keepers may have: a quarter of RLIMIT_NOFILE, at most 4096.
[[nodiscard]] std::size_t max_kept_fds();

/// Closes idle descriptors of all keepers. Returns how many.
std::size_t close_idle_fds();

/// openat(2) with O_CLOEXEC. If the process or the system has no free descriptor, closes idle ones and tries again. On
/// failure the result is empty and errno is set.
[[nodiscard]] Fd open_file_at(int directory, const char* path, int flags, unsigned mode = 0);

/// fchmodat(2) that does not follow a symbolic link in the place of the file: it fails with ELOOP. glibc has this flag
/// since 2.32, Linux since 6.6.
[[nodiscard]] int set_mode_at(int directory, const char* name, unsigned mode);

}  // namespace iosig
