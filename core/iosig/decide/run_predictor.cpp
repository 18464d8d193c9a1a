#include "iosig/decide/run_predictor.h"

#include <algorithm>
#include <vector>

namespace iosig {

bool RunPredictor::observe(FileRead read) {
  if (!last_) {
    last_ = read;
    return true;
  }
  const auto next = expected(1);
  const bool is_expected = next && next->offset == read.offset && next->length == read.length;
  if (next || judged_ > 0) {
    judged_ = std::min(judged_ + 1, 16);
    confidence_ += ((is_expected ? 1 : 0) - confidence_) / judged_;
  }
  if (is_expected)
    expected_.pop_front();
  else
    expected_.clear();
  const Run step{.step = read.offset - last_->offset, .length = read.length, .count = 1};
  last_ = read;
  if (current_.count > 0 && current_.has_step_of(step)) {
    ++current_.count;
    if (period_ != 0 && current_.count > expected_run(runs_.size()).count) period_ = 0;  // longer than before
  } else {
    begin_run(step);
  }
  return is_expected || !next;
}

void RunPredictor::begin_run(const Run& run) {
  if (current_.count > 0) {
    runs_.push_back(current_);
    ++count_of(current_);
  }
  current_ = run;
  const std::size_t n = runs_.size();
  const bool holds =
      period_ != 0 && n > period_ && runs_[n - 1] == runs_[n - 1 - period_] && runs_[n - period_].has_step_of(current_);
  if (!holds) find_period();
  if (runs_.size() <= max_runs || period_ >= max_runs / 2) {
    if (runs_.size() <= 2 * max_runs) return;
    period_ = 0;
  }
  for (auto each = runs_.begin(); each != runs_.end() - static_cast<std::ptrdiff_t>(max_runs / 2); ++each)
    --count_of(*each);
  runs_.erase(runs_.begin(), runs_.end() - static_cast<std::ptrdiff_t>(max_runs / 2));
  if (!expected_.empty()) expected_.clear();
}

void RunPredictor::find_period() {
  period_ = 0;
  if (count_of(current_) == 0) return;
  std::size_t longest = 0, most = 0;
  std::vector<std::size_t> places;  // that follow the longest end, the latest first
  for (std::size_t i = runs_.size(); i-- > 0;) {
    if (!runs_[i].has_step_of(current_)) continue;
    std::size_t same = 1;
    while (same <= i && runs_[i - same] == runs_[runs_.size() - same]) ++same;
    if (same < longest) continue;
    if (same > longest) places.clear();
    longest = same;
    places.push_back(i);
  }
  // After the last turn of a loop comes something else than after the others: what came most often counts.
  const auto goes_on_alike = [&](std::size_t one, std::size_t other) {
    return runs_[one] == runs_[other] && one + 1 < runs_.size() && other + 1 < runs_.size() &&
           runs_[one + 1] == runs_[other + 1] &&
           (one + 2 >= runs_.size() || other + 2 >= runs_.size() || runs_[one + 2].has_step_of(runs_[other + 2]));
  };
  if (std::ssize(places) > max_places) places.erase(places.begin(), places.end() - max_places);
  for (const std::size_t place : places) {
    const auto count = 1 + static_cast<std::size_t>(std::ranges::count_if(places, [&](std::size_t other) {
                         return other != place && goes_on_alike(place, other);
                       }));
    if (count < most) continue;  // the earliest place: an outer loop that turns again is then followed from its start
    most = count;
    period_ = runs_.size() - place;
  }
}

const RunPredictor::Run& RunPredictor::expected_run(std::size_t n) const {
  const std::size_t beyond = n - runs_.size();
  return runs_[runs_.size() - period_ + beyond % period_];
}

std::optional<FileRead> RunPredictor::expected(std::size_t ahead) {
  if (!last_ || current_.count == 0 || ahead == 0 || (period_ == 0 && current_.count < 2)) return std::nullopt;
  if (expected_.empty()) {
    far_run_ = runs_.size();
    far_count_ = current_.count;
  }
  while (expected_.size() < ahead) {
    const FileRead& from = expected_.empty() ? *last_ : expected_.back();
    const Run* run = &current_;
    if (period_ != 0) {
      if (far_count_ >= expected_run(far_run_).count) {
        ++far_run_;
        far_count_ = 0;
      }
      run = &expected_run(far_run_);
    }
    FileRead next{0, run->length};
    if (__builtin_add_overflow(from.offset, run->step, &next.offset) || next.offset < 0) return std::nullopt;
    ++far_count_;
    expected_.push_back(next);
  }
  return expected_[ahead - 1];
}

}  // namespace iosig
