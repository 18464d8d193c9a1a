// One writer of a container: what it writes is appended to its own data dropping, where that belongs to its own index.
//
// A write is one pwrite, a record in the mapped tail (container/layout/tail), and a vector for the detector, whose
// pattern becomes a frame of the index when the tail is full and when the writer is closed. What a write said was
// written is found by readers from then on, also if the writer is killed; after sync() also if the power fails.
#pragma once

#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "iosig/analyze/detect.h"
#include "iosig/base/size_limit.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/read/content.h"

namespace iosig {

/// One thread at a time. Every thread, and every process, that writes has its own; a child that inherited one by fork
/// must not use it but let it go, which does not touch what its parent writes.
class ContainerWriter {
 public:
  /// `owner`: its SequencerWatch does not notice this writer's changes. `content` is set if this call had to read the
  /// container, to what it read.
  static Result<std::unique_ptr<ContainerWriter>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                       std::uint64_t owner = 0,
                                                       std::optional<ContainerContent>* content = nullptr);
  ContainerWriter(const ContainerWriter&) = delete;
  ContainerWriter& operator=(const ContainerWriter&) = delete;
  /// As close(), whose failure nobody learns of.
  ~ContainerWriter();

  /// Bytes written, fewer than given only when room or quota ends (`infeasible` when there is none for the first one).
  /// Fails as `usage` for bytes that would end after byte 2^63 - 1.
  [[nodiscard]] Result<std::int64_t> write(std::int64_t offset, std::span<const std::byte> bytes) {
    // Here, so that the system call is its caller's: see runtime/preload/files/data.h.
    auto sequence = begin_write(offset, bytes.size());
    if (!sequence || bytes.empty()) return sequence;
    return finish_write(offset, bytes, *sequence, ::pwrite(data_.get(), bytes.data(), bytes.size(), physical_));
  }
  /// At the end of the file, as O_APPEND: no other append on this node gets the same place. The offset, and the bytes
  /// written, in `written`.
  [[nodiscard]] Result<std::int64_t> append(std::span<const std::byte> bytes, std::int64_t& written);
  /// The file ends at `size`; what was behind it is gone, zeros take its place if the file grows again.
  [[nodiscard]] Result<void> truncate(std::int64_t size);
  /// The file ends at `size` at least. Reserves no room: a log cannot.
  [[nodiscard]] Result<void> extend(std::int64_t size);
  /// The `length` bytes from `offset` on become a hole. The file's end stays.
  [[nodiscard]] Result<void> punch(std::int64_t offset, std::int64_t length);
  /// Everything written is on the device.
  [[nodiscard]] Result<void> sync();
  /// Writes what is left of the index. Afterwards nothing may be called.
  [[nodiscard]] Result<void> close();

  [[nodiscard]] std::int64_t id() const { return id_; }
  /// Whether the data dropping can take so many bytes more: RLIMIT_FSIZE counts for it as for any file.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const {
    return !exceeds_size_limit(physical_ + static_cast<std::int64_t>(bytes));
  }
  /// The data dropping, which has the time of the last write.
  [[nodiscard]] int data_fd() const { return data_.get(); }
  [[nodiscard]] const ContainerDirectory& directory() const { return *directory_; }
  /// Grows with every change.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  explicit ContainerWriter(std::shared_ptr<const ContainerDirectory> directory);
  Result<void> make_droppings();
  Result<void> refuse_if_replaced();
  /// The number of a write; 0 if it has no bytes.
  Result<std::int64_t> begin_write(std::int64_t offset, std::size_t bytes);
  /// `put`: bytes of it that are in the data dropping already, or -1 and errno.
  Result<std::int64_t> finish_write(std::int64_t offset, std::span<const std::byte> bytes, std::int64_t sequence,
                                    ssize_t put);
  Result<void> remember(std::int64_t offset, std::int64_t length, std::int64_t sequence);
  Result<void> write_frame();
  Result<void> append_to_index(const std::vector<std::uint8_t>& frame);
  Result<void> mark(IndexMark mark, std::int64_t end);
  Result<void> sync_names();
  [[nodiscard]] bool is_inherited() const;

  std::shared_ptr<const ContainerDirectory> directory_;
  std::int64_t id_ = -1;
  SequencerSlot slot_;
  Fd data_, index_;
  Tail tail_;
  std::int64_t physical_ = 0;     ///< bytes in the data dropping that are of the file
  std::int64_t data_end_ = 0;     ///< bytes in it, with those of writes that failed
  std::int64_t index_bytes_ = 0;  ///< of sound frames
  bool is_traditional_ = false, is_tail_synced_ = false, is_index_synced_ = false, are_names_synced_ = false;
  bool is_open_ = false;
  OtherNodes other_nodes_;
  unsigned forks_ = 0;
  std::uint64_t version_ = 0;
  std::int64_t began_ns_ = 0;  ///< the write at hand, for a traditional index

  // Since the last frame.
  Detector detector_;
  std::vector<IndexEntry> entries_;
  IndexedWrites frame_;
  std::uint64_t run_begin_ = 0;          ///< position of the first write under the current number
  std::vector<std::uint8_t> unwritten_;  ///< the frame that there was no room for
};

}  // namespace iosig
