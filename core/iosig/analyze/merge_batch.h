// One process's pattern, prepared for merging: batches of accesses with the bytes that they wrote and the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "iosig/analyze/merge.h"
#include "iosig/analyze/overlap.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {

inline constexpr std::uint32_t merged_columns = 4;   ///< logical, length, physical, id
inline constexpr std::uint32_t sequence_column = 3;  ///< of local patterns, if present

/// Accesses of one process that stay together unless accesses of others come between: a nest, or literals.
struct Batch {
  std::uint64_t first = 0, count = 0;           ///< positions in the local pattern
  std::int64_t low = 0, high = 0;               ///< time: sequence numbers, or opened and closed
  std::uint32_t exception = 0, exceptions = 0;  ///< of the local pattern
  std::uint32_t term = 0;                       ///< of the local pattern: the nest, or the first literals
  bool is_literals = false;
  // The nest in merged columns; empty for literals, or if its physical offsets are not affine.
  std::uint32_t node = 0, nodes = 0, number = 0, numbers = 0;
};

class LocalBatches {
 public:
  /// Makes the batches of `local`. Refers to its pattern. Fails as merge_patterns().
  static Result<LocalBatches> of(const LocalPattern& local);

  [[nodiscard]] std::int64_t id() const { return local_.id; }
  [[nodiscard]] std::string name() const {
    return local_.source.empty() ? fmt::format("process {}", local_.id) : std::string(local_.source);
  }
  [[nodiscard]] bool has_sequence() const { return local_.pattern->columns > sequence_column; }
  [[nodiscard]] const Pattern& pattern() const { return *local_.pattern; }
  [[nodiscard]] const std::vector<Batch>& batches() const { return batches_; }
  /// The footprints of the batches; `owner` is an index of `batches()`.
  [[nodiscard]] const std::vector<Footprint>& footprints() const { return footprints_; }
  [[nodiscard]] std::span<const Node> nodes(const Batch& batch) const {
    return std::span(nodes_).subspan(batch.node, batch.nodes);
  }
  [[nodiscard]] std::span<const std::int64_t> numbers(const Batch& batch) const {
    return std::span(numbers_).subspan(batch.number, batch.numbers);
  }

  /// Stores the access at `position` to `out`, in merged columns.
  void access(std::uint64_t position, std::span<std::int64_t, merged_columns> out) const;

  /// Iterates over the accesses from `position` on, in merged columns.
  class Cursor {
   public:
    Cursor(const LocalBatches& local, std::uint64_t position)
        : has_sequence_(local.has_sequence()), id_(local.id()), cursor_(*local.index_, position) {}
    /// Stores the next access to `out` and its sequence number, if any, to `sequence`.
    void next(std::span<std::int64_t, merged_columns> out, std::int64_t& sequence) {
      cursor_.next(vector_);
      std::copy_n(vector_.begin(), merged_columns - 1, out.begin());
      out.back() = id_;
      if (has_sequence_) sequence = vector_[sequence_column];
    }

   private:
    bool has_sequence_;
    std::int64_t id_;
    PatternCursor cursor_;
    std::array<std::int64_t, max_columns> vector_{};
  };

 private:
  explicit LocalBatches(const LocalPattern& local);
  Result<void> add_nest(std::uint32_t term, std::uint32_t& exception, LeafIndex& leaves);
  Result<void> add_literals(std::uint32_t term);
  Result<void> set_times(Batch& batch) const;
  void add_footprint(Footprint footprint);
  Result<Footprint> touched(std::uint64_t first, std::uint64_t count) const;
  Result<Footprint> touched(std::uint64_t position, std::span<const std::int64_t> vector) const;

  LocalPattern local_;
  std::unique_ptr<PatternIndex> index_;
  std::vector<Batch> batches_;
  std::vector<Footprint> footprints_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace iosig
