#include "iosig/container/shared/cached_status.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "iosig/base/machine.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/shared/attributes.h"

namespace iosig {
namespace {

/// Returns an owner id that is unique on this node and not 0.
std::uint64_t new_owner() {
  static std::atomic<std::uint64_t> count{0};
  const std::uint64_t us = static_cast<std::uint64_t>(unix_ns()) / 1000 & 0xffff'ffff;
  return static_cast<std::uint64_t>(::getpid()) << 40 | us << 8 | (count++ & 0xff);
}

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

timespec timespec_of(std::int64_t unix_ns) { return {unix_ns / 1'000'000'000, unix_ns % 1'000'000'000}; }

/// File times have a granularity: a change a moment after the last one may leave them as they are.
bool may_change_unnoticed(const DirectoryState& state) {
  constexpr std::int64_t min_age_ns = 2'000'000'000;  ///< also for another node's clock
  return unix_ns() - state.newest_ns < min_age_ns;
}

class Mixer {
 public:
  explicit Mixer(std::uint64_t seed) : mixed_(seed ^ 0x9e3779b97f4a7c15) {}
  void add(std::int64_t value) {
    mixed_ = (mixed_ ^ static_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccd;
    mixed_ ^= mixed_ >> 32;
  }
  [[nodiscard]] std::uint64_t mixed() const { return mixed_; }

 private:
  std::uint64_t mixed_;
};

}  // namespace

CachedStatus::CachedStatus(std::shared_ptr<const ContainerDirectory> directory, const FailureLog& log)
    : directory_(std::move(directory)), log_(log), owner_(new_owner()) {}

/// Returns a number that changes with any write to the container: from the names of the droppings, and the sizes and
/// times of those that have an active writer. Lists the names only if the directories have changed since it last did.
std::uint64_t CachedStatus::fingerprint() {
  const DirectoryState directories = state_of(*directory_);
  Names names;
  {
    const std::lock_guard lock(mutex_);
    if (names_.directories == directories.fingerprint) names = names_;
  }
  if (names.directories != directories.fingerprint) {
    const ContainerDirectory::Listing listing = directory_->list();
    Mixer mixer(0);
    for (const auto* ids : {&listing.data, &listing.index, &listing.tail})
      std::ranges::for_each(*ids, [&](std::int64_t id) { mixer.add(id); });
    names = {directories.fingerprint, mixer.mixed(), listing.tail};
    const std::lock_guard lock(mutex_);
    names_ = may_change_unnoticed(directories) ? Names() : names;
  }
  Mixer mixer(names.directories ^ names.mixed);
  for (const Dropping kind : {Dropping::data, Dropping::index})
    for (const std::int64_t id : names.active) {
      const auto subdirectory = directory_->open_subdirectory(kind, id);
      struct stat status {};
      if (subdirectory &&
          ::fstatat(subdirectory->get(), dropping_name(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        mixer.add(id);
        mixer.add(status.st_size);
        mixer.add(unix_ns(status.st_mtim));
      }
    }
  return mixer.mixed();
}

int CachedStatus::get(struct stat& status, double age_s) {
  struct stat directory {
  }, manifest{};
  if (const int failure = refresh_if_older_than(age_s); failure != 0) return failure;
  if (::fstat(directory_->fd().get(), &directory) != 0) return errno;
  if (directory_->stat_manifest(manifest) != 0) {
    manifest = directory;
    manifest.st_mode = 0600;
  }
  const std::lock_guard lock(mutex_);
  read_times();
  status = directory;
  show_manifest(manifest, status);
  status.st_size = status_.size;
  status.st_blocks = status_.blocks;
  status.st_mtim = timespec_of(status_.modified_unix_ns);
  status.st_atim = timespec_of(status_.accessed_unix_ns);
  status.st_ctim = timespec_of(std::max(status_.changed_unix_ns, unix_ns(manifest.st_ctim)));
  return 0;
}

int CachedStatus::refresh_if_older_than(double age_s) {
  for (int tries_left = 8;; --tries_left) {
    notice_others();
    std::uint64_t before = 0;
    {
      const std::lock_guard lock(mutex_);
      if (has_status_ && now_s() - looked_s_ < age_s) return 0;
      before = changes_;
    }
    const std::uint64_t fingerprint = this->fingerprint();
    {
      const std::lock_guard lock(mutex_);
      if (has_status_ && fingerprint == fingerprint_) {
        looked_s_ = now_s();
        return 0;
      }
    }
    bool has_write_in_progress = false;
    const auto known = status_of(*directory_, &has_write_in_progress);
    if (!known) return log_(known.error());
    const std::lock_guard lock(mutex_);
    if (before != changes_) {  // it may lack writes that this process made meanwhile
      if (has_status_) return 0;
      if (tries_left > 0) continue;
    }
    status_ = *known;
    written_fd_ = -1;
    has_status_ = true;
    looked_s_ = now_s();
    // The end of a write in progress on another node does not change the fingerprint.
    fingerprint_ = has_write_in_progress ? 0 : fingerprint;
    make_all_stale();
    const auto others = other_nodes_.are_there(directory_->fd(), directory_->path());
    if (!others || *others) are_all_counted_ = false;
    return 0;
  }
}

void CachedStatus::note_others() {
  if (!is_watching()) find_sequencer();
  if (!is_watching()) return;
  const std::uint64_t now = watch_.changes(owner_);
  if (now == noticed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  make_all_stale();
  has_status_ = false;
  noticed_.store(now, std::memory_order_release);  // last: a thread that sees it also sees the rest
}

/// Looks for the sequencer if the container's directory has changed. The node's first writer makes it there.
void CachedStatus::find_sequencer() {
  struct stat status {};
  if (::fstat(directory_->fd().get(), &status) != 0) return;
  const std::int64_t changed_ns = unix_ns(status.st_mtim);
  if (changed_ns == directory_changed_ns_) return;
  const std::lock_guard lock(mutex_);
  if (!is_watching_ && watch_.look(directory_->fd())) is_watching_.store(true, std::memory_order_release);
  directory_changed_ns_ = changed_ns;
}

/// Reads the times of the last write from its data dropping. The caller holds the lock.
void CachedStatus::read_times() {
  struct stat written {};
  if (written_fd_ < 0 || ::fstat(std::exchange(written_fd_, -1), &written) != 0) return;
  status_.modified_unix_ns = unix_ns(written.st_mtim);
  status_.changed_unix_ns = unix_ns(written.st_ctim);
}

/// Called when a change has taken effect: a reader that starts now must see it. The caller holds the lock.
void CachedStatus::make_stale(std::int64_t begin, std::int64_t end, bool grows) {
  if (grows) {
    if (end > shown_size_) begin = std::min(begin, shown_size_);  // the bytes in between were behind the end of file
    status_.size = std::max(status_.size, end);
  }
  const bool is_empty = stale_begin_ == stale_end_;
  stale_begin_ = is_empty ? begin : std::min(stale_begin_, begin);
  stale_end_ = is_empty ? end : std::max(stale_end_, end);
  has_stale_.store(true, std::memory_order_release);
  changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void CachedStatus::make_all_stale() { make_stale(0, INT64_MAX, false); }

bool CachedStatus::overlaps_stale(std::int64_t begin, std::int64_t end) {
  const std::lock_guard lock(mutex_);
  return begin < stale_end_ && stale_begin_ < end;
}

void CachedStatus::wrote(std::int64_t begin, std::int64_t end, int fd) {
  const std::lock_guard lock(mutex_);
  make_stale(begin, end, true);
  status_.blocks += (end - begin + 511) / 512;
  written_fd_ = fd;
}

void CachedStatus::changed(std::int64_t begin, std::int64_t end, bool grows) {
  const std::lock_guard lock(mutex_);
  make_stale(begin, end, grows);
  written_fd_ = -1;
  looked_s_ = 0;  // the new times must be read from the files
  fingerprint_ = 0;
}

void CachedStatus::truncated(std::int64_t size) {
  changed(0, INT64_MAX, false);
  const std::lock_guard lock(mutex_);
  status_.size = size;
  are_all_counted_ = false;
}

void CachedStatus::forget_data(int fd) {
  const std::lock_guard lock(mutex_);
  if (written_fd_ == fd) read_times();
}

bool CachedStatus::try_forget_data(int fd) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && written_fd_ == fd) read_times();
  return lock.owns_lock();
}

void CachedStatus::forget() {
  const std::lock_guard lock(mutex_);
  fingerprint_ = 0;
  looked_s_ = 0;
}

bool CachedStatus::begin_reading() {
  const std::lock_guard lock(mutex_);
  stale_begin_ = stale_end_ = 0;
  has_stale_ = false;
  shown_size_ = 0;
  return std::exchange(are_all_counted_, is_watching());
}

void CachedStatus::end_reading(std::int64_t size) {
  const std::lock_guard lock(mutex_);
  shown_size_ = size;
}

std::uint64_t CachedStatus::node_changes() const { return is_watching() ? watch_.changes(0) : Snapshot::none; }

std::optional<std::uint64_t> CachedStatus::fingerprint_if_fresh() {
  const std::lock_guard lock(mutex_);
  return has_stale_ ? std::nullopt : std::optional(fingerprint_);
}

bool CachedStatus::adopt(const Snapshot& snapshot, const ContainerStatus& status, bool is_same_node) {
  if (!is_watching()) find_sequencer();
  const bool had_sequencer = snapshot.node_changes != Snapshot::none;
  if (is_same_node && had_sequencer && !is_watching()) return false;
  const std::lock_guard lock(mutex_);
  if (has_status_) return false;
  if (is_same_node)
    noticed_ = had_sequencer ? snapshot.node_changes : 0;
  else
    noticed_ = is_watching() ? watch_.changes(owner_) : 0;
  status_ = status;
  has_status_ = true;
  looked_s_ = now_s();
  fingerprint_ = snapshot.fingerprint;
  stale_begin_ = stale_end_ = 0;
  shown_size_ = status.size;
  has_stale_.store(false, std::memory_order_release);
  return true;
}

}  // namespace iosig
