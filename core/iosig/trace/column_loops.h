// The two loops over all values of a column, by the fastest instructions that the processor has. Packing consists of
// them for the most part, and runs inside traced programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace iosig::trace {

[[nodiscard]] inline std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

/// Statistics of a column's values. Numbers are modulo 2^64, compared as signed ones.
struct ColumnSurvey {
  bool is_constant = true;
  std::uint32_t others = 0;  ///< values that are not 0
  std::int64_t least = 0, greatest = 0;
};

/// Divides the distance of values from `base`. For an odd divisor, the inverse modulo 2^64 takes multiples to their
/// quotients, and everything else to numbers above every quotient; powers of two are divided by rotation.
struct ColumnDivision {
  std::uint64_t base, inverse;
  unsigned twos;        ///< the power of two in the divisor
  std::uint64_t limit;  ///< the greatest quotient that is wanted
};

struct ColumnLoops {
  /// Looks at values, at least one.
  ColumnSurvey (*survey)(std::span<const std::uint64_t> values);
  /// Writes the quotients to `to`, 0 for those above the limit. Returns how many those are.
  std::uint32_t (*divide)(std::span<const std::uint64_t> values, const ColumnDivision& by, std::uint64_t* to);
};

/// Returns the fastest loops. Allocates nothing, and waits for no other thread: it is called in traced programs, also
/// in their signal handlers.
[[nodiscard]] const ColumnLoops& column_loops();

/// Returns all loops that this processor has, the fastest first, for tests.
[[nodiscard]] std::vector<ColumnLoops> all_column_loops();

}  // namespace iosig::trace
