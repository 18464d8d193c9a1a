// Predictors that know the reads: of an earlier run, or the coming ones.
#include <algorithm>
#include <unordered_map>

#include "iosig/decide/predictors.h"
#include "iosig/decide/queued_predictor.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_known_reads = 1 << 24;

class RememberedPredictor final : public QueuedPredictor {
 public:
  explicit RememberedPredictor(std::shared_ptr<const std::vector<FileRead>> reads) : reads_(std::move(reads)) {}
  [[nodiscard]] std::size_t model_bytes() const override { return reads_->size() * sizeof(FileRead); }

 private:
  void learn(FileRead read) override {
    const std::vector<FileRead>& reads = *reads_;
    if (next_ < reads.size() && reads[next_] == read) {
      ++next_;
      is_lost_ = false;
      return;
    }
    if (places_.empty())
      for (std::size_t n = 0; n < reads.size(); ++n) places_[reads[n].offset].push_back(n);
    const auto known = places_.find(read.offset);
    is_lost_ = true;
    if (known == places_.end()) return;
    // The first occurrence from here on, else the first of all: the program may begin again.
    const std::vector<std::size_t>& at = known->second;
    auto place = std::ranges::lower_bound(at, next_);
    if (place == at.end()) place = at.begin();
    next_ = *place + 1;
    is_lost_ = false;
  }
  void extend(Queue& expected, std::size_t wanted) override {
    if (is_lost_) return;
    for (std::size_t n = next_ + expected.size(); expected.size() < wanted && n < reads_->size(); ++n)
      expected.push_back((*reads_)[n]);
  }

  std::shared_ptr<const std::vector<FileRead>> reads_;
  std::size_t next_ = 0;
  bool is_lost_ = false;
  std::unordered_map<std::int64_t, std::vector<std::size_t>> places_;  ///< of each offset; made at the first surprise
};

}  // namespace

std::unique_ptr<ReadPredictor> remembered_predictor(std::shared_ptr<const std::vector<FileRead>> reads) {
  return std::make_unique<RememberedPredictor>(std::move(reads));
}

Result<std::vector<FileRead>> reads_of(const Pattern& pattern) {
  std::optional<std::size_t> offset, length;
  for (std::size_t column = 0; column < pattern.columns; ++column) {
    if (pattern.kinds[column] == Column::logical) offset = column;
    if (pattern.kinds[column] == Column::length) length = column;
  }
  if (!offset || !length)
    return fail(ErrorKind::bad_input, "a pattern without {}: expected the columns logical and length, as of reads",
                offset ? "lengths" : "logical offsets");
  if (pattern.count() > max_known_reads)
    return fail(ErrorKind::bad_input, "a pattern of {} reads: at most {} can be remembered", pattern.count(),
                max_known_reads);
  std::vector<FileRead> reads;
  reads.reserve(pattern.count());
  PatternCursor cursor(pattern);
  for (std::vector<std::int64_t> vector(pattern.columns); cursor.next(vector);) {
    const FileRead read{vector[*offset], vector[*length]};
    if (read.offset < 0 || read.length < 0)
      return fail(ErrorKind::bad_input, "read {} of a pattern: {} bytes at {}", reads.size(), read.length, read.offset);
    reads.push_back(read);
  }
  return reads;
}

}  // namespace iosig
