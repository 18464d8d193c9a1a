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
#include "iosig/container/read/extent_map.h"
#include "iosig/container/read/piece_reader.h"

namespace iosig {

/// Const functions may run in any number of threads at the same time; the caller keeps the others apart from them.
class ContainerView {
 public:
  enum class Source {
    kept,       ///< the index that an earlier reader kept, if it is of the container as it is; else the droppings
    droppings,  ///< to learn of each writer, and of damage
  };
  static Result<std::unique_ptr<ContainerView>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                     Source source = Source::kept);
  /// From what index() gave for a view of this container, in another process: nothing is looked at.
  static Result<std::unique_ptr<ContainerView>> open(std::shared_ptr<const ContainerDirectory> directory,
                                                     std::span<const std::uint8_t> index);
  ContainerView(const ContainerView&) = delete;
  ContainerView& operator=(const ContainerView&) = delete;

  /// Reads the indices again. If that fails the view stays as it was.
  [[nodiscard]] Result<void> refresh();

  /// What stat(2) says of the logical file, except for its mode and owner.
  [[nodiscard]] const ContainerStatus& status() const { return shown_->status; }
  /// Size of the logical file in bytes.
  [[nodiscard]] std::int64_t size() const { return shown_->status.size; }
  /// Returns the number of bytes read, fewer than requested only at the end of the file. Holes read as zeros, which
  /// `fill` writes. Fails with `bad_input`, naming the dropping and the place, where bytes are lost or may not be the
  /// last ones written; other ranges of the file stay readable. EFAULT, as `system`, if `bytes` is not writable memory.
  [[nodiscard]] Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> bytes,
                                          FillHole fill = fill_with_zeros) const {
    // Most requests are for one piece of an open dropping. Inline, so that few functions return across the system call.
    if (offset >= 0 && offset < size() && !has_lost_writes()) {
      Piece piece = piece_at(offset);
      const std::int64_t wanted = std::min(static_cast<std::int64_t>(bytes.size()), size() - offset);
      const int fd = piece.is_hole || piece.length < wanted ? -1 : droppings_.find(piece.id);
      if (fd >= 0 && ::pread(fd, bytes.data(), static_cast<std::size_t>(wanted), piece.physical) == wanted)
        return wanted;
    }
    return read_pieces(offset, bytes, fill);
  }
  /// Descriptor of a writer's data dropping: see DataDroppings::open().
  [[nodiscard]] Result<int> open_data(std::int64_t id, Fd& temporary) const { return droppings_.open(id, temporary); }
  /// From now on the view shows a damaged container as if the lost bytes had never been written.
  void ignore_lost_writes() { shown_->content.lost_writes.clear(); }

  /// What holds the byte at `offset` < size(), from there on. Neighbours may continue each other.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;
  /// Calls visit(const Piece&) for `length` bytes from `offset` on, as far as the file goes, in logical order.
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

  [[nodiscard]] bool has_lost_writes() const { return !shown_->content.lost_writes.empty(); }
  /// Lost writes that may have changed the piece, which is what is known of it; nullptr: there are none.
  [[nodiscard]] const LostWrites* lost_over(const Piece& piece) const {
    return !has_lost_writes() ? nullptr : shown_->content.lost_over(piece.is_hole ? -1 : piece.id, piece.physical);
  }
  /// Lost writes that may have moved the end of the file.
  [[nodiscard]] const LostWrites* lost_at_end() const { return shown_->content.lost_at_end(); }

  /// None if it was opened from a kept index: there were none then.
  [[nodiscard]] const std::vector<ContainerProblem>& problems() const { return shown_->content.problems; }
  /// Without writers if it was opened from a kept index.
  [[nodiscard]] const ContainerContent& content() const { return shown_->content; }
  /// What another process can open the same view from; `infeasible` for a traditional index, and where writes are lost.
  [[nodiscard]] Result<std::vector<std::uint8_t>> index() const;
  [[nodiscard]] const ContainerDirectory& directory() const { return *directory_; }
  /// The writes of all, in an order that their numbers allow; none in a container with a traditional index.
  [[nodiscard]] const Pattern& pattern() const { return shown_->pattern; }
  /// Of the index; without what opening it took for a while.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  /// What the view shows. refresh() replaces it as a whole.
  struct Shown {
    Pattern pattern;                      ///< of writes and holes; empty in a container with a traditional index
    std::optional<PatternLookup> lookup;  ///< of `pattern`; none in a container with a traditional index
    ExtentMap extents;                    ///< of a traditional index
    ContainerContent content;             ///< without the patterns of its writers, which are merged
    ContainerStatus status;
  };

  ContainerView(std::shared_ptr<const ContainerDirectory> directory, Source source)
      : directory_(std::move(directory)), source_(source), droppings_(*directory_) {}
  Result<void> show(MergedIndex merged, ContainerContent content);
  [[nodiscard]] MergedIndex merged() const;
  [[nodiscard]] Result<std::int64_t> read_pieces(std::int64_t offset, std::span<std::byte> bytes, FillHole fill) const;
  [[nodiscard]] tl::unexpected<Error> read_error(const PieceFailure& failure) const;

  std::shared_ptr<const ContainerDirectory> directory_;
  Source source_;
  std::unique_ptr<Shown> shown_;
  mutable DataDroppings droppings_;
};

}  // namespace iosig
