#include "iosig/store/shared_container.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

std::int64_t now_unix_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // as file systems stamp
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

int errno_of(const Error& error, int seen) {
  for (const int known : {EACCES, EPERM, EROFS, EDQUOT, EMFILE, ENFILE, ENOMEM, ENOENT})
    if (seen == known && error.kind != ErrorKind::bad_input) return known;
  switch (error.kind) {
    case ErrorKind::infeasible: return ENOSPC;
    case ErrorKind::usage: return EFBIG;
    default: return EIO;
  }
}

int SharedContainer::failed(const Error& error, int seen) const {
  say_(error.message);
  return errno_of(error, seen);
}

Result<std::shared_ptr<SharedContainer>> SharedContainer::open(int folder, SayFailure say) {
  // The name in messages is the one that it has now.
  auto opened = ContainerFolder::open(fmt::format("/proc/self/fd/{}", folder));
  if (!opened) return pass_on(std::move(opened.error()));
  return std::shared_ptr<SharedContainer>(new SharedContainer(*std::move(opened), say));
}

OpenWriter* SharedContainer::add_writer() {
  const std::lock_guard lock(writers_mutex_);
  return &writers_.emplace_back();
}

int SharedContainer::remove_writer(OpenWriter* writer) {
  const std::lock_guard lock(writers_mutex_);
  const int failure = close_writer(*writer);
  writers_.remove_if([&](const OpenWriter& each) { return &each == writer; });
  return failure;
}

/// With the list's lock held. A dropping that could not be finished is as that of a writer who died: nothing is lost.
int SharedContainer::close_writer(OpenWriter& writer) {
  const std::lock_guard lock(writer.mutex);
  if (!writer.writer) return 0;
  unsynced_.push_back(writer.writer->id());
  errno = 0;
  const auto closed = writer.writer->close();
  writer.writer.reset();
  return closed ? 0 : failed(closed.error(), errno);
}

int SharedContainer::finish() {
  int failure = 0;
  {
    const std::lock_guard lock(writers_mutex_);
    for (OpenWriter& each : writers_)
      if (const int closed = close_writer(each); closed != 0) failure = closed;
  }
  const int synced = sync();
  return failure != 0 ? failure : synced;
}

int SharedContainer::open_writer(OpenWriter& writer) {
  if (writer.writer) return 0;
  errno = 0;
  auto opened = ContainerWriter::open(folder_);
  if (!opened) return failed(opened.error(), errno);
  writer.writer = *std::move(opened);
  return 0;
}

/// What was changed is there already; whoever reads from now on sees it. `grows`: the file ends at `end` at least.
void SharedContainer::changed(std::int64_t begin, std::int64_t end, bool grows) {
  const std::lock_guard lock(status_mutex_);
  if (grows && end > status_.size) {
    begin = std::min(begin, status_.size);  // what lies between was behind the end
    status_.size = end;
  }
  const bool is_sound = stale_begin_ == stale_end_;
  stale_begin_ = is_sound ? begin : std::min(stale_begin_, begin);
  stale_end_ = is_sound ? end : std::max(stale_end_, end);
  status_.modified_unix_ns = status_.changed_unix_ns = now_unix_ns();
  ++changes_;
}

std::int64_t SharedContainer::write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes,
                                    bool appends) {
  std::int64_t done = 0;
  {
    const std::lock_guard lock(to.mutex);
    if (const int failure = open_writer(to); failure != 0) return -failure;
    errno = 0;
    if (appends) {
      const auto at = to.writer->append(bytes, done);
      if (!at) return -failed(at.error(), errno);
      offset = *at;
    } else {
      const auto written = to.writer->write(offset, bytes);
      if (!written) return -failed(written.error(), errno);
      done = *written;
    }
  }
  changed(offset, offset + done, true);
  const std::lock_guard lock(status_mutex_);
  status_.blocks += (done + 511) / 512;
  return done;
}

int SharedContainer::truncate(OpenWriter* by, std::int64_t size) {
  struct stat now {};
  if (const int failure = status(now, 0); failure != 0) return failure;
  if (now.st_size == size) return 0;
  errno = 0;
  if (by == nullptr) {
    if (const auto cut = truncate_container(folder_, size); !cut) return failed(cut.error(), errno);
  } else {
    const std::lock_guard lock(by->mutex);
    if (const int failure = open_writer(*by); failure != 0) return failure;
    if (const auto cut = by->writer->truncate(size); !cut) return failed(cut.error(), errno);
  }
  changed(0, INT64_MAX, false);
  const std::lock_guard lock(status_mutex_);
  status_.size = size;
  looked_s_ = 0;
  fingerprint_ = 0;
  return 0;
}

int SharedContainer::allocate(OpenWriter& by, int mode, std::int64_t offset, std::int64_t length) {
  if (length <= 0 || offset < 0) return EINVAL;
  if (offset > INT64_MAX - length) return EFBIG;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool punches = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) return EOPNOTSUPP;
  if (keeps_size && !punches) return EOPNOTSUPP;  // a log can keep no room for what comes
  {
    const std::lock_guard lock(by.mutex);
    if (const int failure = open_writer(by); failure != 0) return failure;
    errno = 0;
    if (punches)
      if (const auto done = by.writer->punch(offset, length); !done) return failed(done.error(), errno);
    if (!keeps_size)
      if (const auto done = by.writer->extend(offset + length); !done) return failed(done.error(), errno);
  }
  changed(offset, offset + length, !keeps_size);
  return 0;
}

/// Makes the view show bytes [begin, end) as they are now. With no lock held.
int SharedContainer::refresh_view(std::int64_t begin, std::int64_t end) {
  const auto is_stale = [&] {
    const std::lock_guard lock(status_mutex_);
    return begin < stale_end_ && stale_begin_ < end;
  };
  {
    const std::shared_lock lock(view_mutex_);
    if (view_ && !is_stale()) return 0;
  }
  const std::unique_lock lock(view_mutex_);
  if (view_ && !is_stale()) return 0;
  {
    const std::lock_guard status_lock(status_mutex_);
    stale_begin_ = stale_end_ = 0;  // what is written from here on makes it stale again
  }
  errno = 0;
  Result<void> done{};
  if (view_) {
    done = view_->refresh();
  } else {
    auto opened = ContainerView::open(folder_);
    if (opened)
      view_ = *std::move(opened);
    else
      done = pass_on(std::move(opened.error()));
  }
  data_.clear();
  if (done) return 0;
  const int failure = failed(done.error(), errno);
  changed(0, INT64_MAX, false);
  return failure;
}

int SharedContainer::data_fd(std::int64_t id) {
  const std::lock_guard lock(data_mutex_);
  if (const auto known = data_.find(id); known != data_.end()) return known->second.get();
  Fd fd = folder_->open_dropping(Dropping::data, id, O_RDONLY);
  struct stat status {};
  if (!fd) return errno == ENOENT || errno == ENXIO ? -EIO : -errno;
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return -EIO;
  return data_.emplace(id, std::move(fd)).first->second.get();
}

std::int64_t SharedContainer::read(std::int64_t offset, std::span<std::byte> bytes) {
  const auto length = static_cast<std::int64_t>(bytes.size());
  if (offset < 0 || length > INT64_MAX - offset) return -EINVAL;
  for (;;) {
    if (const int failure = refresh_view(offset, offset + length); failure != 0) return -failure;
    const std::shared_lock lock(view_mutex_);
    if (!view_) continue;
    std::int64_t done = 0;
    int failure = 0;
    view_->find(offset, length, [&](const Piece& piece) {
      if (failure != 0) return;
      std::byte* const out = bytes.data() + done;
      done += piece.length;
      if (piece.is_hole) {
        std::fill_n(out, piece.length, std::byte{0});
        return;
      }
      const int fd = data_fd(piece.id);
      if (fd < 0) failure = -fd;
      for (std::int64_t got = 0; failure == 0 && got < piece.length;) {
        const ssize_t n = ::pread(fd, out + got, static_cast<std::size_t>(piece.length - got), piece.physical + got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) failure = n < 0 ? errno : EIO;  // 0: cut since the index was written
        got += n;
      }
      if (failure != 0)
        say_(fmt::format("'{}': bytes {} to {} cannot be read; see iosig container check",
                         folder_->shown(Dropping::data, piece.id), piece.physical, piece.physical + piece.length));
    });
    return failure != 0 ? -failure : done;
  }
}

bool SharedContainer::give(std::int64_t offset, std::int64_t length,
                           const std::function<void(int, std::int64_t, std::size_t)>& give) {
  if (offset < 0 || length > INT64_MAX - offset || refresh_view(offset, offset + length) != 0) return false;
  const std::shared_lock lock(view_mutex_);  // keeps the descriptor open
  if (!view_ || offset >= view_->size()) return false;
  length = std::min(length, view_->size() - offset);
  const Piece piece = view_->piece_at(offset);
  if (piece.is_hole || piece.length < length) return false;
  const int fd = data_fd(piece.id);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0 || status.st_size - piece.physical < length) return false;
  give(fd, piece.physical, static_cast<std::size_t>(length));
  return true;
}

std::int64_t SharedContainer::seek(std::int64_t offset, int whence) {
  if (const int failure = refresh_view(0, INT64_MAX); failure != 0) return -failure;
  const std::shared_lock lock(view_mutex_);
  const std::int64_t size = view_->size();
  if (offset < 0 || offset >= size) return -ENXIO;
  while (offset < size) {
    const Piece piece = view_->piece_at(offset);
    if (piece.is_hole == (whence == SEEK_HOLE)) return offset;
    offset = piece.length > size - offset ? size : offset + piece.length;
  }
  return whence == SEEK_HOLE ? size : -ENXIO;
}

int SharedContainer::sync() {
  const std::lock_guard lock(writers_mutex_);
  int failure = 0;
  for (OpenWriter& each : writers_) {
    const std::lock_guard writer_lock(each.mutex);
    errno = 0;
    if (each.writer)
      if (const auto synced = each.writer->sync(); !synced) failure = failed(synced.error(), errno);
  }
  for (const std::int64_t id : unsynced_)
    for (const Dropping kind : {Dropping::data, Dropping::index}) {
      const auto subfolder = folder_->open_subfolder(kind, id);
      const Fd fd = folder_->open_dropping(kind, id, O_RDONLY);
      if (!fd && errno == ENOENT) continue;  // cut to nothing
      const Fd above(subfolder ? ::openat(subfolder->get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
      if (!fd || !above || ::fsync(fd.get()) != 0 || ::fsync(subfolder->get()) != 0 || ::fsync(above.get()) != 0)
        failure = EIO;
    }
  if (failure == 0) unsynced_.clear();
  return failure;
}

}  // namespace iosig
