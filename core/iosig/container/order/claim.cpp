#include "iosig/container/order/claim.h"

#include <algorithm>
#include <numeric>

namespace iosig {

bool may_overlap(const Claim& a, const Claim& b) {
  const std::uint64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  if (end <= begin) return false;
  if (a.period == 0 && b.period == 0) return true;
  const std::uint64_t period = std::gcd(a.period, b.period);  // of 0 and n: n
  // On a circle of `period` bytes: a's arc and b's; for a claim without a period, the common range.
  const std::uint64_t width_a = a.period == 0 ? end - begin : a.width, width_b = b.period == 0 ? end - begin : b.width;
  if (width_a == 0 || width_b == 0) return false;
  if (width_a >= period || width_b >= period) return true;
  const std::uint64_t start_a = (a.period == 0 ? begin : a.begin) % period,
                      start_b = (b.period == 0 ? begin : b.begin) % period;
  const std::uint64_t distance = start_b >= start_a ? start_b - start_a : start_b + period - start_a;
  return distance < width_a || distance > period - width_b;
}

Claim joined(const Claim& a, const Claim& b) {
  if (a.end <= a.begin) return b;
  if (b.end <= b.begin) return a;
  const Claim hull{std::min(a.begin, b.begin), std::max(a.end, b.end), 0, 0};
  const Claim &first = a.begin <= b.begin ? a : b, &second = a.begin <= b.begin ? b : a;
  std::uint64_t period = std::gcd(a.period, b.period);
  if (period == 0) {
    // Two ranges: their hull if they touch, else two turns of a circle.
    if (second.begin <= first.end) return hull;
    period = second.begin - first.begin;
  }
  const std::uint64_t width_a = first.period == 0 ? first.end - first.begin : first.width;
  const std::uint64_t width_b = second.period == 0 ? second.end - second.begin : second.width;
  if (width_a >= period || width_b >= period) return hull;
  // The shorter of the two arcs that cover both: from the beginning of one to the end of the other.
  const std::uint64_t distance = (second.begin - first.begin) % period;
  const std::uint64_t from_first = std::max(width_a, distance + width_b);
  const std::uint64_t from_second = std::max(width_b, (period - distance) % period + width_a);
  if (std::min(from_first, from_second) >= period) return hull;
  if (from_first <= from_second) return {first.begin, hull.end, period, from_first};
  // The claim must begin before the first byte, but not before the file.
  const std::uint64_t before = (period - distance) % period;
  if (before > first.begin) return hull;
  return {first.begin - before, hull.end, period, from_second};
}

Claim part_of(const Claim& claim, std::uint64_t low, std::uint64_t high) {
  if (high <= low) return {};
  if (claim.period == 0 || high - low <= claim.width) return {low, high, 0, 0};
  return {low - (low - claim.begin) % claim.period, high, claim.period, claim.width};
}

void ClaimChain::add(const Claim& part) {
  if (part.end <= part.begin) return;
  const Claim both = joined(late_, part);
  const bool is_range = both.period == 0 && both.end - both.begin <= late_.end - late_.begin + (part.end - part.begin);
  const bool is_row =
      both.period != 0 && (late_.period == 0 || (both.period == late_.period && both.width == late_.width));
  if (is_range || is_row) {
    late_ = both;
  } else {
    before_ = joined(before_, late_);
    late_ = part;
  }
}

Claim ClaimGuess::claim() const {
  const Claim single{offset_, offset_ + length_, 0, 0};
  if (period_ == 0 || reach_ == 0) return single;
  const std::uint64_t turns = std::min(reach_, (backwards_ ? start_ : file_end - start_) / period_);
  const std::uint64_t begin = backwards_ ? start_ - turns * period_ : start_;
  const std::uint64_t end = backwards_ ? start_ + width_ : std::max(start_ + turns * period_, start_ + width_);
  const Claim guess{begin, std::min(end, file_end), period_ == width_ ? 0 : period_, width_};
  return guess.covers(offset_, length_) ? guess : single;
}

Claim ClaimGuess::next(std::uint64_t previous, std::uint64_t spanned, std::uint64_t offset, std::uint64_t length) {
  // The write's position in the period of the last claim: rows of an array have equal positions.
  const std::uint64_t shift =
      period_ == 0 ? 0
                   : (offset >= start_ ? (offset - start_) % period_ : period_ - 1 - (start_ - offset - 1) % period_);
  const bool is_same_class = period_ != 0 && length <= width_ && shift <= width_ - length && shift <= offset;
  const bool backwards = offset < previous;
  const std::uint64_t stride = backwards ? previous - offset : offset - previous;
  const bool is_steady = stride == stride_ && backwards == backwards_;
  offset_ = offset;
  length_ = length;
  // A writer that keeps its stride claims more and more. After a jump, the next row is expected to be as long as the
  // last.
  const bool goes_on = is_steady && stride == period_;
  if (period_ == 0)
    reach_ = max_reach;
  else
    reach_ = goes_on ? std::min(std::max<std::uint64_t>(reach_, 1) * 256, max_reach) : spanned / period_ + 1;
  if (is_same_class) {  // the guess was right, or another writer revoked the claim
    misses_ = 0;
    start_ = offset - shift;
    return claim();
  }
  misses_ = is_steady ? 0 : misses_ + 1;
  backwards_ = backwards;
  stride_ = stride;
  start_ = offset;
  period_ = stride >= length && misses_ <= max_misses && !is_first_ ? stride : 0;
  is_first_ = false;
  width_ = length;
  return claim();
}

Claim ClaimGuess::smaller() {
  reach_ /= 16;
  return claim();
}

}  // namespace iosig
