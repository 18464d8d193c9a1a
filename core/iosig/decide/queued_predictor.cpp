#include "iosig/decide/queued_predictor.h"

#include <algorithm>

namespace iosig {
namespace {

constexpr double read_ageing = 1.0 / 16, stray_ageing = 1.0 / 64;
constexpr double enough_confidence = 0.5;  ///< to tell what is expected after an unexpected read
constexpr double high_confidence = 0.75;   ///< to take an unexpected read for a stray one
constexpr std::size_t enough_right = 4;    ///< in a row before it, for the same
constexpr double few_strays = 0.01;        ///< share of the reads; more are part of the pattern
constexpr std::ptrdiff_t reach = 16;       ///< reads among which one is looked for
constexpr std::size_t least_queue = 32;    ///< extended at once

}  // namespace

bool QueuedPredictor::observe(FileRead read) {
  if (queue_.empty()) extend(queue_, 1);
  const bool was_told = !queue_.empty();
  const bool is_next = was_told && queue_.front() == read;
  const double before = confidence_;
  confidence_ += ((is_next ? 1 : 0) - confidence_) * read_ageing;
  const bool was_right = right_in_row_ >= enough_right;
  right_in_row_ = is_next ? right_in_row_ + 1 : 0;
  stray_share_ -= stray_share_ * stray_ageing;
  if (is_next) {
    if (stray_) stray_share_ += stray_ageing;
    stray_.reset();
    queue_.pop_front();
    learn(read);
    return true;
  }
  // A read further on: some were left out.
  const auto end = queue_.begin() + std::min(reach, std::ssize(queue_));
  const auto found = std::find(queue_.begin(), end, read);
  if (was_right && found == end && !stray_ && before > high_confidence && stray_share_ < few_strays) {
    stray_ = read;
    return true;
  }
  std::optional<FileRead> after;
  if (found != end && found + 1 != queue_.end()) after = *(found + 1);
  queue_.clear();
  if (stray_) learn(*stray_);
  stray_.reset();
  learn(read);
  if (!was_told) return true;
  extend(queue_, 1);
  return after && !queue_.empty() && queue_.front() == *after;
}

std::optional<FileRead> QueuedPredictor::expected(std::size_t ahead) {
  if (ahead == 0 || (right_in_row_ == 0 && confidence_ < enough_confidence)) return std::nullopt;
  if (queue_.size() < ahead) extend(queue_, std::max(least_queue, 2 * ahead));
  if (queue_.size() < ahead) return std::nullopt;
  return queue_[ahead - 1];
}

}  // namespace iosig
