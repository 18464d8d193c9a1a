// Our predictor: of the detector's running nest and the period of runs, the one that was right more often lately. The
// period is known after one turn of the outermost loop; the nest after three, and then also where loops differ in
// length.
#include <array>

#include "iosig/analyze/detect.h"
#include "iosig/decide/predictors.h"
#include "iosig/decide/queued_predictor.h"
#include "iosig/decide/run_predictor.h"

namespace iosig {
namespace {

constexpr double source_ageing = 1.0 / 32;
constexpr std::uint64_t max_described = 1 << 16;  ///< reads after which a detector without a nest begins anew

class PatternPredictor final : public QueuedPredictor {
 public:
  PatternPredictor() { begin_anew(); }
  [[nodiscard]] std::size_t model_bytes() const override { return detector_->running_bytes() + runs_.model_bytes(); }

 private:
  void begin_anew() {
    DetectOptions options;
    options.columns = 2;
    options.allows_exceptions = false;  // stray reads are left out before
    detector_.emplace(options);
  }
  void learn(FileRead read) override {
    nest_share_ += ((nest_next_ == read ? 1 : 0) - nest_share_) * source_ageing;
    runs_share_ += ((runs_next_ == read ? 1 : 0) - runs_share_) * source_ageing;
    if (detector_->count() >= max_described && detector_->confidence() == 0) begin_anew();
    detector_->push(std::array{read.offset, read.length});
    (void)runs_.observe(read);
    std::array<std::int64_t, 2> next{};
    nest_next_ = detector_->predict(next) == 1 ? std::optional(FileRead{next[0], next[1]}) : std::nullopt;
    runs_next_ = runs_.expected(1);
  }
  void extend(Queue& expected, std::size_t wanted) override {
    const bool is_nest = nest_next_ && (!runs_next_ || nest_share_ >= runs_share_);
    if (!is_nest) {
      for (std::size_t n = expected.size(); n < wanted; ++n) {
        const auto next = runs_.expected(n + 1);
        if (!next) return;
        expected.push_back(*next);
      }
      return;
    }
    vectors_.resize(2 * wanted);
    const std::size_t told = detector_->predict(vectors_);
    for (std::size_t n = expected.size(); n < told; ++n) expected.push_back({vectors_[2 * n], vectors_[2 * n + 1]});
  }

  std::optional<Detector> detector_;
  RunPredictor runs_;
  // The read that each expects next, and the share of the last reads for which it was right.
  std::optional<FileRead> nest_next_, runs_next_;
  double nest_share_ = 0, runs_share_ = 0;
  std::vector<std::int64_t> vectors_;
};

}  // namespace

std::unique_ptr<ReadPredictor> pattern_predictor() { return std::make_unique<PatternPredictor>(); }

}  // namespace iosig
