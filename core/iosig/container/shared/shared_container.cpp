#include "iosig/container/shared/shared_container.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "iosig/base/size_limit.h"
#include "iosig/container/admin/container.h"

namespace iosig {

SharedContainer::SharedContainer(std::shared_ptr<const ContainerDirectory> directory, SayFailure say, FillHole fill,
                                 std::shared_ptr<UnsyncedWriters> unsynced)
    : directory_(std::move(directory)),
      log_(say),
      status_(directory_, log_),
      view_(directory_, status_, log_, fill),
      writers_(directory_, status_, log_, std::move(unsynced)) {}

Result<std::shared_ptr<SharedContainer>> SharedContainer::open(int directory, SayFailure say, FillHole fill,
                                                               std::shared_ptr<UnsyncedWriters> unsynced) {
  auto opened = ContainerDirectory::open(fmt::format("/proc/self/fd/{}", directory), place_of(directory));
  if (!opened) return pass_on(std::move(opened.error()));
  return std::shared_ptr<SharedContainer>(new SharedContainer(*std::move(opened), say, fill, std::move(unsynced)));
}

int SharedContainer::truncate(OpenWriter* by, std::int64_t size) {
  if (by == nullptr && size == 0) return empty();
  struct stat now {};
  if (const int failure = status_.get(now, 0); failure != 0) return failure;
  if (size > now.st_size && exceeds_size_limit(size)) return EFBIG;
  drop_privileges(*directory_);
  if (now.st_size == size) {
    touch();
    return 0;
  }
  if (by == nullptr) {
    if (const auto done = truncate_container(directory_, size); !done) return log_(done.error());
  } else {
    const auto truncate = [&](ContainerWriter& writer) { return writer.truncate(size); };
    if (const int failure = writers_.change(*by, truncate); failure != 0) return failure;
  }
  status_.truncated(size);
  return 0;
}

/// **Discards all bytes**, for open(2) with O_TRUNC. Does not check the size first, because that would read the index.
int SharedContainer::empty() {
  drop_privileges(*directory_);
  const ContainerDirectory::Listing listing = directory_->list();
  if (listing.index.empty() && listing.data.empty() && listing.closed_writers.empty() && listing.unreadable.empty()) {
    touch();
    return 0;
  }
  if (const auto done = truncate_container(directory_, 0); !done) return log_(done.error());
  status_.truncated(0);
  return 0;
}

/// Sets the file's modification time to now, which O_TRUNC does even for an empty file.
void SharedContainer::touch() {
  const timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  const std::string manifest(container_manifest_name);
  if (::utimensat(directory_->fd().get(), manifest.c_str(), now, AT_SYMLINK_NOFOLLOW) == 0) status_.forget();
}

int SharedContainer::allocate(OpenWriter& by, int mode, std::int64_t offset, std::int64_t length) {
  if (length <= 0 || offset < 0) return EINVAL;
  if (offset > INT64_MAX - length) return EFBIG;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool punches = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) return EOPNOTSUPP;
  if (keeps_size && !punches) return EOPNOTSUPP;  // a log cannot reserve space for later writes
  if (!keeps_size && exceeds_size_limit(offset + length)) {
    struct stat now {};
    if (const int failure = status_.get(now, 0); failure != 0) return failure;
    if (offset + length > now.st_size) return EFBIG;
  }
  drop_privileges(*directory_);
  const auto change = [&](ContainerWriter& writer) -> Result<void> {
    if (punches)
      if (auto punched = writer.punch(offset, length); !punched) return punched;
    return keeps_size ? Result<void>() : writer.extend(offset + length);
  };
  if (const int failure = writers_.change(by, change); failure != 0) return failure;
  status_.changed(offset, offset + length, !keeps_size);
  return 0;
}

int SharedContainer::set_times(const timespec times[2]) {
  // First closes all writers, because closing changes the index and thereby the times.
  if (const int failure = writers_.close_all(); failure != 0) return failure;
  const int failure = set_piece_times(*directory_, times);
  status_.forget();
  return failure;
}

int SharedContainer::set_mode(unsigned mode) {
  // A write must clear these bits. A writer checks for them only when it is opened, so all writers are closed here.
  if ((mode & (S_ISUID | S_ISGID)) != 0)
    if (const int failure = writers_.close_all(); failure != 0) return failure;
  return set_piece_modes(*directory_, mode, log_);
}

int SharedContainer::set_owner(uid_t user, gid_t group) { return set_piece_owners(*directory_, user, group, log_); }

/// Returns 0 if other nodes have the container open for writing, -1 if not, else an errno.
int SharedContainer::find_other_nodes() {
  const std::lock_guard lock(nodes_mutex_);
  const auto others = other_nodes_.are_there(directory_->fd(), directory_->path());
  if (!others) return log_(others.error());
  return *others ? 0 : -1;
}

int SharedContainer::refresh_from_other_nodes() {
  if (const int found = find_other_nodes(); found != 0) return std::max(found, 0);
  return status_.refresh_if_older_than(0);
}

int SharedContainer::exchange_with_other_nodes() {
  if (const int found = find_other_nodes(); found != 0) return std::max(found, 0);
  if (const int failure = writers_.sync(); failure != 0) return failure;
  return status_.refresh_if_older_than(0);
}

}  // namespace iosig
