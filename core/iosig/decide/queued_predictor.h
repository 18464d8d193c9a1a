// The common part of predictors of exact reads: it keeps a queue of expected reads, and ignores stray reads.
//
// A single unexpected read between expected ones (another thread's) is not learned, as long as such reads are rare. Two
// in a row are a new phase. Where the program leaves out expected reads, the predictor learns what it did, and the
// engine is told whether what follows is still the same.
#pragma once

#include <deque>
#include <optional>

#include "iosig/decide/predictor.h"

namespace iosig {

class QueuedPredictor : public ReadPredictor {
 public:
  /// `confidence`: before the first read.
  explicit QueuedPredictor(double confidence = 0.6) : confidence_(confidence) {}
  bool observe(FileRead read) final;
  /// Nothing, too, where what was expected lately did not come.
  [[nodiscard]] std::optional<FileRead> expected(std::size_t ahead) final;
  [[nodiscard]] double confidence() const final { return confidence_; }

 protected:
  using Queue = std::deque<FileRead>;

 private:
  /// Takes the next read of the stream.
  virtual void learn(FileRead read) = 0;
  /// Appends reads to those that are expected, `wanted` in all if it knows so many. They all follow the last read that
  /// was learned.
  virtual void extend(Queue& expected, std::size_t wanted) = 0;

  Queue queue_;
  std::optional<FileRead> stray_;
  double confidence_, stray_share_ = 0;
  std::size_t right_in_row_ = 0;
};

}  // namespace iosig
