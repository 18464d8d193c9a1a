// A container as its readers see it: the indices of all writers merged into one, and the bytes that they describe.
//
// A view shows the writes that had ended when it was opened or refreshed. It holds an index, which may be large, and
// descriptors of data droppings. Sharing a view among the threads of a process, and refreshing it after writes, is
// container/shared/cached_view's job.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "iosig/analyze/lookup.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/data_droppings.h"
#include "iosig/container/read/data_verifier.h"
#include "iosig/container/read/new_writes.h"
#include "iosig/container/read/piece_map.h"
#include "iosig/container/read/piece_reader.h"

namespace iosig {

/// Const functions may run in any number of threads at the same time. The caller must not run another function
/// concurrently with them.
class ContainerView {
 public:
  enum class Source {
    snapshot,   ///< the index snapshot, if there is one and it is up to date; else the droppings
    droppings,  ///< for a caller that needs each writer's content, or all problems
  };
  static Result<std::unique_ptr<ContainerView>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                     Source source = Source::snapshot);
  /// Opens a view from the result of index() in another process, without reading the container.
  static Result<std::unique_ptr<ContainerView>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                     std::span<const std::uint8_t> index);
  ContainerView(const ContainerView&) = delete;
  ContainerView& operator=(const ContainerView&) = delete;

  /// Reads the indices again. If that fails the view stays as it was.
  [[nodiscard]] Result<void> refresh();

  /// The result of stat(2) for the logical file, except for its mode and owner.
  [[nodiscard]] const ContainerStatus& status() const { return shown_->status; }
  /// Size of the logical file in bytes.
  [[nodiscard]] std::int64_t size() const { return shown_->status.size; }
  /// Returns the number of bytes read, fewer than requested only at the end of the file. Holes read as zeros, which
  /// `fill` writes. Fails with `bad_input`, naming the dropping and the place, where bytes are lost or may not be the
  /// last ones written, and where a block of 64 KiB that is read whole does not match its checksum; other ranges of the
  /// file stay readable. EFAULT, as `system`, if `bytes` is not writable memory.
  [[nodiscard]] Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> bytes,
                                          FillHole fill = fill_with_zeros) const {
    // Most requests are for one piece of an open dropping. Inline, because each function that returns after the system
    // call may cost a misprediction (runtime/preload/files/data.h).
    const bool has_blocks = bytes.size() >= static_cast<std::size_t>(checksum_block_bytes);
    if (offset >= 0 && offset < size() && !has_blocks && !has_lost_writes()) {
      Piece piece = piece_at(offset);
      const std::int64_t wanted = std::min(static_cast<std::int64_t>(bytes.size()), size() - offset);
      const int fd = piece.is_hole || piece.length < wanted ? -1 : droppings_.find(piece.id);
      if (fd >= 0 && ::pread(fd, bytes.data(), static_cast<std::size_t>(wanted), piece.physical) == wanted)
        return wanted;
    }
    return read_pieces(offset, bytes, fill);
  }
  /// Adds a write of writer `id` that the view does not show yet. false, and nothing is added: the view must be read
  /// again, because its order to the writes of the view is not known, or because the view has many new writes.
  [[nodiscard]] bool add_write(std::int64_t logical, std::int64_t length, std::int64_t id, std::int64_t physical,
                               std::int64_t sequence);
  /// Whether index() and pattern() lack writes that were added.
  [[nodiscard]] bool has_new_writes() const { return !shown_->added.is_empty(); }
  /// Lets `keeper` limit the data droppings that stay open: see DataDroppings::set_keeper().
  void set_keeper(FdKeeper* keeper) { droppings_.set_keeper(keeper); }
  /// Closes the data droppings, for the keeper. Returns their number.
  std::size_t close_idle_fds() { return droppings_.close_idle(); }
  /// Closes the data droppings and keeps none for some time, after the process had no free descriptor for the next one.
  void stop_keeping_fds() { droppings_.stop_keeping(); }
  /// Descriptor of a writer's data dropping: see DataDroppings::open().
  [[nodiscard]] Result<int> open_data(std::int64_t id, Fd& temporary) const { return droppings_.open(id, temporary); }
  /// From now on the view shows a damaged container as if the lost bytes had never been written, and does not compare
  /// data with their checksums.
  void ignore_damage() {
    shown_->content.lost_writes.clear();
    verifies_ = false;
  }

  /// Returns the piece that holds the byte at `offset` < size(), from that byte on. Consecutive pieces may be adjacent
  /// in one dropping.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;
  /// Calls visit(const Piece&), in logical order, for the pieces of `length` bytes from `offset` up to the end of file.
  template <class Visit>
  void find(std::int64_t offset, std::int64_t length, Visit&& visit) const {
    const std::int64_t end = length < size() - offset ? offset + length : size();
    while (offset < end) {
      Piece piece = piece_at(offset);
      if (piece.length > end - offset) piece.length = end - offset;
      visit(static_cast<const Piece&>(piece));
      offset += piece.length;
    }
  }

  /// Returns how many of the `length` bytes from `offset` lie before the first one that is lost, or before the end of
  /// the file. Takes what the data droppings have at the moment, and compares nothing with checksums.
  [[nodiscard]] std::int64_t length_before_loss(std::int64_t offset, std::int64_t length) const;

  /// Whether read() compares data of writer `id` with checksums if `length` bytes are read.
  [[nodiscard]] bool is_verified(std::int64_t id, std::int64_t length) const {
    return verifies_ && length >= checksum_block_bytes && verifier_.of(id) != nullptr;
  }
  [[nodiscard]] bool has_lost_writes() const { return !shown_->content.lost_writes.empty(); }
  /// Returns lost writes that may have overwritten the piece, or nullptr.
  [[nodiscard]] const LostWrites* lost_over(const Piece& piece) const {
    return !has_lost_writes() ? nullptr : shown_->content.lost_over(piece.is_hole ? -1 : piece.id, piece.physical);
  }
  /// Returns lost writes that may have changed the file's size, or nullptr.
  [[nodiscard]] const LostWrites* lost_at_end() const { return shown_->content.lost_at_end(); }

  /// Empty for a view from an index snapshot, which is saved only where there are no problems.
  [[nodiscard]] const std::vector<ContainerProblem>& problems() const { return shown_->content.problems; }
  /// Has no writers in a view from an index snapshot.
  [[nodiscard]] const ContainerContent& content() const { return shown_->content; }
  /// Returns the index for open() in another process, without writes that were added. Fails with `infeasible` for a
  /// traditional index, and if writes are lost.
  [[nodiscard]] Result<std::vector<std::uint8_t>> index() const;
  [[nodiscard]] const ContainerDirectory& directory() const { return *directory_; }
  /// All writes, in an order that their sequence numbers allow, of a view from the droppings. Empty in a container with
  /// a traditional index. Otherwise, also empty if the writes have no pattern.
  [[nodiscard]] const Pattern& pattern() const { return shown_->pattern; }
  /// Returns the memory of the index, without temporary memory of opening it.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// The content of the view. refresh() replaces it as a whole.
  struct Shown {
    // One of three:
    Pattern pattern;                      ///< of writes and holes
    std::optional<PatternLookup> lookup;  ///< of `pattern`
    std::optional<PieceTable> table;      ///< of writes without a pattern
    PieceMap pieces;                      ///< of a traditional index

    ContainerContent content;  ///< without the patterns of its writers, which are merged
    ContainerStatus status;
    std::int64_t last_sequence = INT64_MAX;  ///< of the merged index
    NewWrites added;                         ///< on top of the merged index
  };
  [[nodiscard]] Piece merged_piece_at(std::int64_t offset) const;
  [[nodiscard]] bool is_newer(std::int64_t sequence, std::int64_t id, const Piece& than) const;

  ContainerView(std::shared_ptr<const ContainerDirectory> directory, Source source)
      : directory_(std::move(directory)), source_(source), droppings_(*directory_), verifier_(*directory_) {}
  Result<void> show(IndexSnapshot merged, ContainerContent content);
  [[nodiscard]] IndexSnapshot merged() const;
  [[nodiscard]] Result<std::int64_t> read_pieces(std::int64_t offset, std::span<std::byte> bytes, FillHole fill) const;
  [[nodiscard]] tl::unexpected<Error> read_error(const PieceFailure& failure) const;

  std::shared_ptr<const ContainerDirectory> directory_;
  Source source_;
  std::unique_ptr<Shown> shown_;
  mutable DataDroppings droppings_;
  mutable DataVerifier verifier_;
  bool verifies_ = true;
};

}  // namespace iosig
