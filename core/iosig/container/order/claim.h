// Claims: the bytes that a writer may write without asking the other writers. A claim is a range of the file, or the
// part of a range in one class of residues (a stride). Pure arithmetic.
#pragma once

#include <cstdint>

namespace iosig {

/// The bytes x in [begin, end) with (x - begin) mod period < width; all of [begin, end) if period is 0. Empty where
/// end <= begin.
struct Claim {
  std::uint64_t begin = 0, end = 0, period = 0, width = 0;

  [[nodiscard]] bool covers(std::uint64_t offset, std::uint64_t length) const {
    if (offset < begin || length > end || offset > end - length) return false;
    return period == 0 || (length <= width && (offset - begin) % period <= width - length);
  }
  bool operator==(const Claim&) const = default;
};

inline constexpr std::uint64_t file_end = std::uint64_t{1} << 63;
inline constexpr Claim everything{0, file_end, 0, 0};

/// Whether the claims may share a byte. Never false if they do. May be true if they do not: for different periods, only
/// the greatest common divisor is checked.
[[nodiscard]] bool may_overlap(const Claim& a, const Claim& b);

/// Returns a claim that covers both, and more where one claim cannot express the union: an arc of a circle if there is
/// a short one.
[[nodiscard]] Claim joined(const Claim& a, const Claim& b);

/// Returns the part of `claim` that writes under it within [low, high) may have touched.
[[nodiscard]] Claim part_of(const Claim& claim, std::uint64_t low, std::uint64_t high);

/// Two claims that cover all added parts: one for the latest parts, as long as it describes them well, and one for all
/// before.
class ClaimChain {
 public:
  void add(const Claim& part);
  [[nodiscard]] bool may_overlap(const Claim& claim) const {
    return iosig::may_overlap(late_, claim) || iosig::may_overlap(before_, claim);
  }

 private:
  Claim late_, before_;
};

/// Covers all bytes that one writer wrote: once as strides, and once as the contiguous ranges that contain them. A
/// claim that is disjoint from either one is disjoint from the writes.
class WrittenSummary {
 public:
  void add(const Claim& part) {
    strides_.add(part);
    rows_.add({part.begin, part.end, 0, 0});
  }
  [[nodiscard]] bool may_overlap(const Claim& claim) const {
    return strides_.may_overlap(claim) && rows_.may_overlap(claim);
  }

 private:
  ClaimChain strides_, rows_;
};

/// Predicts the next writes from the previous ones. Claims the bytes of the current write and of `reach` similar
/// writes.
class ClaimGuess {
 public:
  /// Returns the claim for a write that the last claim did not cover, or whose claim was revoked. `previous`: where the
  /// previous write began; `spanned`: how many bytes the writes under the last claim spanned.
  [[nodiscard]] Claim next(std::uint64_t previous, std::uint64_t spanned, std::uint64_t offset, std::uint64_t length);
  /// Returns a smaller claim for the same write: for fewer writes to come, in the end for this write alone.
  [[nodiscard]] Claim smaller();
  /// Whether the prediction has given up: the writer jumps about, and several guesses were wrong.
  [[nodiscard]] bool is_lost() const { return misses_ > max_misses && period_ == 0; }

 private:
  static constexpr std::uint64_t max_reach = std::uint64_t{1} << 32;
  static constexpr unsigned max_misses = 4;  ///< after more wrong guesses, only steady strides are predicted
  [[nodiscard]] Claim claim() const;

  // The current write, and the arc that it lies in: `width_` bytes from `start_`, repeated each `period_`; 0: none.
  std::uint64_t offset_ = 0, length_ = 0, start_ = 0, period_ = 0, width_ = 0;
  bool backwards_ = false;
  std::uint64_t stride_ = 0;
  unsigned misses_ = 0;
  bool is_first_ = true;
  std::uint64_t reach_ = max_reach;  ///< how many writes to predict
};

}  // namespace iosig
