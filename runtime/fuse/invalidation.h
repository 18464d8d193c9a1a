// Makes the kernel forget what it keeps of a file before a write is answered, so that readers through its cache see the
// write once it has returned.
//
// A thread of its own does it: the kernel waits there for reads that are under way, and those need the threads that
// serve requests.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <queue>
#include <thread>

namespace iosig::fuse {

class Invalidation {
 public:
  ~Invalidation() { stop(); }
  void start(fuse_session* session);
  void stop();
  /// Answers the write of `bytes` at `offset` when the kernel has forgotten the old ones.
  void answer_write(fuse_req_t request, fuse_ino_t number, off_t offset, std::size_t bytes);

 private:
  struct Written {
    fuse_req_t request;
    fuse_ino_t number;
    off_t offset;
    std::size_t bytes;
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
