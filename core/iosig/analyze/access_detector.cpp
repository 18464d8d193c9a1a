#include "iosig/analyze/access_detector.h"

namespace iosig {
namespace {

DetectOptions with_follower(DetectOptions options, int column, int source) {
  options.follows.fill(-1);
  if (column >= 0 && source >= 0) options.follows[static_cast<std::size_t>(column)] = static_cast<std::int8_t>(source);
  return options;
}

}  // namespace

AccessDetector::AccessDetector(const DetectOptions& options, const AccessColumns& columns)
    : plain_(with_follower(options, -1, -1)) {
  if (columns.physical >= 0 && columns.length >= 0)
    following_.emplace(with_follower(options, columns.physical, columns.length));
}

Pattern AccessDetector::finish(const std::function<std::size_t(const Pattern&)>& bytes) {
  Pattern pattern = plain_.finish();
  if (!following_) return pattern;
  Pattern other = following_->finish();
  return bytes(other) < bytes(pattern) ? other : pattern;
}

}  // namespace iosig
