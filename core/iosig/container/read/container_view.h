// A container as its readers see it: the indices of all writers as one, and the bytes behind them.
//
// A view shows what writers had noted when it was opened or refreshed; every write that ended before is in it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iosig/analyze/lookup.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/extent_map.h"
#include "iosig/container/read/piece_reader.h"

namespace iosig {

/// One thread at a time, but for read() and find() beside each other once data_fds are open.
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

  /// Looks again; keeps what it showed if that fails.
  [[nodiscard]] Result<void> refresh();

  /// Of the logical file.
  [[nodiscard]] std::int64_t size() const { return status_.size; }
  /// Bytes read, fewer than asked for at the end of the file only. Fails as `bad_input` where bytes are lost, with the
  /// dropping and the place, or may be others than those that were written last; other bytes can be read. Holes read as
  /// zeros.
  [[nodiscard]] Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> bytes);
  /// From now on shows a damaged container as if what is lost had never been written.
  void show_what_is_there() { content_.lost_writes.clear(); }

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

  [[nodiscard]] bool has_lost_writes() const { return !content_.lost_writes.empty(); }
  /// Lost writes that may have changed the piece, which is what is known of it; nullptr: there are none.
  [[nodiscard]] const LostWrites* lost_over(const Piece& piece) const {
    return !has_lost_writes() ? nullptr : content_.lost_over(piece.is_hole ? -1 : piece.id, piece.physical);
  }
  /// Lost writes that may have moved the end of the file.
  [[nodiscard]] const LostWrites* lost_at_end() const { return content_.lost_at_end(); }

  /// None if it was opened from a kept index: there were none then.
  [[nodiscard]] const std::vector<ContainerProblem>& problems() const { return content_.problems; }
  /// Without writers if it was opened from a kept index.
  [[nodiscard]] const ContainerContent& content() const { return content_; }
  /// What another process can open the same view from; `infeasible` for a traditional index, and where writes are lost.
  [[nodiscard]] Result<std::vector<std::uint8_t>> index() const;
  [[nodiscard]] const ContainerDirectory& directory() const { return *directory_; }
  /// The writes of all, in an order that their numbers allow; none in a container with a traditional index.
  [[nodiscard]] const Pattern& pattern() const { return *pattern_; }
  /// Of the index; without what opening it took for a while.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  ContainerView(std::shared_ptr<const ContainerDirectory> directory, Source source)
      : directory_(std::move(directory)), source_(source) {}
  Result<void> take(MergedIndex merged, ContainerContent content);
  [[nodiscard]] MergedIndex merged() const;
  Result<int> data_fd(std::int64_t id);
  [[nodiscard]] Result<void> failed_at(const PieceFailure& failure) const;

  std::shared_ptr<const ContainerDirectory> directory_;
  Source source_;
  ContainerContent content_;  ///< its patterns are let go once they are merged
  ContainerStatus status_;
  std::unique_ptr<Pattern> pattern_ = std::make_unique<Pattern>();
  std::unique_ptr<PatternLookup> lookup_;
  ExtentMap extents_;
  std::map<std::int64_t, Fd> data_;
};

}  // namespace iosig
