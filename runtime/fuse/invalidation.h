// Invalidates the kernel's cache of a file before the reply to a write. Readers through that cache therefore see the
// write as soon as it has returned.
//
// A separate thread does this, because the kernel then waits for reads in progress, which the threads that serve
// requests must complete.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <queue>
#include <thread>

#include "traced_requests.h"

namespace iosig::fuse {

class Invalidation {
 public:
  ~Invalidation() { stop(); }
  void start(fuse_session* session);
  void stop();
  /// Replies to a write of `bytes` at `offset` after the kernel has dropped the old bytes from its cache.
  void answer_write(fuse_req_t request, fuse_ino_t number, off_t offset, std::size_t bytes);

 private:
  struct Written {
    fuse_req_t request;
    fuse_ino_t number;
    off_t offset;
    std::size_t bytes;
    TracedRequest traced;
  };
  void run();

  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<Written> written_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace iosig::fuse
