// Detection for accesses: where there are lengths, a physical offset may be described as their running sum.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "iosig/analyze/detect.h"
#include "iosig/model/access_columns.h"

namespace iosig {

/// Describes what comes in both ways, with the physical offset as it is and as a sum that follows the length, if there
/// are both columns. As Detector in time and memory, twice then.
class AccessDetector {
 public:
  /// `options.follows` is not looked at.
  AccessDetector(const DetectOptions& options, const AccessColumns& columns);

  /// The next vector, `options.columns` numbers.
  void push(std::span<const std::int64_t> vector) {
    plain_.push(vector);
    if (following_) following_->push(vector);
  }

  /// What was pushed: of both descriptions the one that takes fewer `bytes`; at a tie the plain one. The detector is
  /// as new afterwards.
  [[nodiscard]] Pattern finish(const std::function<std::size_t(const Pattern&)>& bytes);

 private:
  Detector plain_;
  std::optional<Detector> following_;
};

}  // namespace iosig
