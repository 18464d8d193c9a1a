#include "iosig/container/shared/shared_container.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// Unlike any other's on this node, and not 0.
std::uint64_t new_owner() {
  static std::atomic<std::uint64_t> count{0};
  const std::uint64_t us = static_cast<std::uint64_t>(unix_ns()) / 1000 & 0xffff'ffff;
  return static_cast<std::uint64_t>(::getpid()) << 40 | us << 8 | (count++ & 0xff);
}

std::int64_t now_unix_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // as file systems stamp
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

int errno_of(const Error& error) {
  if (error.system_errno != 0 && error.kind != ErrorKind::bad_input) return error.system_errno;
  switch (error.kind) {
    case ErrorKind::infeasible: return ENOSPC;
    case ErrorKind::usage: return EINVAL;
    default: return EIO;
  }
}

int SharedContainer::failed(const Error& error) const {
  const int failure = errno_of(error);
  if (failure != EFAULT) say_(error.message);  // the caller's memory: no trouble of the container
  return failure;
}

SharedContainer::SharedContainer(std::shared_ptr<const ContainerDirectory> directory, SayFailure say, FillHole fill)
    : directory_(std::move(directory)), say_(say), fill_(fill), owner_(new_owner()) {
  for (auto& fd : data_fds_) fd = -1;
}

Result<std::shared_ptr<SharedContainer>> SharedContainer::open(int directory, SayFailure say, FillHole fill) {
  auto opened = ContainerDirectory::open(fmt::format("/proc/self/fd/{}", directory), place_of(directory));
  if (!opened) return pass_on(std::move(opened.error()));
  return std::shared_ptr<SharedContainer>(new SharedContainer(*std::move(opened), say, fill));
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
  {
    const std::lock_guard status_lock(status_mutex_);
    if (written_fd_ == writer.writer->data_fd()) learn_times();
  }
  const auto closed = writer.writer->close();
  writer.writer.reset();
  return closed ? 0 : failed(closed.error());
}

int SharedContainer::close_writers() {
  const std::lock_guard lock(writers_mutex_);
  int failure = 0;
  for (OpenWriter& each : writers_)
    if (const int closed = close_writer(each); closed != 0) failure = closed;
  return failure;
}

int SharedContainer::finish() {
  const int failure = close_writers(), synced = sync();
  return failure != 0 ? failure : synced;
}

int SharedContainer::open_writer(OpenWriter& writer) {
  if (writer.writer) return 0;
  (void)read_size_limit();  // it may have changed without our knowledge
  auto opened = ContainerWriter::open(directory_, owner_);
  if (!opened) return failed(opened.error());
  writer.writer = *std::move(opened);
  drop_privileges();
  return 0;
}

int SharedContainer::prepare(OpenWriter& writer) {
  const std::lock_guard lock(writer.mutex);
  return open_writer(writer);
}

/// With the status's lock held. What was changed is there already; whoever reads from now on sees it. `grows`: the file
/// ends at `end` at least.
void SharedContainer::make_stale(std::int64_t begin, std::int64_t end, bool grows) {
  if (grows) {
    if (end > view_size_) begin = std::min(begin, view_size_);  // what lies between was behind the end
    status_.size = std::max(status_.size, end);
  }
  const bool is_sound = stale_begin_ == stale_end_;
  stale_begin_ = is_sound ? begin : std::min(stale_begin_, begin);
  stale_end_ = is_sound ? end : std::max(stale_end_, end);
  has_stale_.store(true, std::memory_order_release);
  changes_.store(changes_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

/// `fd`: the data dropping. The kernel has stamped it, which is asked when somebody wants to know.
void SharedContainer::wrote(std::int64_t begin, std::int64_t end, int fd) {
  const std::lock_guard lock(status_mutex_);
  make_stale(begin, end, true);
  status_.blocks += (end - begin + 511) / 512;
  written_fd_ = fd;
}

/// By a mark, or nobody knows by what.
void SharedContainer::changed(std::int64_t begin, std::int64_t end, bool grows) {
  const std::lock_guard lock(status_mutex_);
  make_stale(begin, end, grows);
  status_.modified_unix_ns = status_.changed_unix_ns = now_unix_ns();
  written_fd_ = -1;
}

std::int64_t SharedContainer::write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes,
                                    bool appends) {
  std::int64_t done = 0;
  std::unique_lock lock(to.mutex);
  if (const int failure = open_writer(to); failure != 0) return -failure;
  if (!to.writer->has_room_for(bytes.size())) {  // what is overwritten stays in a log, and counts for the limit
    lock.unlock();
    {
      const std::lock_guard list_lock(writers_mutex_);
      (void)close_writer(to);
    }
    lock.lock();
    if (const int failure = open_writer(to); failure != 0) return -failure;
  }
  if (appends) {
    const auto at = to.writer->append(bytes, done);
    if (!at) return -failed(at.error());
    offset = *at;
  } else {
    const auto written = to.writer->write(offset, bytes);
    if (!written) return -failed(written.error());
    done = *written;
  }
  if (done > 0) wrote(offset, offset + done, to.writer->data_fd());
  return done;
}

int SharedContainer::truncate(OpenWriter* by, std::int64_t size) {
  struct stat now {};
  if (const int failure = status(now, 0); failure != 0) return failure;
  if (size > now.st_size && exceeds_size_limit(size)) return EFBIG;
  drop_privileges();
  if (now.st_size == size) {
    touch();
    return 0;
  }
  if (by == nullptr) {
    if (const auto cut = truncate_container(directory_, size); !cut) return failed(cut.error());
  } else {
    const std::lock_guard lock(by->mutex);
    if (const int failure = open_writer(*by); failure != 0) return failure;
    if (const auto cut = by->writer->truncate(size); !cut) return failed(cut.error());
  }
  changed(0, INT64_MAX, false);
  const std::lock_guard lock(status_mutex_);
  status_.size = size;
  looked_s_ = 0;
  fingerprint_ = 0;
  return 0;
}

/// What changed no byte changes the times all the same, as O_TRUNC of an empty file does.
void SharedContainer::touch() {
  const timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  const std::string manifest(container_manifest_name);
  if (::utimensat(directory_->fd().get(), manifest.c_str(), now, AT_SYMLINK_NOFOLLOW) != 0) return;
  const std::lock_guard lock(status_mutex_);
  status_.modified_unix_ns = status_.changed_unix_ns = now_unix_ns();
  written_fd_ = -1;
}

int SharedContainer::allocate(OpenWriter& by, int mode, std::int64_t offset, std::int64_t length) {
  if (length <= 0 || offset < 0) return EINVAL;
  if (offset > INT64_MAX - length) return EFBIG;
  const bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  const bool punches = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) return EOPNOTSUPP;
  if (keeps_size && !punches) return EOPNOTSUPP;  // a log can keep no room for what comes
  if (!keeps_size && exceeds_size_limit(offset + length)) {
    struct stat now {};
    if (const int failure = status(now, 0); failure != 0) return failure;
    if (offset + length > now.st_size) return EFBIG;
  }
  drop_privileges();
  {
    const std::lock_guard lock(by.mutex);
    if (const int failure = open_writer(by); failure != 0) return failure;
    if (punches)
      if (const auto done = by.writer->punch(offset, length); !done) return failed(done.error());
    if (!keeps_size)
      if (const auto done = by.writer->extend(offset + length); !done) return failed(done.error());
  }
  changed(offset, offset + length, !keeps_size);
  return 0;
}

/// There was no table to watch when somebody last looked; there is one as soon as somebody on this node writes.
void SharedContainer::notice_first_writer() {
  struct stat status {};
  if (::fstat(directory_->fd().get(), &status) != 0) return;
  const std::int64_t changed_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  if (changed_ns == directory_changed_ns_) return;
  const std::lock_guard lock(status_mutex_);
  if (!is_watching_ && watch_.look(directory_->fd())) is_watching_.store(true, std::memory_order_release);
  directory_changed_ns_ = changed_ns;
}

/// Everything may have changed if somebody else on this node has written.
void SharedContainer::notice_others() {
  if (!is_watching_.load(std::memory_order_acquire)) notice_first_writer();
  if (!is_watching_.load(std::memory_order_acquire)) return;
  const std::uint64_t now = watch_.changes(owner_);
  if (now == noticed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(status_mutex_);
  stale_begin_ = 0;
  stale_end_ = INT64_MAX;
  has_stale_.store(true, std::memory_order_release);
  has_status_ = false;
  ++changes_;
  noticed_.store(now, std::memory_order_release);  // last: whoever finds it noticed finds the rest, too
}

bool SharedContainer::is_stale(std::int64_t begin, std::int64_t end) {
  if (!has_stale_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(status_mutex_);
  return begin < stale_end_ && stale_begin_ < end;
}

/// Makes the view show bytes [begin, end) as they are now. With no lock held.
int SharedContainer::refresh_view(std::int64_t begin, std::int64_t end) {
  notice_others();
  {
    const bool was_stale = is_stale(begin, end);
    const std::shared_lock lock(view_mutex_);
    if (view_ && !was_stale) return 0;
  }
  const std::unique_lock lock(view_mutex_);
  if (view_ && !is_stale(begin, end)) return 0;
  {
    const std::lock_guard status_lock(status_mutex_);
    stale_begin_ = stale_end_ = 0;  // what is written from here on makes it stale again
    has_stale_ = false;
    view_size_ = 0;
  }
  Result<void> done{};
  if (view_) {
    done = view_->refresh();
  } else {
    auto opened = ContainerView::open(directory_);
    if (opened)
      view_ = *std::move(opened);
    else
      done = pass_on(std::move(opened.error()));
  }
  for (auto& fd : data_fds_) fd = -1;
  data_.clear();
  const int failure = done ? 0 : failed(done.error());
  if (failure != 0) changed(0, INT64_MAX, false);
  const std::lock_guard status_lock(status_mutex_);
  view_size_ = view_ ? view_->size() : 0;
  return failure;
}

int SharedContainer::data_fd(std::int64_t id) {
  const bool is_small = id >= 0 && id < static_cast<std::int64_t>(data_fds_.size());
  if (is_small)
    if (const int fd = data_fds_[static_cast<std::size_t>(id)].load(std::memory_order_acquire); fd >= 0) return fd;
  const std::lock_guard lock(data_mutex_);
  if (const auto known = data_.find(id); known != data_.end()) return known->second.get();
  Fd fd = directory_->open_dropping(Dropping::data, id, O_RDONLY);
  struct stat status {};
  if (!fd) return errno == ENOENT || errno == ENXIO ? -EIO : -errno;
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return -EIO;
  if (is_small) data_fds_[static_cast<std::size_t>(id)].store(fd.get(), std::memory_order_release);
  return data_.emplace(id, std::move(fd)).first->second.get();
}

/// 0 or errno. With the view's lock held.
int SharedContainer::failed_at(const PieceFailure& failure) const {
  const bool is_damage = failure.error == ENODATA || failure.error == EINVAL;  // cut since the index was written
  const int error = is_damage ? EIO : failure.error;
  if (error != 0 && error != EFAULT)
    say_(fmt::format("'{}': {} bytes from {} on cannot be read; see iosig container check",
                     directory_->shown(Dropping::data, failure.piece.id), failure.piece.length,
                     failure.piece.physical));
  return error;
}

std::int64_t SharedContainer::read_known(std::int64_t offset, std::span<std::byte> bytes) {
  const auto length = static_cast<std::int64_t>(bytes.size());
  if (offset < 0 || length > INT64_MAX - offset) return -EINVAL;
  notice_others();
  if (is_stale(offset, offset + length)) return -EAGAIN;
  const std::shared_lock lock(view_mutex_);
  if (!view_) return -EAGAIN;
  if (view_->has_lost_writes()) return read_pieces(offset, bytes);
  if (offset >= view_->size()) return 0;
  const std::int64_t known = std::min(length, view_->size() - offset);
  Piece piece = view_->piece_at(offset);
  if (piece.is_hole || piece.length < known) return read_pieces(offset, bytes);
  piece.length = known;
  const PieceFailure failure = read_piece(data_fd(piece.id), piece, bytes.data());
  return failure.error != 0 ? -failed_at(failure) : known;
}

/// With the view's lock held.
std::int64_t SharedContainer::read_pieces(std::int64_t offset, std::span<std::byte> bytes) {
  std::int64_t done = 0;
  const LostWrites* lost = nullptr;
  PieceReader reader([this](std::int64_t id) { return data_fd(id); }, fill_);
  view_->find(offset, static_cast<std::int64_t>(bytes.size()), [&](const Piece& piece) {
    if (lost == nullptr) lost = view_->lost_over(piece);
    if (lost != nullptr) return;
    reader.add(piece, bytes.data() + done);
    done += piece.length;
  });
  if (lost == nullptr && done == 0) lost = view_->lost_at_end();
  if (lost != nullptr) {
    say_(fmt::format("'{}': what is at byte {} may not be what was written last: {}; see iosig container check",
                     printable(directory_->path()), offset + done, lost->message));
    return -EIO;
  }
  const PieceFailure failure = reader.finish();
  return failure.error != 0 ? -failed_at(failure) : done;
}

std::int64_t SharedContainer::read(std::int64_t offset, std::span<std::byte> bytes) {
  for (;;) {
    const std::int64_t done = read_known(offset, bytes);
    if (done != -EAGAIN) return done;
    const int failure = refresh_view(offset, offset + static_cast<std::int64_t>(bytes.size()));
    if (failure != 0) return -failure;
  }
}

bool SharedContainer::give(std::int64_t offset, std::int64_t length,
                           const std::function<void(int, std::int64_t, std::size_t)>& give) {
  if (offset < 0 || length > INT64_MAX - offset || refresh_view(offset, offset + length) != 0) return false;
  const std::shared_lock lock(view_mutex_);  // keeps the descriptor open
  if (!view_ || offset >= view_->size()) return false;
  length = std::min(length, view_->size() - offset);
  const Piece piece = view_->piece_at(offset);
  if (piece.is_hole || piece.length < length || view_->lost_over(piece) != nullptr) return false;
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
    if (view_->lost_over(piece) != nullptr) return -EIO;
    if (piece.is_hole == (whence == SEEK_HOLE)) return offset;
    offset = piece.length > size - offset ? size : offset + piece.length;
  }
  if (view_->lost_at_end() != nullptr) return -EIO;
  return whence == SEEK_HOLE ? size : -ENXIO;
}

int SharedContainer::sync() {
  const std::lock_guard lock(writers_mutex_);
  int failure = 0;
  for (OpenWriter& each : writers_) {
    const std::lock_guard writer_lock(each.mutex);
    if (each.writer)
      if (const auto synced = each.writer->sync(); !synced) failure = failed(synced.error());
  }
  for (const std::int64_t id : unsynced_)
    for (const Dropping kind : {Dropping::data, Dropping::index}) {
      const auto subdirectory = directory_->open_subdirectory(kind, id);
      const Fd fd = directory_->open_dropping(kind, id, O_RDONLY);
      if (!fd && errno == ENOENT) continue;  // cut to nothing
      const Fd above(subdirectory ? ::openat(subdirectory->get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
      if (!fd || !above || ::fsync(fd.get()) != 0 || ::fsync(subdirectory->get()) != 0 || ::fsync(above.get()) != 0)
        failure = EIO;
    }
  if (failure == 0) unsynced_.clear();
  return failure;
}

}  // namespace iosig
