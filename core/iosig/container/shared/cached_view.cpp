#include "iosig/container/shared/cached_view.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "iosig/base/text.h"
#include "iosig/container/order/sequencer.h"

namespace iosig {
namespace {

constexpr std::uint64_t snapshot_magic = 0x01574f4e4b584f49;

/// The header of a snapshot; the index follows.
struct SnapshotHead {
  std::uint64_t magic_number = snapshot_magic;
  std::array<char, 64> node{};  ///< the name of the node's sequencer
  CachedStatus::Snapshot known;
};

std::array<char, 64> node_name() {
  std::array<char, 64> name{};
  const std::string sequencer = sequencer_name();
  std::memcpy(name.data(), sequencer.data(), std::min(sequencer.size(), name.size()));
  return name;
}

bool is_range(std::int64_t offset, std::size_t bytes) {
  return offset >= 0 && bytes <= static_cast<std::size_t>(INT64_MAX - offset);
}

}  // namespace

/// Reads the index. The caller holds the lock.
Result<void> CachedView::read_again() {
  SlotStates slots;  // read first: what is written meanwhile is found in the index, or is new
  if (const SequencerWatch* const watch = status_.watch()) watch->read(slots);
  if (view_) {
    if (auto read = view_->refresh(); !read) return read;
  } else {
    auto opened = ContainerView::open(directory_);
    if (!opened) return pass_on(std::move(opened.error()));
    view_ = *std::move(opened);
    view_->set_keeper(&keeper_);
  }
  follower_.start(*view_, std::move(slots));
  return {};
}

/// Brings bytes [begin, end) of the view up to date with all changes that the status has noticed. The caller holds no
/// lock.
int CachedView::refresh_noticed(std::int64_t begin, std::int64_t end, Depth depth) {
  const auto is_done = [&](bool is_stale) {
    return view_ && !is_stale && (depth == Depth::new_writes || !view_->has_new_writes());
  };
  {
    const bool was_stale = status_.is_stale(begin, end);
    const std::shared_lock lock(mutex_);
    if (is_done(was_stale)) return 0;
  }
  const std::unique_lock lock(mutex_);
  if (is_done(status_.is_stale(begin, end))) return 0;
  const bool may_follow = status_.begin_reading();
  const SequencerWatch* const watch = status_.watch();
  const bool has_followed =
      view_ && may_follow && watch != nullptr && depth == Depth::new_writes && follower_.follow(*view_, *watch);
  const Result<void> done = has_followed ? Result<void>() : read_again();
  const int failure = done ? 0 : log_(done.error());
  if (failure != 0) status_.changed(0, INT64_MAX, false);
  status_.end_reading(view_ ? view_->size() : 0);
  return failure;
}

int CachedView::refresh(std::int64_t begin, std::int64_t end, Depth depth) {
  status_.notice_others();
  return refresh_noticed(begin, end, depth);
}

/// Closes the data droppings unless a thread is reading, the calling one included: POSIX defines that trying a lock
/// which the thread holds fails.
std::size_t CachedView::close_idle_fds() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && view_ ? view_->close_idle_fds() + follower_.close_fds() : 0;
}

bool CachedView::is_known() {
  const std::shared_lock lock(mutex_);
  return view_ != nullptr;
}

std::int64_t CachedView::read_if_known(std::int64_t offset, std::span<std::byte> bytes) {
  if (!is_range(offset, bytes.size())) return -EINVAL;
  status_.notice_others();
  const auto done = try_read(offset, bytes);
  return done && *done ? **done : -EAGAIN;
}

/// Returns nothing if the status has noticed changes that the view may not show.
std::optional<Result<std::int64_t>> CachedView::try_read(std::int64_t offset, std::span<std::byte> bytes) {
  if (status_.is_stale(offset, offset + static_cast<std::int64_t>(bytes.size()))) return {};
  std::shared_lock lock(mutex_);
  if (!view_) return {};
  auto done = view_->read(offset, bytes, fill_);
  if (!done && done.error().system_errno == EMFILE) {
    lock.unlock();
    {
      const std::unique_lock alone(mutex_);
      view_->stop_keeping_fds();
    }
    lock.lock();
    done = view_->read(offset, bytes, fill_);
  }
  return done;
}

std::int64_t CachedView::read(std::int64_t offset, std::span<std::byte> bytes, IfLost if_lost) {
  constexpr int max_tries = 8;
  if (!is_range(offset, bytes.size())) return -EINVAL;
  const auto end = [&] { return offset + static_cast<std::int64_t>(bytes.size()); };
  status_.notice_others();
  for (int tries = 1;;) {
    const auto done = try_read(offset, bytes);
    if (!done) {
      if (const int failure = refresh_noticed(offset, end(), Depth::new_writes); failure != 0) return -failure;
      continue;
    }
    if (*done) return **done;
    // Another process may have truncated the file, and deleted what the view refers to.
    const bool may_be_old =
        tries++ < max_tries && status_.refresh_if_older_than(0) == 0 && status_.is_stale(offset, end());
    if (may_be_old) continue;
    if (if_lost == IfLost::stop && done->error().kind == ErrorKind::bad_input) {
      const std::size_t sound = length_before_loss(offset, bytes.size());
      if (0 < sound && sound < bytes.size()) {
        bytes = bytes.first(sound);
        if_lost = IfLost::fail;
        continue;
      }
    }
    return -log_(done->error());
  }
}

std::size_t CachedView::length_before_loss(std::int64_t offset, std::size_t length) {
  const std::shared_lock lock(mutex_);
  return view_ ? static_cast<std::size_t>(view_->length_before_loss(offset, static_cast<std::int64_t>(length))) : 0;
}

std::int64_t CachedView::seek(std::int64_t offset, int whence) {
  if (const int failure = refresh(0, INT64_MAX); failure != 0) return -failure;
  const std::shared_lock lock(mutex_);
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

bool CachedView::with_data_of(std::int64_t offset, std::int64_t length,
                              const std::function<void(int, std::int64_t, std::size_t)>& use) {
  if (offset < 0 || length > INT64_MAX - offset || refresh(offset, offset + length) != 0) return false;
  const std::shared_lock lock(mutex_);
  if (!view_ || offset >= view_->size()) return false;
  length = std::min(length, view_->size() - offset);
  const Piece piece = view_->piece_at(offset);
  if (piece.is_hole || piece.length < length || view_->lost_over(piece) != nullptr) return false;
  if (view_->is_verified(piece.id, length)) return false;
  Fd temporary;
  const auto fd = view_->open_data(piece.id, temporary);
  struct stat status {};
  if (!fd || ::fstat(*fd, &status) != 0 || status.st_size - piece.physical < length) return false;
  use(*fd, piece.physical, static_cast<std::size_t>(length));
  return true;
}

Result<std::vector<std::byte>> CachedView::export_index_snapshot() {
  for (int tries_left = 4; tries_left > 0; --tries_left) {
    status_.notice_others();
    SnapshotHead head{.node = node_name(), .known = {.node_changes = status_.node_changes()}};
    const bool was_known = is_known();
    int failure = was_known ? status_.refresh_if_older_than(0) : 0;  // otherwise refresh() reads the index anyway
    if (failure == 0) failure = refresh(0, INT64_MAX, Depth::whole);
    if (failure != 0) return system_failure("read", directory_->path(), failure);
    const std::shared_lock lock(mutex_);
    const auto fingerprint = status_.fingerprint_if_fresh();
    if (!view_ || !fingerprint || view_->has_new_writes()) continue;
    const auto index = view_->index();
    if (!index) return pass_on(index.error());
    if (was_known) head.known.fingerprint = *fingerprint;
    const auto head_bytes = std::as_bytes(std::span(&head, 1)), index_bytes = std::as_bytes(std::span(*index));
    std::vector<std::byte> all(head_bytes.begin(), head_bytes.end());
    all.insert(all.end(), index_bytes.begin(), index_bytes.end());
    return all;
  }
  return fail(ErrorKind::infeasible, "'{}' is being written", printable(directory_->path()));
}

bool CachedView::import_index_snapshot(std::span<const std::byte> bytes) {
  SnapshotHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic_number != snapshot_magic) return false;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data()) + sizeof head;
  const std::span<const std::uint8_t> index(begin, bytes.size() - sizeof head);
  auto view = ContainerView::open(directory_, index);
  if (!view) return false;
  const std::unique_lock lock(mutex_);
  if (view_ || !status_.adopt(head.known, (*view)->status(), head.node == node_name())) return false;
  view_ = *std::move(view);
  view_->set_keeper(&keeper_);
  return true;
}

}  // namespace iosig
