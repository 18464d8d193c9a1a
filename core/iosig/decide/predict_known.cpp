// Predictors that know the reads: of an earlier run, or the coming ones.
#include <algorithm>
#include <numeric>

#include "iosig/decide/predictors.h"
#include "iosig/decide/queued_predictor.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr double confidence_of_knowledge = 0.95;

/// Returns where the stream ends whose read before `next` was the last one.
std::size_t end_of_stream(const KnownReads& known, std::size_t next) {
  const auto end = std::ranges::upper_bound(known.ends, next == 0 ? 0 : next - 1);
  return end == known.ends.end() ? known.reads.size() : *end;
}

class RememberedPredictor final : public QueuedPredictor {
 public:
  explicit RememberedPredictor(std::shared_ptr<const KnownReads> known)
      : QueuedPredictor(confidence_of_knowledge), known_(std::move(known)) {
    find_end();
  }
  [[nodiscard]] std::size_t model_bytes() const override { return known_->reads.size() * sizeof(FileRead); }

 private:
  void learn(FileRead read) override {
    const std::vector<FileRead>& reads = known_->reads;
    if (next_ < end_ && reads[next_] == read) {
      ++next_;
      is_lost_ = false;
      return;
    }
    if (by_offset_.empty()) {
      by_offset_.resize(reads.size());
      std::iota(by_offset_.begin(), by_offset_.end(), 0U);
      std::ranges::stable_sort(by_offset_, {}, [&](std::uint32_t n) { return reads[n].offset; });
    }
    const auto offset_of = [&](std::uint32_t n) { return reads[n].offset; };
    const auto first = std::ranges::lower_bound(by_offset_, read.offset, {}, offset_of);
    const auto last = std::ranges::upper_bound(by_offset_, read.offset, {}, offset_of);
    is_lost_ = first == last;
    if (is_lost_) return;
    // The first occurrence from here on, else the first of all: the program may begin again.
    const auto place = std::lower_bound(first, last, next_);
    next_ = std::size_t{place == last ? *first : *place} + 1;
    find_end();
  }
  void extend(Queue& expected, std::size_t wanted) override {
    if (is_lost_) return;
    for (std::size_t n = next_ + expected.size(); expected.size() < wanted && n < end_; ++n)
      expected.push_back(known_->reads[n]);
  }
  /// Finds where the stream of the last read ends.
  void find_end() { end_ = end_of_stream(*known_, next_); }

  std::shared_ptr<const KnownReads> known_;
  std::size_t next_ = 0, end_ = 0;
  bool is_lost_ = false;
  std::vector<std::uint32_t> by_offset_;  ///< positions by offset, then by position; made at the first surprise
};

bool is_within(const FileRead& read, const FileRead& other) {
  return read.offset >= other.offset && read.offset + read.length <= other.offset + other.length;
}

/// Follows the program through the records: a read within one is a read of it.
class RecordsPredictor final : public ReadPredictor {
 public:
  explicit RecordsPredictor(std::shared_ptr<const KnownReads> known) : known_(std::move(known)) { find_end(); }

  bool observe(FileRead read) override {
    if (next_ < end_ && is_within(read, known_->reads[next_])) {
      ++next_;
      judge(true);
      return true;
    }
    if (next_ > 0 && !is_lost_ && is_within(read, known_->reads[next_ - 1])) return true;
    const std::size_t before = next_;
    const std::optional<std::size_t> place = find(read);
    is_lost_ = !place;
    if (place) {
      next_ = *place + 1;
      find_end();
    }
    // Records that are left out are other threads'.
    const bool is_near = place && *place >= before && *place - before < reach;
    judge(is_near);
    return is_near;
  }

  [[nodiscard]] std::optional<FileRead> expected(std::size_t ahead) override {
    if (ahead == 0 || is_lost_ || ahead > end_ - next_ || confidence_ < enough_confidence) return std::nullopt;
    return known_->reads[next_ + ahead - 1];
  }
  [[nodiscard]] double confidence() const override { return confidence_; }
  [[nodiscard]] std::size_t model_bytes() const override { return known_->reads.size() * sizeof(FileRead); }

 private:
  static constexpr std::size_t reach = 16;
  static constexpr double ageing = 1.0 / 16, enough_confidence = 0.5;

  void judge(bool is_right) { confidence_ += ((is_right ? 1 : 0) - confidence_) * ageing; }

  /// The next place at which a record has the read, else the first one of all.
  std::optional<std::size_t> find(const FileRead& read) {
    const std::vector<FileRead>& reads = known_->reads;
    const auto offset_of = [&](std::uint32_t n) { return reads[n].offset; };
    if (by_offset_.empty()) {
      by_offset_.resize(reads.size());
      std::iota(by_offset_.begin(), by_offset_.end(), 0U);
      std::ranges::stable_sort(by_offset_, {}, offset_of);
    }
    const auto last = std::ranges::upper_bound(by_offset_, read.offset, {}, offset_of);
    if (last == by_offset_.begin()) return std::nullopt;
    const auto first = std::ranges::lower_bound(by_offset_.begin(), last, offset_of(*(last - 1)), {}, offset_of);
    const auto next = std::lower_bound(first, last, next_);
    const std::size_t place = next == last ? *first : *next;
    return is_within(read, reads[place]) ? std::optional(place) : std::nullopt;
  }
  /// Finds where the stream of the last read ends.
  void find_end() { end_ = end_of_stream(*known_, next_); }

  std::shared_ptr<const KnownReads> known_;
  std::size_t next_ = 0, end_ = 0;
  double confidence_ = confidence_of_knowledge;
  bool is_lost_ = false;
  std::vector<std::uint32_t> by_offset_;  ///< positions by offset, then by position; made at the first surprise
};

}  // namespace

std::unique_ptr<ReadPredictor> records_predictor(std::shared_ptr<const KnownReads> known) {
  return std::make_unique<RecordsPredictor>(std::move(known));
}

std::unique_ptr<ReadPredictor> remembered_predictor(std::shared_ptr<const KnownReads> known) {
  return std::make_unique<RememberedPredictor>(std::move(known));
}

Result<KnownReads> reads_of(const Pattern& pattern) {
  std::optional<std::size_t> offset, length, id;
  for (std::size_t column = 0; column < pattern.columns; ++column) {
    if (pattern.kinds[column] == Column::logical) offset = column;
    if (pattern.kinds[column] == Column::length) length = column;
    if (pattern.kinds[column] == Column::id) id = column;
  }
  if (!offset || !length)
    return fail(ErrorKind::bad_input, "a pattern without {}: expected the columns logical and length, as of reads",
                offset ? "lengths" : "logical offsets");
  if (pattern.count() > max_known_reads)
    return fail(ErrorKind::bad_input, "a pattern of {} reads: at most {} can be remembered", pattern.count(),
                max_known_reads);
  KnownReads known;
  known.reads.reserve(pattern.count());
  std::optional<std::int64_t> stream;
  PatternCursor cursor(pattern);
  for (std::vector<std::int64_t> vector(pattern.columns); cursor.next(vector);) {
    const FileRead read{vector[*offset], vector[*length]};
    if (read.offset < 0 || read.length < 0)
      return fail(ErrorKind::bad_input, "read {} of a pattern: {} bytes at {}", known.reads.size(), read.length,
                  read.offset);
    if (id && stream && *stream != vector[*id]) known.ends.push_back(known.reads.size());
    if (id) stream = vector[*id];
    known.reads.push_back(read);
  }
  return known;
}

}  // namespace iosig
