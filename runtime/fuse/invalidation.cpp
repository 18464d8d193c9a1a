#include "invalidation.h"

namespace iosig::fuse {

void Invalidation::start(fuse_session* session) {
  session_ = session;
  thread_ = std::thread(&Invalidation::run, this);
}

void Invalidation::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Invalidation::answer_write(fuse_req_t request, fuse_ino_t number, off_t offset, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    written_.push({request, number, offset, bytes, TracedRequest::take()});
  }
  changed_.notify_one();
}

void Invalidation::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopping_ || !written_.empty(); });
    if (written_.empty()) return;
    Written next = std::move(written_.front());
    written_.pop();
    lock.unlock();
    fuse_lowlevel_notify_inval_inode(session_, next.number, next.offset, static_cast<off_t>(next.bytes));
    TracedRequest::put(std::move(next.traced));
    fuse_reply_write(next.request, next.bytes);
    lock.lock();
  }
}

}  // namespace iosig::fuse
