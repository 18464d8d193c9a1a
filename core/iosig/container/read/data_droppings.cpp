#include "iosig/container/read/data_droppings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "iosig/base/text.h"

namespace iosig {

DataDroppings::DataDroppings(const ContainerDirectory& directory) : directory_(directory) {
  for (auto& fd : fds_) fd = -1;
}

Result<int> DataDroppings::open(std::int64_t id, Fd& temporary) {
  const std::lock_guard lock(mutex_);
  if (const auto known = open_.find(id); known != open_.end()) return known->second.get();
  auto opened = open_dropping(id);
  if (!opened) return pass_on(std::move(opened.error()));
  const int fd = opened->get();
  if (!may_keep_one()) {
    temporary = *std::move(opened);
    return fd;
  }
  open_.emplace(id, *std::move(opened));
  if (static_cast<std::uint64_t>(id) < fds_.size())
    fds_[static_cast<std::size_t>(id)].store(fd, std::memory_order_release);
  return fd;
}

bool DataDroppings::may_keep_one() {
  if (not_kept_ > 0) {
    --not_kept_;
    return false;
  }
  return keeper_ != nullptr ? keeper_->may_keep(1) : open_.size() < max_kept_fds();
}

Result<Fd> DataDroppings::open_dropping(std::int64_t id) const {
  Fd fd = directory_.open_dropping(Dropping::data, id, O_RDONLY);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    const int failure = errno;
    const std::string shown = directory_.shown(Dropping::data, id);
    if (failure == ENOENT)
      return fail(ErrorKind::bad_input, "'{}' is missing: what it held is lost; see iosig container check", shown);
    if (auto subdirectory = directory_.open_subdirectory(Dropping::data, id); failure == ENXIO && !subdirectory)
      return pass_on(std::move(subdirectory.error()));  // the target is not mounted
    return system_failure("open", shown, failure);
  }
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::bad_input, "'{}' is not a regular file", directory_.shown(Dropping::data, id));
  return fd;
}

void DataDroppings::close_all() {
  std::size_t closed = 0;
  {
    const std::lock_guard lock(mutex_);
    closed = clear();
  }
  if (keeper_ != nullptr && closed > 0) keeper_->closed(closed);
}

void DataDroppings::stop_keeping() {
  constexpr int opens = 10'000;
  close_all();
  const std::lock_guard lock(mutex_);
  not_kept_ = opens;
}

std::size_t DataDroppings::close_idle() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? clear() : 0;
}

/// The caller holds the lock.
std::size_t DataDroppings::clear() {
  for (auto& fd : fds_) fd = -1;
  const std::size_t closed = open_.size();
  open_.clear();
  return closed;
}

}  // namespace iosig
