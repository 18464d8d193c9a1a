// A predictor for strided and nested reads: it sees a stream as runs of equal steps, and a nest of loops as a period of
// such runs.
//
//   offsets  0 10 20 | 100 110 120 | 200 ...     steps  10 10 80 10 10 80     runs  10 twice, 80 once, 10 twice, ...
//
// The period is found by the longest end of the history that has occurred before. A deeper nest has a longer period,
// and is known when its outermost loop has come round once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "iosig/decide/predictor.h"

namespace iosig {

class RunPredictor : public ReadPredictor {
 public:
  bool observe(FileRead read) override;
  [[nodiscard]] std::optional<FileRead> expected(std::size_t ahead) override;
  [[nodiscard]] double confidence() const override { return confidence_; }
  [[nodiscard]] std::size_t model_bytes() const override { return (runs_.size() + 1) * sizeof(Run); }

 private:
  static constexpr std::size_t max_runs = 512;
  static constexpr std::ptrdiff_t max_places = 16;
  struct Run {
    std::int64_t step = 0, length = 0;  ///< from read to read; of the reads
    std::int64_t count = 0;
    [[nodiscard]] bool has_step_of(const Run& other) const { return step == other.step && length == other.length; }
    bool operator==(const Run& other) const = default;
  };
  /// The number of runs with a step's hash: most steps of irregular reads are new, and need no search.
  [[nodiscard]] std::uint16_t& count_of(const Run& run) {
    const std::uint64_t mixed =
        (static_cast<std::uint64_t>(run.step) ^ static_cast<std::uint64_t>(run.length) << 32) * 0x9e3779b97f4a7c15U;
    return counts_[mixed >> 51];
  }
  void begin_run(const Run& run);
  void find_period();
  /// The run that is expected in place `n`, which is `runs_.size()` (the one that goes on) or later.
  [[nodiscard]] const Run& expected_run(std::size_t n) const;

  std::deque<Run> runs_;  ///< that have ended
  std::array<std::uint16_t, 8192> counts_{};
  Run current_;
  std::size_t period_ = 0;  ///< in runs; 0: unknown
  std::optional<FileRead> last_;
  std::deque<FileRead> expected_;
  // Where the last of `expected_` is.
  std::size_t far_run_ = 0;
  std::int64_t far_count_ = 0;
  double confidence_ = 0;
  int judged_ = 0;  ///< reads that `confidence_` counts; at most 16
};

}  // namespace iosig
