// Asks the kernel to forget files that no program uses, because the daemon has a descriptor for each file that the
// kernel knows, and may have only so many (RLIMIT_NOFILE).
//
// A separate thread does this: the kernel locks a directory to drop a name in it, and the requests in progress there
// must end first.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "inodes.h"

namespace iosig::fuse {

class Forgetting {
 public:
  /// `threads`: that serve requests.
  Forgetting(Inodes& inodes, unsigned threads) : inodes_(inodes), threads_(threads) {}
  ~Forgetting() { stop(); }
  Forgetting(const Forgetting&) = delete;
  Forgetting& operator=(const Forgetting&) = delete;
  void start(fuse_session* session);
  void stop();
  /// Called after the reply to a lookup. Starts the thread's work if the kernel knows many files; waits a little if it
  /// knows far too many.
  void looked_up();

 private:
  void run();

  Inodes& inodes_;
  const unsigned threads_;
  std::atomic<unsigned> waiting_{0};  ///< threads in looked_up()
  fuse_session* session_ = nullptr;
  std::size_t many_ = 0, too_many_ = 0;  ///< files
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false, is_stopping_ = false;
  std::thread thread_;
};

}  // namespace iosig::fuse
