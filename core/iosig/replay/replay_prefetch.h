// Prefetching in one process of a replay of a trace: the engine of `iosig run --prefetch`, told of the replay's reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "iosig/decide/predictors.h"
#include "iosig/prefetch/observer.h"

namespace iosig {

/// The reads of this process of the files, by their names below the target.
using ReadsOfFiles = std::unordered_map<std::string, std::vector<FileRead>>;

class ReplayPrefetch {
 public:
  using Reading = prefetch::Observer::Reading;

  /// `coming`: what perfect expects, remembered remembers, and Markov has learned from an earlier run.
  ReplayPrefetch(PredictorKind kind, ReadsOfFiles coming);

  /// Whether a predictor needs the reads of the trace beforehand.
  [[nodiscard]] static bool needs_reads(PredictorKind kind) {
    return kind == PredictorKind::markov || kind == PredictorKind::remembered || kind == PredictorKind::perfect;
  }

  void opened(int fd) const;
  void closed(int fd);
  [[nodiscard]] Reading begin(int fd, std::int64_t offset, std::int64_t length);
  void end(Reading& reading, std::int64_t result);
  /// Ends prefetching, and returns what it did.
  [[nodiscard]] prefetch::Counts finish();

 private:
  [[nodiscard]] std::unique_ptr<ReadPredictor> make(const std::string& path) const;
  [[nodiscard]] bool is_on() const { return kind_ != PredictorKind::none && kind_ != PredictorKind::kernel; }

  PredictorKind kind_;
  ReadsOfFiles coming_;
};

}  // namespace iosig
