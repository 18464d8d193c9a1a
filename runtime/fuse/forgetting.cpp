#include "forgetting.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace iosig::fuse {
namespace {

constexpr std::size_t batch = 64;
constexpr int wait_us = 1000, max_waits = 200;

}  // namespace

void Forgetting::start(fuse_session* session) {
  session_ = session;
  rlimit limit{};
  const rlim_t most = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
  many_ = static_cast<std::size_t>(most / 4);
  too_many_ = static_cast<std::size_t>(most / 2);
  thread_ = std::thread(&Forgetting::run, this);
}

void Forgetting::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Forgetting::looked_up() {
  if (inodes_.count() <= many_) return;
  {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_one();
  // One thread must not wait: the kernel's answer is a request, too.
  if (++waiting_ < threads_)
    for (int n = 0; n < max_waits && inodes_.count() > too_many_; ++n) ::usleep(wait_us);
  --waiting_;
}

void Forgetting::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopping_ || is_wanted_; });
    if (is_stopping_) return;
    is_wanted_ = false;
    lock.unlock();
    // Files in use stay: the kernel drops the name and looks it up again when it is used. One round over all files at
    // most, or files in use would keep the thread busy.
    const std::size_t count = inodes_.count(), wanted = count - std::min(count, many_ / 2);
    for (std::size_t done = 0; done < wanted && inodes_.count() > many_ / 2; done += batch)
      for (const Inodes::Name& oldest : inodes_.oldest(batch))
        fuse_lowlevel_notify_inval_entry(session_, oldest.directory, oldest.name.c_str(), oldest.name.size());
    lock.lock();
  }
}

}  // namespace iosig::fuse
