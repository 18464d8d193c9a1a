#include "iosig/container/read/narrow_writes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

#include "iosig/base/parallel.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/container/read/sweep.h"
#include "iosig/container/read/unset_vector.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::size_t writes_per_task = 1 << 16;  ///< at least; with fewer, starting threads costs more than it saves
constexpr std::size_t writes_per_bucket = 4096;   ///< about: the caches hold a bucket, and its copy
constexpr std::size_t max_buckets = 1024;

struct NarrowWrite {
  std::uint32_t logical;   ///< offset, without NarrowList::shift bits
  std::uint32_t length;    ///< in bytes
  std::uint32_t physical;  ///< offset from the beginning of the frame's data
  std::uint32_t number;    ///< in the order of ids, and within a writer of the writes
};

struct Frame {
  const IndexedWrites* writes;
  std::int64_t id;
  std::uint32_t first, end;  ///< numbers of its writes
};

/// Frames that one thread decodes. It counts their writes in each bucket.
struct Task {
  std::size_t first_frame, end_frame;
  std::vector<std::uint32_t> counts{};
  std::uint32_t bits = 0;  ///< that are set in one or more of the logical fields
  bool is_narrow = true;
};

/// Sorts by the bits `from` to `end` of the logical field; equal ones keep their order. Uses `room`, of the same size.
void sort_by_bits(std::span<NarrowWrite> writes, std::span<NarrowWrite> room, int from, int end) {
  constexpr int max_digit_bits = 12;
  const int bits = std::max(0, end - from), passes = (bits + max_digit_bits - 1) / max_digit_bits;
  if (passes == 0 || writes.size() < 2) return;
  const int digit_bits = (bits + passes - 1) / passes;
  std::vector<std::uint32_t> begins((std::size_t{1} << digit_bits) + 1);
  const std::uint32_t mask = (std::uint32_t{1} << digit_bits) - 1;
  std::span<NarrowWrite> now = writes, other = room;
  for (int shift = from; shift < end; shift += digit_bits, std::swap(now, other)) {
    std::ranges::fill(begins, 0);
    for (const NarrowWrite& each : now) ++begins[(each.logical >> shift & mask) + 1];
    for (std::size_t n = 1; n < begins.size(); ++n) begins[n] += begins[n - 1];
    for (const NarrowWrite& each : now) other[begins[each.logical >> shift & mask]++] = each;
  }
  if (now.data() != writes.data()) std::ranges::copy(now, writes.begin());
}

class NarrowWrites {
 public:
  explicit NarrowWrites(const ContainerContent& content) {
    std::uint64_t count = 0;
    for (const WriterContent& writer : content.writers)
      for (const IndexedWrites& writes : writer.writes) {
        least_sequence_ = std::min(least_sequence_, writes.opened);
        last_sequence_ = std::max(last_sequence_, writes.closed);
        size_ = std::max(size_, writes.logical_end);
        const std::uint64_t first = count;
        count += writes.count();
        if (count > UINT32_MAX || !writes.entries.empty()) return;
        frames_.push_back({&writes, writer.id, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
      }
    is_narrow_ = count > 0 && size_ > 0 && last_sequence_ - least_sequence_ <= UINT32_MAX;
    count_ = count;
  }

  std::optional<PieceTable> table() {
    if (!is_narrow_) return {};
    choose_fields();
    if (!decode()) return {};
    scatter();
    sort_buckets();
    return joined(sweep_groups());
  }

 private:
  void choose_fields() {
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size_ - 1)));
    shift_ = std::max(0, bits - 32);
    const std::size_t buckets = std::bit_floor(std::clamp<std::size_t>(count_ / writes_per_bucket, 1, max_buckets));
    bucket_shift_ = std::max(0, bits - shift_ - static_cast<int>(std::bit_width(buckets)) + 1);
    buckets_ = (static_cast<std::uint64_t>(size_ - 1) >> shift_ >> bucket_shift_) + 1;
    for (std::size_t n = 0; n < frames_.size(); ++n) {
      if (tasks_.empty() || frames_[n].first - frames_[tasks_.back().first_frame].first >= writes_per_task)
        tasks_.push_back({n, n});
      tasks_.back().end_frame = n + 1;
    }
  }

  [[nodiscard]] std::size_t bucket_of(const NarrowWrite& write) const {
    return std::uint64_t{write.logical} >> bucket_shift_;
  }

  /// Takes all writes. false: one does not fit.
  bool decode() {
    decoded_.resize(count_);
    sequences_.resize(count_);
    for_each_in_parallel(tasks_.size(), 0, [&](std::size_t n) {
      Task& task = tasks_[n];
      task.counts.resize(buckets_);
      for (std::size_t frame = task.first_frame; task.is_narrow && frame < task.end_frame; ++frame)
        task.is_narrow = decode(frames_[frame], task);
    });
    for (const Task& task : tasks_) bits_ |= task.bits;
    return std::ranges::all_of(tasks_, &Task::is_narrow);
  }

  bool decode(const Frame& frame, Task& task) {
    const std::int64_t begin = frame.writes->physical, cut = (std::int64_t{1} << shift_) - 1;
    std::array<std::int64_t, max_columns> v{};
    std::uint32_t number = frame.first;
    for (PatternCursor cursor(frame.writes->pattern); cursor.next(v); ++number) {
      const std::int64_t logical = v[logical_offset], length = v[write_length], physical = v[physical_offset],
                         sequence = v[write_sequence];
      const bool is_narrow = logical >= 0 && logical < size_ && (logical & cut) == 0 && length > 0 &&
                             length <= UINT32_MAX && physical >= begin && physical - begin <= UINT32_MAX &&
                             length <= INT64_MAX - std::max(logical, physical) && sequence >= least_sequence_ &&
                             sequence <= last_sequence_;
      if (!is_narrow) return false;
      const NarrowWrite write{static_cast<std::uint32_t>(logical >> shift_), static_cast<std::uint32_t>(length),
                              static_cast<std::uint32_t>(physical - begin), number};
      decoded_[number] = write;
      sequences_[number] = static_cast<std::uint32_t>(sequence - least_sequence_);
      ++task.counts[bucket_of(write)];
      task.bits |= write.logical;
    }
    return true;
  }

  /// Puts the writes into their buckets; within a bucket, they keep their order.
  void scatter() {
    sorted_.resize(count_);
    std::uint32_t begin = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
      bucket_begins_.push_back(begin);
      for (Task& task : tasks_) begin += std::exchange(task.counts[bucket], begin);
    }
    bucket_begins_.push_back(begin);
    for_each_in_parallel(tasks_.size(), 0, [&](std::size_t n) {
      Task& task = tasks_[n];
      const std::uint32_t end = frames_[task.end_frame - 1].end;
      for (std::uint32_t number = frames_[task.first_frame].first; number < end; ++number)
        sorted_[task.counts[bucket_of(decoded_[number])]++] = decoded_[number];
    });
  }

  void sort_buckets() {
    ends_.resize(buckets_);
    for_each_in_parallel(buckets_, count_ < writes_per_task ? 1 : 0, [&](std::size_t bucket) {
      const std::size_t begin = bucket_begins_[bucket], count = bucket_begins_[bucket + 1] - begin;
      const std::span writes = std::span(sorted_).subspan(begin, count);
      sort_by_bits(writes, std::span(decoded_).subspan(begin, count), bits_ == 0 ? 0 : std::countr_zero(bits_),
                   bucket_shift_);
      for (const NarrowWrite& each : writes) ends_[bucket] = std::max(ends_[bucket], begin_of(each) + each.length);
    });
  }

  [[nodiscard]] std::int64_t begin_of(const NarrowWrite& write) const { return std::int64_t{write.logical} << shift_; }

  /// The sorted writes from `first` to `end`.
  struct List {
    const NarrowWrites& whole;
    std::uint32_t first, end;

    [[nodiscard]] const NarrowWrite& at(std::uint32_t n) const { return whole.sorted_[first + n]; }
    [[nodiscard]] std::size_t size() const { return end - first; }
    [[nodiscard]] std::int64_t begin_of(std::uint32_t n) const { return whole.begin_of(at(n)); }
    [[nodiscard]] std::int64_t end_of(std::uint32_t n) const { return begin_of(n) + at(n).length; }
    [[nodiscard]] static bool is_hole(std::uint32_t) { return false; }
    [[nodiscard]] bool is_older(std::uint32_t one, std::uint32_t other) const {
      const std::uint32_t a = at(one).number, b = at(other).number;
      return std::pair(whole.sequences_[a], a) < std::pair(whole.sequences_[b], b);
    }
    [[nodiscard]] Extent extent(std::uint32_t n, std::int64_t from, std::int64_t to) const {
      const NarrowWrite& write = at(n);
      const Frame& frame = whole.frame_of(write.number);
      return {from, to - from, frame.id, frame.writes->physical + write.physical + (from - begin_of(n))};
    }
    static void fetch_soon(std::uint32_t) {}  // they are read one after the other
  };

  [[nodiscard]] const Frame& frame_of(std::uint32_t number) const {
    std::size_t frame = first_frames_[number / numbers_per_first_frame];
    while (number >= frames_[frame].end) ++frame;
    return frames_[frame];
  }

  /// Sweeps over groups of buckets that no write of a bucket before them reaches.
  std::vector<PieceTable> sweep_groups() {
    for (std::size_t number = 0, frame = 0; number < count_; number += numbers_per_first_frame) {
      while (number >= frames_[frame].end) ++frame;
      first_frames_.push_back(static_cast<std::uint32_t>(frame));
    }
    std::vector<List> groups;
    std::int64_t reached = 0;
    std::uint32_t first = 0;
    for (std::size_t bucket = 0; bucket < buckets_; ++bucket) {
      const std::uint32_t begin = bucket_begins_[bucket];
      if (begin < count_ && begin - first >= writes_per_task && reached <= begin_of(sorted_[begin])) {
        groups.push_back({*this, first, begin});
        first = begin;
      }
      reached = std::max(reached, ends_[bucket]);
    }
    groups.push_back({*this, first, static_cast<std::uint32_t>(count_)});
    std::vector<PieceTable> tables(groups.size());
    for_each_in_parallel(groups.size(), 0, [&](std::size_t n) {
      PieceTableBuilder table;
      sweep(groups[n], table);
      tables[n] = table.finish();
    });
    return tables;
  }

  static PieceTable joined(std::vector<PieceTable> tables) {
    PieceTable whole = std::move(tables.front());
    for (const PieceTable& each : std::span(tables).subspan(1)) whole.append(each);
    return whole;
  }

  static constexpr std::size_t numbers_per_first_frame = 256;

  bool is_narrow_ = false;
  std::int64_t least_sequence_ = INT64_MAX, last_sequence_ = 0, size_ = 0;
  std::uint64_t count_ = 0, buckets_ = 0;
  int shift_ = 0, bucket_shift_ = 0;
  std::uint32_t bits_ = 0;
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> first_frames_;  ///< of each 256 numbers, the frame of the first one
  std::vector<Task> tasks_;
  UnsetVector<NarrowWrite> decoded_, sorted_;
  UnsetVector<std::uint32_t> sequences_;      ///< by number, from the least one on
  std::vector<std::uint32_t> bucket_begins_;  ///< in sorted_; at the end, the number of writes
  std::vector<std::int64_t> ends_;            ///< by bucket, where the last of its writes ends
};

}  // namespace

std::optional<PieceTable> table_of_narrow_writes(const ContainerContent& content) {
  if (!holes_of(content).empty()) return {};
  return NarrowWrites(content).table();
}

}  // namespace iosig
