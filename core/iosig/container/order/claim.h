// The bytes that a writer may write without asking the others: a range of the file, or what of it lies in one class of
// residues. Pure arithmetic.
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

/// Whether a byte may lie in both: never false when one does, true also where periods differ and only the greatest
/// common divisor was looked at.
[[nodiscard]] bool may_overlap(const Claim& a, const Claim& b);

/// Bytes that hold all of both, and more where one claim cannot say it: an arc of a circle if there is a short one.
[[nodiscard]] Claim joined(const Claim& a, const Claim& b);

/// What of `claim`, which covers them, writes may have touched that lie in [low, high).
[[nodiscard]] Claim part_of(const Claim& claim, std::uint64_t low, std::uint64_t high);

/// Bytes that hold all parts that were added, in two claims: the late ones as long as one says them well, and those
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

/// All that one writer wrote: by its strides, and by the rows that these make. What lies apart from one of them is
/// apart.
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

/// How a writer goes on, guessed from how it came: the bytes of the write at hand, and those of `reach` writes like it.
class ClaimGuess {
 public:
  /// The claim for a write that the last claim did not cover, or that was asked to claim anew. Before: where the last
  /// write began, and how many bytes the writes under the last claim spanned.
  [[nodiscard]] Claim next(std::uint64_t previous, std::uint64_t spanned, std::uint64_t offset, std::uint64_t length);
  /// The same for fewer writes to come, in the end for the one at hand alone.
  [[nodiscard]] Claim smaller();
  /// Nothing is foreseen after several wrong guesses: of a writer that jumps about.
  [[nodiscard]] bool is_lost() const { return misses_ > max_misses && period_ == 0; }

 private:
  static constexpr std::uint64_t max_reach = std::uint64_t{1} << 32;
  static constexpr unsigned max_misses = 4;  ///< after so many wrong guesses only steady strides are believed
  [[nodiscard]] Claim claim() const;

  // The write at hand, and the arc of `width_` bytes from `start_` on, repeated each `period_`, that it lies in; 0:
  // none.
  std::uint64_t offset_ = 0, length_ = 0, start_ = 0, period_ = 0, width_ = 0;
  bool backwards_ = false;
  std::uint64_t stride_ = 0;
  unsigned misses_ = 0;
  bool is_first_ = true;
  std::uint64_t reach_ = max_reach;  ///< how many writes to foresee
};

}  // namespace iosig
