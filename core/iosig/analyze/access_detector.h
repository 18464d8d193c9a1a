// Pattern detection for accesses. If lengths are known, a physical offset may be described as their running sum.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "iosig/analyze/detect.h"
#include "iosig/model/access_columns.h"

namespace iosig {

/// Describes the same vectors in both ways: with the physical offset as is and, if both columns exist, as a running sum
/// of the length. Then it takes twice the time and memory of a Detector.
class AccessDetector {
 public:
  /// Ignores `options.follows`.
  AccessDetector(const DetectOptions& options, const AccessColumns& columns);

  /// Adds the next vector of `options.columns` numbers.
  void push(std::span<const std::int64_t> vector) {
    plain_.push(vector);
    if (following_) following_->push(vector);
  }

  /// Returns the description that takes fewer `bytes`, the plain one at a tie, and resets the detector.
  [[nodiscard]] Pattern finish(const std::function<std::size_t(const Pattern&)>& bytes);

 private:
  Detector plain_;
  std::optional<Detector> following_;
};

}  // namespace iosig
