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

void RecentFact::Path::set(std::string_view path) {
  length = path.size();
  std::ranges::copy(path, bytes.begin());
}

bool RecentFact::is_known(const FactSubject& subject) {
  const std::unique_lock held(lock_, std::try_to_lock);
  if (!held || path_.length == 0) return false;
  // The clock goes back for a child in another time namespace, and for a process that goes on on another machine.
  const std::int64_t age_ms = now_in_ms() - found_ms_;
  return age_ms >= 0 && age_ms < longest_known_ms && device_ == subject.device && inode_ == subject.inode &&
         user_ == ::geteuid() && subject.path == path_.view() && subject.directory_path == directory_path_.view();
}

void RecentFact::keep(const FactSubject& subject) {
  const std::unique_lock held(lock_, std::try_to_lock);
  if (!held || !path_.has_room_for(subject.path) || !directory_path_.has_room_for(subject.directory_path)) return;
  found_ms_ = now_in_ms();
  device_ = subject.device;
  inode_ = subject.inode;
  user_ = ::geteuid();
  path_.set(subject.path);
  directory_path_.set(subject.directory_path);
}

}  // namespace iosig
