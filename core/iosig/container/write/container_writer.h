// One writer of a container. It appends the bytes to its own data dropping, and their places in the file to its own
// index dropping.
//
// A write costs one pwrite, a record in the mapped tail (container/layout/tail), and a vector for the detector. The
// detector's pattern becomes a frame of the index when the tail is full and when the writer is closed. Once write() has
// returned, readers find the bytes, even if the writer is killed; after sync(), also after a power failure.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "iosig/analyze/detect.h"
#include "iosig/base/size_limit.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/data_checksums.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/read/content.h"

namespace iosig {

/// Used by one thread at a time. Every thread and every process that writes has its own writer. A child that inherited
/// one by fork must only destroy it, which leaves the parent's droppings unchanged.
class ContainerWriter {
 public:
  /// `owner`: identifies the writer's owner, whose SequencerWatch ignores its changes. `content` is set to what this
  /// call read of the container, if it had to read it.
  static Result<std::unique_ptr<ContainerWriter>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                       std::uint64_t owner = 0,
                                                       std::optional<ContainerContent>* content = nullptr);
  ContainerWriter(const ContainerWriter&) = delete;
  ContainerWriter& operator=(const ContainerWriter&) = delete;
  /// Closes the writer. **Errors of close() are lost**; call it before to see them.
  ~ContainerWriter();

  /// Writes and returns the number of bytes written: fewer than given only when the device or the quota is full. Fails
  /// as `infeasible` if not even the first byte fits, as `usage` if the bytes would end after byte 2^63 - 1.
  [[nodiscard]] Result<std::int64_t> write(std::int64_t offset, std::span<const std::byte> bytes) {
    // Inline: the system call must be made by the caller; see runtime/preload/files/data.h.
    auto sequence = begin_write(offset, bytes.size());
    if (!sequence || bytes.empty()) return sequence;
    return finish_write(offset, bytes, *sequence, ::pwrite(data_.get(), bytes.data(), bytes.size(), physical_));
  }
  /// Writes at the end of the file, like O_APPEND; no other append on this node gets the same offset. Returns the
  /// offset, and the number of bytes written in `written`.
  [[nodiscard]] Result<std::int64_t> append(std::span<const std::byte> bytes, std::int64_t& written);
  /// **Discards** the bytes behind `size`, which becomes the end of the file. They read as zeros if the file grows
  /// again.
  [[nodiscard]] Result<void> truncate(std::int64_t size);
  /// Grows the file to `size` if it is shorter. Allocates no space: a log cannot.
  [[nodiscard]] Result<void> extend(std::int64_t size);
  /// **Discards** `length` bytes from `offset`, which become a hole. The file keeps its size.
  [[nodiscard]] Result<void> punch(std::int64_t offset, std::int64_t length);
  /// Flushes everything written to the device.
  [[nodiscard]] Result<void> sync();
  /// Writes the rest of the index. No other function may be called afterwards.
  [[nodiscard]] Result<void> close();

  [[nodiscard]] std::int64_t id() const { return id_; }
  /// Whether the data dropping may grow by so many bytes: RLIMIT_FSIZE applies to it.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const {
    return !exceeds_size_limit(physical_ + static_cast<std::int64_t>(bytes));
  }
  /// Returns the descriptor of the data dropping, whose modification time is that of the last write; -1: closed.
  [[nodiscard]] int data_fd() const { return data_.get(); }
  /// Whether a close of the droppings has failed: the file system may have lost writes that it had accepted.
  [[nodiscard]] bool are_writes_refused() const { return are_writes_refused_; }
  /// Closes the droppings' descriptors; the next call that needs them opens them again. Returns their number.
  std::size_t close_fds();
  [[nodiscard]] const ContainerDirectory& directory() const { return *directory_; }
  /// Increases with every change.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  explicit ContainerWriter(std::shared_ptr<const ContainerDirectory> directory);
  Result<void> make_droppings();
  Result<void> refuse_if_replaced();
  /// Returns the sequence number of a write; 0 if it has no bytes.
  Result<std::int64_t> begin_write(std::int64_t offset, std::size_t bytes);
  /// `put`: the result of the first pwrite: bytes written, or -1 with errno.
  Result<std::int64_t> finish_write(std::int64_t offset, std::span<const std::byte> bytes, std::int64_t sequence,
                                    ssize_t put);
  Result<void> remember(std::int64_t offset, std::int64_t length, std::int64_t sequence);
  Result<void> write_frame();
  Result<void> append_to_index(std::vector<std::uint8_t> frame);
  Result<void> mark(IndexMark mark, std::int64_t end);
  Result<void> sync_names();
  Result<void> reopen_fds();
  void save_index_snapshot();
  [[nodiscard]] bool is_inherited() const;

  std::shared_ptr<const ContainerDirectory> directory_;
  std::int64_t id_ = -1;
  IndexHead head_;
  SequencerSlot slot_;
  Fd data_, index_;  ///< both are open, or none
  struct stat data_status_ {
  }, index_status_{};                ///< of the droppings when close_fds() closed them
  int close_errno_ = 0;              ///< of a close that failed; the next change reports it
  bool are_writes_refused_ = false;  ///< no record may call the droppings whole then
  Tail tail_;
  std::int64_t physical_ = 0;     ///< bytes in the data dropping that belong to the file
  std::int64_t data_end_ = 0;     ///< bytes in it, including those of failed writes
  std::int64_t index_bytes_ = 0;  ///< bytes of complete frames
  bool is_index_torn_ = false;    ///< behind them is the rest of a frame that was not written
  std::uint32_t index_checksum_ = 0;
  LogChecksums checksums_;                ///< of the first physical_ bytes
  std::vector<std::uint8_t> index_copy_;  ///< of all frames, while they are few
  bool is_traditional_ = false, is_tail_synced_ = false, is_index_synced_ = false, are_names_synced_ = false;
  bool is_open_ = false;
  SyncRecord sync_record_;
  OtherNodes other_nodes_;
  unsigned forks_ = 0;
  std::uint64_t version_ = 0;
  std::int64_t began_ns_ = 0;  ///< start of the current write, for a traditional index

  // Since the last frame.
  Detector detector_;
  std::vector<IndexEntry> entries_;
  IndexedWrites frame_;
  std::uint64_t run_begin_ = 0;          ///< position of the first write under the current number
  std::vector<std::uint8_t> unwritten_;  ///< the frame that could not be written for lack of space
};

}  // namespace iosig
