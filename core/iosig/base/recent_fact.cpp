#include "iosig/base/recent_fact.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace iosig {
namespace {

constexpr std::int64_t longest_known_ms = 100;

std::int64_t now_in_ms() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

bool RecentFact::is_known(const FactSubject& subject) {
  const std::unique_lock held(lock_, std::try_to_lock);
  return held && length_ != 0 && now_in_ms() - found_ms_ < longest_known_ms && device_ == subject.device &&
         inode_ == subject.inode && user_ == ::geteuid() && subject.path == std::string_view(path_.data(), length_);
}

void RecentFact::keep(const FactSubject& subject) {
  const std::unique_lock held(lock_, std::try_to_lock);
  if (!held || subject.path.size() > path_.size()) return;
  found_ms_ = now_in_ms();
  device_ = subject.device;
  inode_ = subject.inode;
  user_ = ::geteuid();
  length_ = subject.path.size();
  std::ranges::copy(subject.path, path_.begin());
}

}  // namespace iosig
