// What stat(2) says of a container in use, and what changes that; its bytes are in shared_container.cpp.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "iosig/base/machine.h"
#include "iosig/store/shared_container.h"
#include "iosig/store/target_owner.h"

namespace iosig {
namespace {

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

timespec timespec_of(std::int64_t unix_ns) { return {unix_ns / 1'000'000'000, unix_ns % 1'000'000'000}; }

}  // namespace

/// Of what all writers have there, without reading it: another one after any of their writes.
std::uint64_t SharedContainer::fingerprint() const {
  std::uint64_t mixed = 0x9e3779b97f4a7c15;
  const auto mix = [&](std::int64_t value) {
    mixed = (mixed ^ static_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccd;
    mixed ^= mixed >> 32;
  };
  const ContainerFolder::Listing listing = folder_->list();
  for (const Dropping kind : {Dropping::data, Dropping::index})
    for (const std::int64_t id : kind == Dropping::data ? listing.data : listing.index) {
      const auto subfolder = folder_->open_subfolder(kind, id);
      struct stat status {};
      if (subfolder &&
          ::fstatat(subfolder->get(), dropping_name(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        mix(id);
        mix(status.st_size);
        mix(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
      }
    }
  return mixed;
}

int SharedContainer::look_for_others(double age_s) {
  for (int tries_left = 8;; --tries_left) {
    notice_others();
    std::uint64_t before = 0;
    {
      const std::lock_guard lock(status_mutex_);
      if (has_status_ && now_s() - looked_s_ < age_s) return 0;
      before = changes_;
    }
    const std::uint64_t print = fingerprint();
    {
      const std::lock_guard lock(status_mutex_);
      if (has_status_ && print == fingerprint_) {
        looked_s_ = now_s();
        return 0;
      }
    }
    errno = 0;
    const auto known = status_of(*folder_);
    if (!known) return failed(known.error(), errno);
    const std::lock_guard lock(status_mutex_);
    if (before != changes_) {  // what was written here meanwhile is perhaps not in it
      if (has_status_) return 0;
      if (tries_left > 0) continue;
    }
    status_ = *known;
    written_fd_ = -1;
    has_status_ = true;
    looked_s_ = now_s();
    fingerprint_ = print;
    stale_begin_ = 0;
    stale_end_ = INT64_MAX;
    has_stale_ = true;
    ++changes_;
    return 0;
  }
}

/// Those of the last write. With the status's lock held.
void SharedContainer::learn_times() {
  struct stat written {};
  if (written_fd_ < 0 || ::fstat(std::exchange(written_fd_, -1), &written) != 0) return;
  status_.modified_unix_ns = unix_ns(written.st_mtim);
  status_.changed_unix_ns = unix_ns(written.st_ctim);
}

int SharedContainer::status(struct stat& status, double age_s) {
  struct stat folder {
  }, manifest{};
  if (const int failure = look_for_others(age_s); failure != 0) return failure;
  if (::fstat(folder_->fd().get(), &folder) != 0) return errno;
  const std::string name(container_manifest_name);
  if (::fstatat(folder_->fd().get(), name.c_str(), &manifest, AT_SYMLINK_NOFOLLOW) != 0) manifest.st_mode = 0600;
  const std::lock_guard lock(status_mutex_);
  learn_times();
  status = folder;
  status.st_mode = S_IFREG | (manifest.st_mode & 07777);
  status.st_nlink = 1;
  status.st_size = status_.size;
  status.st_blocks = status_.blocks;
  status.st_blksize = 4096;
  status.st_mtim = timespec_of(status_.modified_unix_ns);
  status.st_atim = timespec_of(status_.accessed_unix_ns);
  status.st_ctim = timespec_of(status_.changed_unix_ns);
  return 0;
}

/// Calls change(folder, name) for every dropping, subfolder and target, the order tables, the manifest, and last the
/// container's folder.
template <class Change>
int SharedContainer::change_pieces(Change&& change) const {
  const ContainerFolder::Listing listing = folder_->list();
  for (const Dropping kind : {Dropping::data, Dropping::index, Dropping::tail}) {
    const auto& ids = kind == Dropping::data ? listing.data : kind == Dropping::index ? listing.index : listing.tail;
    for (const std::int64_t id : ids) {
      const auto subfolder = folder_->open_subfolder(kind, id);
      if (!subfolder) continue;
      if (change(subfolder->get(), dropping_name(kind, id).c_str(), false) != 0 && errno != ENOENT) return errno;
      if (change(subfolder->get(), ".", true) != 0) return errno;
    }
  }
  const auto names = names_in(folder_->fd());
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (is_order_table(name) && change(folder_->fd().get(), name.c_str(), false) != 0 && errno != ENOENT) return errno;
  const std::string manifest(container_manifest_name);
  if (change(folder_->fd().get(), manifest.c_str(), false) != 0) return errno;
  return change(folder_->fd().get(), ".", true) == 0 ? 0 : errno;
}

int SharedContainer::set_times(const timespec times[2]) {
  // A writer changes its index once more when it is closed; so that comes first.
  if (const int failure = close_writers(); failure != 0) return failure;
  const int failure = change_pieces(
      [&](int folder, const char* name, bool) { return ::utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW); });
  const std::lock_guard lock(status_mutex_);
  fingerprint_ = 0;
  looked_s_ = 0;
  return failure;
}

int SharedContainer::set_mode(unsigned mode) {
  // Who may read the file may look into its folders; the daemon's user may always write into them.
  const unsigned folder_mode = mode | 0700 | (mode & 0444) >> 2;
  return change_pieces([&](int folder, const char* name, bool is_folder) {
    if (is_folder) return ::fchmodat(folder, name, folder_mode & 0777, 0);
    const bool is_manifest = name == container_manifest_name;
    const unsigned own = is_order_table(name) ? mode & 0666 : mode & 0777;
    return ::fchmodat(folder, name, is_manifest ? mode : own | 0600, 0);
  });
}

int SharedContainer::set_owner(uid_t user, gid_t group) {
  const auto give = [&](int folder, const char* name, bool) {
    return ::fchownat(folder, name, user, group, AT_SYMLINK_NOFOLLOW);
  };
  if (!may_be_written(*folder_)) return EROFS;
  for (const std::string& target : folder_->manifest().targets)  // closed to all but their owner
    for (const std::string& path : {fmt::format("{}/{}", target, container_manifest_name), target})
      if (give(AT_FDCWD, path.c_str(), false) != 0 && errno != ENOENT) return errno;
  return change_pieces(give);
}

}  // namespace iosig
