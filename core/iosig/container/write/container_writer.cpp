#include "iosig/container/write/container_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <tuple>
#include <utility>

#include "iosig/base/crc32c.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/target_owner.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/read/regular_writers.h"

namespace iosig {
namespace {

/// A run of so many writes under one number ends its frame, which keeps frames disjoint in time. A frame costs about 60
/// bytes.
constexpr std::uint64_t min_run = 256;
constexpr int max_id_tries = 1 << 16;
/// Bytes of an index that a writer keeps in memory for the record of its close.
constexpr std::int64_t max_copied_index = 64 << 10;
constexpr std::int64_t min_merged_bytes = 1 << 20;  ///< of indices: their first open takes about 50 ms

/// Counts the forks that led to this process. A writer opened before the last of them belongs to a parent process.
std::atomic<unsigned> forks{0};
[[maybe_unused]] const int counted = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

tl::unexpected<Error> closed_already() {
  return fail_with_errno(EBADF, ErrorKind::usage, "the writer is closed, or was inherited across fork()");
}

}  // namespace

ContainerWriter::ContainerWriter(std::shared_ptr<const ContainerDirectory> directory)
    : directory_(std::move(directory)),
      is_traditional_(directory_->manifest().index == IndexKind::traditional),
      forks_(forks.load(std::memory_order_relaxed)),
      detector_(index_detection()) {}

Result<std::unique_ptr<ContainerWriter>> ContainerWriter::open(std::shared_ptr<const ContainerDirectory> directory,
                                                               std::uint64_t owner,
                                                               std::optional<ContainerContent>* content) {
  const auto start = [&]() -> Result<SequencerStart> {
    auto read = read_content(*directory, ContentSource::records);
    if (!read) return pass_on(std::move(read.error()));
    const ContainerDirectory::Listing listing = directory->list();
    // A writer whose droppings are gone is still known by its record: its id must not be given to another.
    SequencerStart known{read->last_sequence(), read->last_recorded_id + 1, read->size()};
    if (content != nullptr) *content = *std::move(read);
    for (const auto* ids : {&listing.data, &listing.index, &listing.tail})
      if (!ids->empty()) known.next_id = std::max(known.next_id, ids->back() + 1);
    return known;
  };
  if (auto may = may_be_written(*directory); !may) return pass_on(std::move(may.error()));
  auto slot = SequencerSlot::take(directory->fd(), directory->path(), start, owner);
  if (!slot) return pass_on(std::move(slot.error()));
  std::unique_ptr<ContainerWriter> writer(new ContainerWriter(std::move(directory)));
  writer->slot_ = *std::move(slot);
  Result<void> made = writer->make_droppings();
  for (int tries = 1; !made && made.error().system_errno == EAGAIN && tries < max_id_tries; ++tries)
    made = writer->make_droppings();
  if (!made) return pass_on(std::move(made.error()));
  writer->slot_.set_writer(writer->id_);
  writer->is_open_ = true;
  return writer;
}

/// Creates the index first: its exclusive creation reserves the id. Then the data; a writer without data wrote nothing.
Result<void> ContainerWriter::make_droppings() {
  index_ = Fd();
  data_ = Fd();
  index_bytes_ = 0;
  is_index_torn_ = false;
  index_checksum_ = 0;
  index_copy_.clear();
  checksums_ = {};
  const int flags = O_WRONLY | O_CREAT | O_EXCL;
  constexpr unsigned mode = 0600;  // until share_piece() sets the mode
  for (int tries = 0; !index_ && tries < max_id_tries; ++tries) {
    id_ = slot_.next_id();
    if (auto subdirectory = directory_->open_subdirectory(Dropping::index, id_, true); !subdirectory)
      return pass_on(std::move(subdirectory.error()));
    index_ = directory_->open_dropping(Dropping::index, id_, flags | O_APPEND, mode);
    if (!index_ && errno != EEXIST) return write_failure("make", directory_->shown(Dropping::index, id_), errno);
  }
  if (!index_)
    return fail(ErrorKind::system, "'{}': every id for a new writer is taken", printable(directory_->path()));
  const auto give_up = [&](Error error) {
    directory_->delete_data_and_index(id_);
    return pass_on(std::move(error));
  };
  if (auto shared = directory_->share_piece(index_.get(), directory_->shown(Dropping::index, id_)); !shared)
    return give_up(std::move(shared.error()));
  head_ = {.container = directory_->manifest().id,
           .id = id_,
           .target = directory_->target_of(id_),
           .host = host_name(),
           .pid = ::getpid(),
           .created_unix_ns = unix_ns(),
           .version = directory_->manifest().version};
  if (auto written = append_to_index(index_frame(head_)); !written) return give_up(std::move(written.error()));
  if (auto subdirectory = directory_->open_subdirectory(Dropping::data, id_, true); !subdirectory)
    return give_up(std::move(subdirectory.error()));
  data_ = directory_->open_dropping(Dropping::data, id_, flags, mode);
  if (!data_) return give_up(write_failure("make", directory_->shown(Dropping::data, id_), errno).value());
  if (auto shared = directory_->share_piece(data_.get(), directory_->shown(Dropping::data, id_)); !shared)
    return give_up(std::move(shared.error()));
  // A write is not an access. With a zero access time, the kernel (relatime) sets it at the first read.
  const timespec no_access[2] = {{0, 0}, {0, UTIME_OMIT}};
  (void)::futimens(data_.get(), no_access);
  const Fd tail_file = directory_->open_dropping(Dropping::tail, id_, O_RDWR | O_CREAT | O_EXCL, mode);
  if (!tail_file) return give_up(write_failure("make", directory_->shown(Dropping::tail, id_), errno).value());
  auto tail =
      Tail::make(tail_file, directory_->shown(Dropping::tail, id_), tail_identity(directory_->manifest().id, id_));
  if (!tail) {
    // Repair has taken the new tail. The caller retries with another id; the empty index that remains says that this id
    // wrote nothing.
    (void)directory_->unlink_dropping(Dropping::tail, id_);
    if (tail.error().system_errno != EAGAIN) return give_up(std::move(tail.error()));
    return pass_on(std::move(tail.error()));
  }
  tail_ = *std::move(tail);
  if (auto shared = directory_->share_piece(tail_file.get(), directory_->shown(Dropping::tail, id_)); !shared) {
    (void)directory_->unlink_dropping(Dropping::tail, id_);
    return give_up(std::move(shared.error()));
  }
  return refuse_if_replaced();
}

/// Fails while another process replaces the container by an ordinary file, or removes it. That process locks the
/// directory exclusively before it looks for tails.
Result<void> ContainerWriter::refuse_if_replaced() {
  const Fd directory = open_file_at(directory_->fd().get(), ".", O_RDONLY | O_DIRECTORY);
  if (directory && ::flock(directory.get(), LOCK_SH | LOCK_NB) == 0) return {};
  (void)directory_->unlink_dropping(Dropping::tail, id_);
  directory_->delete_data_and_index(id_);
  return fail_with_errno(EBUSY, ErrorKind::infeasible, "'{}' is being replaced by an ordinary file, or removed",
                         printable(directory_->path()));
}

ContainerWriter::~ContainerWriter() {
  if (is_inherited()) slot_.let_go();
  try {
    if (is_open_ && !is_inherited()) (void)close();
  } catch (const std::bad_alloc&) {  // as after a crash: the tail has the writes that the index lacks
  }
}

bool ContainerWriter::is_inherited() const { return forks_ != forks.load(std::memory_order_relaxed); }

Result<std::int64_t> ContainerWriter::begin_write(std::int64_t offset, std::size_t bytes) {
  if (!is_open_ || is_inherited()) return closed_already();
  if (bytes == 0) return 0;
  const auto length = static_cast<std::int64_t>(bytes);
  if (offset < 0 || length < 0 || offset > INT64_MAX - length)
    return fail_with_errno(EFBIG, ErrorKind::usage, "'{}': {} bytes at offset {} end after byte 2^63 - 1",
                           printable(directory_->path()), bytes, offset);
  if (is_traditional_) began_ns_ = unix_ns();
  return slot_.number_for(static_cast<std::uint64_t>(offset), bytes);
}

Result<std::int64_t> ContainerWriter::finish_write(std::int64_t offset, std::span<const std::byte> bytes,
                                                   std::int64_t sequence, ssize_t put) {
  const auto length = static_cast<std::int64_t>(bytes.size());
  std::int64_t done = 0;
  for (;;) {
    if (put > 0) done += put;
    if (done == length || put == 0) break;
    if (put < 0 && errno == EBADF && !data_) {
      if (auto opened = reopen_fds(); !opened) return pass_on(std::move(opened.error()));
    } else if (put < 0 && errno != EINTR) {
      if (done == 0) return write_failure("write", directory_->shown(Dropping::data, id_), errno);
      break;  // a partial write succeeds, as in write(2)
    }
    put = ::pwrite(data_.get(), bytes.data() + done, static_cast<std::size_t>(length - done), physical_ + done);
  }
  data_end_ = std::max(data_end_, physical_ + done);
  if (is_traditional_) entries_.push_back({offset, done, physical_, sequence, began_ns_, unix_ns(), id_});
  if (auto kept = remember(offset, done, sequence); !kept) return pass_on(std::move(kept.error()));
  checksums_.add(bytes.first(static_cast<std::size_t>(done)));
  return done;
}

Result<void> ContainerWriter::remember(std::int64_t offset, std::int64_t length, std::int64_t sequence) {
  const std::uint64_t count = is_traditional_ ? entries_.size() - 1 : detector_.count();
  const bool is_new_run = frame_.closed != sequence;
  if ((is_new_run && count - run_begin_ >= min_run) || !unwritten_.empty())
    if (auto written = write_frame(); !written) {
      if (is_traditional_) entries_.pop_back();
      return written;
    }
  while (!tail_.note(offset, length, physical_, sequence)) {
    if (tail_.make_room(directory_->open_dropping(Dropping::tail, id_, O_RDWR))) continue;
    if (auto written = write_frame(); !written) {
      if (is_traditional_) entries_.pop_back();
      return written;
    }
  }
  if (frame_.physical_end == 0) {
    frame_.opened = sequence;
    frame_.physical = physical_;
    run_begin_ = 0;
  } else if (is_new_run) {
    run_begin_ = count;
  }
  frame_.closed = sequence;
  frame_.logical_end = std::max(frame_.logical_end, offset + length);
  if (!is_traditional_) detector_.push(std::array{offset, length, physical_, sequence});
  physical_ += length;
  frame_.physical_end = physical_;
  slot_.extend(offset + length);
  slot_.changed();
  ++version_;
  return {};
}

/// Appends the writes in the tail to the index as a frame, and clears the tail. If there is no space, the tail keeps
/// them.
Result<void> ContainerWriter::write_frame() {
  if (auto opened = reopen_fds(); !opened) return opened;
  if (unwritten_.empty()) {
    if (frame_.physical_end == 0) return {};
    frame_.entries.clear();
    if (is_traditional_) {
      const bool has_newest = entries_.back().physical == physical_;  // already recorded, but belongs to the next frame
      const IndexEntry newest = entries_.back();
      if (has_newest) entries_.pop_back();
      frame_.entries = std::exchange(entries_, {});
      if (has_newest) entries_.push_back(newest);
    } else {
      frame_.pattern = detector_.finish();
    }
    unwritten_ = index_frame(frame_);
    frame_ = {};
  }
  // The index bears the time of the last mark. This frame describes earlier writes, whose time the data dropping bears.
  struct stat before {};
  const bool has_times = ::fstat(index_.get(), &before) == 0;
  const std::int64_t bytes_before = index_bytes_;
  const std::uint32_t checksum_before = index_checksum_;
  if (auto written = append_to_index(unwritten_); !written) return written;
  const timespec times[2] = {{0, UTIME_OMIT}, before.st_mtim};
  if (has_times) (void)::futimens(index_.get(), times);
  // Writes that sync() made durable stay durable in the tail until the frame is on the device. After a failure the
  // kernel takes the frame's pages for stored, so it has to be written again.
  if (is_tail_synced_ && ::fdatasync(index_.get()) != 0) {
    const int why = errno;
    is_index_torn_ = ::ftruncate(index_.get(), static_cast<off_t>(bytes_before)) != 0;
    index_bytes_ = bytes_before;
    index_checksum_ = checksum_before;
    index_copy_.resize(std::min(index_copy_.size(), static_cast<std::size_t>(bytes_before)));
    return system_failure("sync", directory_->shown(Dropping::index, id_), why);
  }
  unwritten_.clear();
  is_index_synced_ = false;
  is_tail_synced_ = false;
  tail_.clear();
  return {};
}

/// Appends a frame to the index. Fails, and appends nothing, while the rest of a torn one is at its end.
Result<void> ContainerWriter::append_to_index(std::vector<std::uint8_t> frame) {
  const std::string shown = directory_->shown(Dropping::index, id_);
  if (index_bytes_ > 0) bind_frame(frame, head_, index_bytes_);
  if (exceeds_size_limit(index_bytes_ + static_cast<std::int64_t>(frame.size())))
    return system_failure("write", shown, EFBIG);
  const bool is_copied =
      std::ssize(index_copy_) == index_bytes_ && index_bytes_ + std::ssize(frame) <= max_copied_index;
  if (is_copied) index_copy_.reserve(index_copy_.size() + frame.size());
  const auto cut = [&] {
    is_index_torn_ = ::ftruncate(index_.get(), static_cast<off_t>(index_bytes_)) != 0;
    return !is_index_torn_;
  };
  if (is_index_torn_ && !cut()) return write_failure("write", shown, errno);
  const auto written = write_all(index_.get(), {reinterpret_cast<const char*>(frame.data()), frame.size()}, shown);
  if (!written) {
    (void)cut();
    return write_failure("write", shown, written.error().system_errno);
  }
  index_bytes_ += static_cast<std::int64_t>(frame.size());
  index_checksum_ = crc32c(frame, index_checksum_);
  if (is_copied)
    index_copy_.insert(index_copy_.end(), frame.begin(), frame.end());
  else
    index_copy_ = {};
  return {};
}

Result<std::int64_t> ContainerWriter::append(std::span<const std::byte> bytes, std::int64_t& written) {
  if (!is_open_ || is_inherited()) return closed_already();
  const auto length = static_cast<std::int64_t>(bytes.size());
  const std::int64_t offset = slot_.append(length);
  const auto done = write(offset, bytes);
  slot_.end_append(offset, length, done.value_or(0));
  if (!done) return pass_on(done.error());
  written = *done;
  return offset;
}

/// Appends a mark to the index at once. The writes in the tail have their own sequence numbers.
Result<void> ContainerWriter::mark(IndexMark mark, std::int64_t end) {
  if (!is_open_ || is_inherited()) return closed_already();
  if (mark.offset < 0 || mark.length < 0 || mark.length > INT64_MAX - mark.offset)
    return fail_with_errno(EFBIG, ErrorKind::usage, "'{}': offset {} exceeds the maximum file size",
                           printable(directory_->path()), mark.offset);
  if (auto opened = reopen_fds(); !opened) return opened;
  mark.sequence = slot_.number_once(static_cast<std::uint64_t>(mark.offset), static_cast<std::uint64_t>(end));
  if (auto written = append_to_index(index_frame(mark)); !written) return written;
  is_index_synced_ = false;
  slot_.marked();
  ++version_;
  return {};
}

Result<void> ContainerWriter::truncate(std::int64_t size) {
  if (auto marked = mark({IndexMark::Kind::truncate, size, 0, 0}, INT64_MAX); !marked) return marked;
  slot_.set_size(size);
  return {};
}

Result<void> ContainerWriter::extend(std::int64_t size) {
  if (auto marked = mark({IndexMark::Kind::extend, size, 0, 0}, size); !marked) return marked;
  slot_.extend(size);
  return {};
}

Result<void> ContainerWriter::punch(std::int64_t offset, std::int64_t length) {
  return mark({IndexMark::Kind::punch, offset, length, 0}, offset + std::max<std::int64_t>(0, length));
}

Result<void> ContainerWriter::sync() {
  if (!is_open_ || is_inherited()) return closed_already();
  if (auto opened = reopen_fds(); !opened) return opened;
  if (::fdatasync(data_.get()) != 0) return system_failure("sync", directory_->shown(Dropping::data, id_));
  if (!is_index_synced_ && ::fdatasync(index_.get()) != 0)
    return system_failure("sync", directory_->shown(Dropping::index, id_));
  is_index_synced_ = true;
  // Programs of version 1 would take a record of this kind for damage.
  const bool should_record = head_.version > 1 && !sync_record_.is_there(*directory_);
  const Fd records = should_record ? SyncRecord::open_file(*directory_) : Fd();
  if (!are_names_synced_ || records)
    if (auto synced = sync_names(); !synced) return synced;
  if (auto synced = tail_.sync({physical_, index_bytes_, checksums_.whole(), index_checksum_}); !synced) return synced;
  is_tail_synced_ = !tail_.is_empty();
  if (records) sync_record_.append(*directory_, records, {.id = id_, .data_bytes = physical_});
  const auto others = other_nodes_.are_there(directory_->fd(), directory_->path());
  if (!others) return pass_on(others.error());
  // The clock orders writes between nodes: a write after a sync needs a number from after it.
  if (*others) slot_.renew_at_next();
  return {};
}

std::size_t ContainerWriter::close_fds() {
  if (!is_open_ || is_inherited() || !data_ || ::fstat(data_.get(), &data_status_) != 0 ||
      ::fstat(index_.get(), &index_status_) != 0)
    return 0;
  // Some file systems report at the close that the server has refused earlier writes.
  for (Fd* fd : {&data_, &index_})
    if (::close(fd->release()) != 0 && errno != EINTR) {
      close_errno_ = errno;
      are_writes_refused_ = true;
    }
  return 2;
}

/// Opens the droppings again after close_fds(). Fails if they are not the same files.
Result<void> ContainerWriter::reopen_fds() {
  if (const int failure = std::exchange(close_errno_, 0); failure != 0)
    return system_failure("write", directory_->shown(Dropping::data, id_), failure);
  if (data_) return {};
  Fd data = directory_->open_dropping(Dropping::data, id_, O_WRONLY),
     index = directory_->open_dropping(Dropping::index, id_, O_WRONLY | O_APPEND);
  for (const auto& [fd, known, kind] :
       {std::tuple(&data, &data_status_, Dropping::data), std::tuple(&index, &index_status_, Dropping::index)}) {
    struct stat now {};
    if (!*fd || ::fstat(fd->get(), &now) != 0) return system_failure("open", directory_->shown(kind, id_));
    if (!is_same_inode(now, *known))
      return fail_with_errno(ESTALE, ErrorKind::system, "'{}' was replaced by another file",
                             directory_->shown(kind, id_));
  }
  data_ = std::move(data);
  index_ = std::move(index);
  return {};
}

/// Flushes the names of the droppings and of their directories, so they survive a power failure.
Result<void> ContainerWriter::sync_names() {
  const bool have_one_directory = directory_->target_of(id_) < 0;
  for (const Dropping kind : {Dropping::index, Dropping::data}) {
    if (kind == Dropping::data && have_one_directory) break;
    const auto subdirectory = directory_->open_subdirectory(kind, id_);
    if (!subdirectory) return pass_on(subdirectory.error());
    const Fd above = open_file_at(subdirectory->get(), "..", O_RDONLY | O_DIRECTORY);
    if (::fsync(subdirectory->get()) != 0 || !above || ::fsync(above.get()) != 0)
      return system_failure("sync the directory of", directory_->shown(kind, id_));
  }
  are_names_synced_ = true;
  return {};
}

Result<void> ContainerWriter::close() {
  if (!is_open_ || is_inherited()) return closed_already();
  if (auto written = write_frame(); !written) return written;
  // Without a tail, bytes that no index describes would count as lost data.
  if (data_end_ > physical_ && ::ftruncate(data_.get(), physical_) != 0)
    return write_failure("cut", directory_->shown(Dropping::data, id_), errno);
  (void)close_fds();
  is_open_ = false;
  if (are_writes_refused_) {  // the tail stays, as after a crash
    const int failure = std::exchange(close_errno_, 0);
    return write_failure("write", directory_->shown(Dropping::data, id_), failure != 0 ? failure : EIO);
  }
  const bool is_copied = std::ssize(index_copy_) == index_bytes_;
  const std::int64_t records_bytes = record_closed_writer(
      *directory_, {.id = id_,
                    .data_bytes = physical_,
                    .index_bytes = index_bytes_,
                    .index_checksum = index_checksum_,
                    .data = checksums_.bytes() == physical_ ? checksums_.blocks() : DataChecksums{},
                    .index = is_copied ? index_copy_ : std::span<const std::uint8_t>()});
  tail_ = {};
  // A repair or a truncation removes the tail of a writer that does not hold it any more.
  if (directory_->unlink_dropping(Dropping::tail, id_) != 0 && errno != ENOENT)
    return system_failure("remove", directory_->shown(Dropping::tail, id_));
  const bool should_merge = slot_.leave(index_bytes_, std::max(min_merged_bytes, records_bytes / 3));
  slot_ = {};
  if (should_merge && !is_traditional_) save_index_snapshot();
  return {};
}

/// Leaves an index snapshot for the first reader, as a reader would for the second one. It is a replica: no failure is
/// the program's.
void ContainerWriter::save_index_snapshot() {
  try {
    const auto others = other_nodes_.are_there(directory_->fd(), directory_->path());
    if (!others || *others) return;
    const DirectoryState before = state_of(*directory_);
    ContainerDirectory::Listing listing = directory_->list();
    if (auto regular = merge_regular_writers(*directory_, listing))
      iosig::save_index_snapshot(*directory_, before, *regular);
    else if (const auto content = read_content(*directory_, ContentSource::records, std::move(listing)))
      iosig::save_index_snapshot(*directory_, before, *content);
  } catch (const std::bad_alloc&) {  // the first reader merges the indices
  }
}

}  // namespace iosig
