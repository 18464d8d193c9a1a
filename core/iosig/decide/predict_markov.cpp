// The Markov predictor over blocks (Oly and Reed), as the paper describes it.
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "iosig/decide/predictors.h"

namespace iosig {
namespace {

constexpr double block_ageing = 1.0 / 16;

class MarkovPredictor final : public ReadPredictor {
 public:
  explicit MarkovPredictor(std::shared_ptr<const BlockTransitions> model) : model_(std::move(model)) {
    std::uint32_t most = 0;
    for (const BlockTransition& each : model_->transitions) {
      const auto [at, is_new] = likely_.try_emplace(each.from, each.to);
      if (is_new || each.count > most) {
        at->second = each.to;
        most = each.count;
      }
    }
  }

  bool observe(FileRead read) override {
    const std::int64_t bytes = model_->block_bytes;
    if (read.offset < 0 || read.length <= 0 || read.offset > INT64_MAX - read.length) return true;
    if (queue_.empty() && last_) extend(1);
    const bool was_told = !queue_.empty();
    bool is_right = true;
    const std::int64_t end = (read.offset + read.length - 1) / bytes;
    for (std::int64_t block = read.offset / bytes; block <= end; ++block) {
      if (last_ == block) continue;  // still the same block
      if (!queue_.empty() && queue_.front() == block) {
        queue_.pop_front();
      } else {
        is_right = false;
        queue_.clear();
      }
      last_ = block;
      if (queue_.empty() && block < end) extend(1);
    }
    confidence_ += ((is_right ? 1 : 0) - confidence_) * block_ageing;
    return is_right || !was_told;
  }

  std::optional<FileRead> expected(std::size_t ahead) override {
    if (ahead == 0 || !last_) return std::nullopt;
    extend(ahead);
    if (queue_.size() < ahead) return std::nullopt;
    return FileRead{queue_[ahead - 1] * model_->block_bytes, model_->block_bytes};
  }
  [[nodiscard]] double confidence() const override { return confidence_; }
  [[nodiscard]] std::size_t model_bytes() const override {
    return model_->transitions.size() * sizeof(BlockTransition);
  }

 private:
  void extend(std::size_t wanted) {
    while (queue_.size() < wanted) {
      const auto next = likely_.find(queue_.empty() ? *last_ : queue_.back());
      if (next == likely_.end()) return;
      queue_.push_back(next->second);
    }
  }

  std::shared_ptr<const BlockTransitions> model_;
  std::unordered_map<std::int64_t, std::int64_t> likely_;  ///< the block that followed most often
  std::deque<std::int64_t> queue_;                         ///< of expected blocks
  std::optional<std::int64_t> last_;
  double confidence_ = 0;
};

}  // namespace

std::unique_ptr<ReadPredictor> markov_predictor(std::shared_ptr<const BlockTransitions> model) {
  return std::make_unique<MarkovPredictor>(std::move(model));
}

BlockTransitions transitions_of(const KnownReads& known, std::int64_t block_bytes) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> counts;
  std::int64_t last = -1;  ///< block of this stream; -1: none
  auto end = known.ends.begin();
  for (std::size_t n = 0; n < known.reads.size(); ++n) {
    if (end != known.ends.end() && n == *end) {
      last = -1;
      ++end;
    }
    const FileRead& read = known.reads[n];
    if (read.offset < 0 || read.length <= 0 || read.offset > INT64_MAX - read.length) continue;
    for (std::int64_t block = read.offset / block_bytes; block <= (read.offset + read.length - 1) / block_bytes;
         ++block) {
      if (last == block) continue;
      if (last >= 0) ++counts[{last, block}];
      last = block;
    }
  }
  BlockTransitions made{block_bytes, {}};
  for (const auto& [pair, count] : counts) made.transitions.push_back({pair.first, pair.second, count});
  return made;
}

}  // namespace iosig
