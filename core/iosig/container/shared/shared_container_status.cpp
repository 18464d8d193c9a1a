// What stat(2) says of a container in use, and what changes that; its bytes are in shared_container.cpp.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "iosig/base/machine.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/layout/target_owner.h"
#include "iosig/container/shared/shared_container.h"

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
  const ContainerDirectory::Listing listing = directory_->list();
  for (const Dropping kind : {Dropping::data, Dropping::index})
    for (const std::int64_t id : kind == Dropping::data ? listing.data : listing.index) {
      const auto subdirectory = directory_->open_subdirectory(kind, id);
      struct stat status {};
      if (subdirectory &&
          ::fstatat(subdirectory->get(), dropping_name(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        mix(id);
        mix(status.st_size);
        mix(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
      }
    }
  return mixed;
}

int SharedContainer::refresh_if_older_than(double age_s) {
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
    const auto known = status_of(*directory_);
    if (!known) return failed(known.error());
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

/// The permissions and the owner of the file are those of its manifest.
void SharedContainer::show_manifest(const struct stat& manifest, struct stat& status) {
  status.st_mode = S_IFREG | (manifest.st_mode & 07777);
  status.st_uid = manifest.st_uid;
  status.st_gid = manifest.st_gid;
  status.st_nlink = 1;
  status.st_blksize = 4096;
}

int SharedContainer::status(struct stat& status, double age_s) {
  struct stat directory {
  }, manifest{};
  if (const int failure = refresh_if_older_than(age_s); failure != 0) return failure;
  if (::fstat(directory_->fd().get(), &directory) != 0) return errno;
  if (directory_->stat_manifest(manifest) != 0) {
    manifest = directory;
    manifest.st_mode = 0600;
  }
  const std::lock_guard lock(status_mutex_);
  learn_times();
  status = directory;
  show_manifest(manifest, status);
  status.st_size = status_.size;
  status.st_blocks = status_.blocks;
  status.st_mtim = timespec_of(status_.modified_unix_ns);
  status.st_atim = timespec_of(status_.accessed_unix_ns);
  status.st_ctim = timespec_of(std::max(status_.changed_unix_ns, unix_ns(manifest.st_ctim)));
  return 0;
}

/// Calls change(directory, name, is_directory), which gives 0 or sets errno, for the manifest, then for every dropping,
/// subdirectory, sequencer and copy, last for the container's directory. The kernel's answer for the manifest is that
/// for the file. Pieces of other users, who may write the file, too, are theirs.
template <class Change>
int SharedContainer::change_pieces(Change&& change) const {
  const std::string manifest(container_manifest_name);
  if (change(directory_->fd().get(), manifest.c_str(), false) != 0) return errno;
  const auto has_failed = [&](int directory, const char* name, bool is_directory) {
    return change(directory, name, is_directory) != 0 && errno != ENOENT && errno != EPERM && errno != EACCES;
  };
  const ContainerDirectory::Listing listing = directory_->list();
  for (const Dropping kind : {Dropping::data, Dropping::index, Dropping::tail}) {
    const auto& ids = kind == Dropping::data ? listing.data : kind == Dropping::index ? listing.index : listing.tail;
    for (const std::int64_t id : ids) {
      const auto subdirectory = directory_->open_subdirectory(kind, id);
      if (!subdirectory) continue;
      if (has_failed(subdirectory->get(), dropping_name(kind, id).c_str(), false)) return errno;
      if (has_failed(subdirectory->get(), ".", true)) return errno;
    }
  }
  const auto names = names_in(directory_->fd());
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if ((is_sequencer(name) || name == index_snapshot_name || name == manifest_copy_name) &&
        has_failed(directory_->fd().get(), name.c_str(), false))
      return errno;
  return has_failed(directory_->fd().get(), ".", true) ? errno : 0;
}

int SharedContainer::set_times(const timespec times[2]) {
  // A writer changes its index once more when it is closed; so that comes first.
  if (const int failure = close_writers(); failure != 0) return failure;
  const int failure = change_pieces(
      [&](int directory, const char* name, bool) { return ::utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW); });
  const std::lock_guard lock(status_mutex_);
  fingerprint_ = 0;
  looked_s_ = 0;
  return failure;
}

int SharedContainer::set_mode(unsigned mode) {
  struct stat manifest {};
  if (const int failure = directory_->stat_manifest(manifest); failure != 0) return failure;
  const bool is_owner = manifest.st_uid == ::geteuid() || ::geteuid() == 0;
  if (is_owner)
    if (const auto kept = keep_manifest_readable(directory_->fd(), directory_->path(), directory_->manifest(), mode);
        !kept)
      return failed(kept.error());
  // Writing takes such bits away, which a writer sees to when it begins.
  if ((mode & (S_ISUID | S_ISGID)) != 0)
    if (const int failure = close_writers(); failure != 0) return failure;
  return change_pieces([&](int directory, const char* name, bool is_directory) {
    struct stat piece {};
    if (is_directory) {
      if (::fstatat(directory, name, &piece, AT_SYMLINK_NOFOLLOW) != 0) return -1;
      return ::fchmodat(directory, name, directory_mode_for(mode) | (piece.st_mode & S_ISGID), 0);
    }
    const bool is_manifest = name == container_manifest_name;
    return ::fchmodat(directory, name, is_manifest ? mode & 07777 : piece_mode_for(mode), 0);
  });
}

int SharedContainer::set_owner(uid_t user, gid_t group) {
  const auto give = [&](int directory, const char* name, bool) {
    return ::fchownat(directory, name, user, group, AT_SYMLINK_NOFOLLOW);
  };
  if (const auto may = may_be_written(*directory_); !may) return failed(may.error());
  if (const int failure = change_pieces(give); failure != 0) return failure;
  for (const std::string& target : directory_->manifest().targets)  // closed to all but their owner
    for (const std::string& path : {fmt::format("{}/{}", target, container_manifest_name), target})
      if (give(AT_FDCWD, path.c_str(), false) != 0 && errno != ENOENT) return errno;
  return 0;
}

/// Whoever changes a file's bytes takes its set-user-id and set-group-id bits, unless the kernel lets the caller keep
/// them: it is asked by a change of the manifest that changes no byte.
void SharedContainer::drop_privileges() const {
  struct stat manifest {};
  if (directory_->stat_manifest(manifest) != 0) return;
  const bool is_group_run = (manifest.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if ((manifest.st_mode & S_ISUID) == 0 && !is_group_run) return;
  const std::string name(container_manifest_name);
  const Fd fd(::openat(directory_->fd().get(), name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd)
    (void)!::ftruncate(fd.get(), manifest.st_size);
  else  // a user who may not write the file, as its mode is now, is none whom the kernel lets keep them
    (void)::fchmodat(directory_->fd().get(), name.c_str(),
                     manifest.st_mode & 07777 & ~static_cast<unsigned>(S_ISUID | (is_group_run ? S_ISGID : 0)), 0);
}

}  // namespace iosig
