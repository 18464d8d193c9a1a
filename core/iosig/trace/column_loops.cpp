#include "iosig/trace/column_loops.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && !defined(__clang__) && __has_include(<sys/platform/x86.h>)  // as in crc32c.cpp
#include <sys/platform/x86.h>
#endif

namespace iosig::trace {
namespace {

std::uint64_t quotient_of(std::uint64_t value, const ColumnDivision& by) {
  return std::rotr((value - by.base) * by.inverse, static_cast<int>(by.twos));
}

/// Goes on with the values from `n`.
ColumnSurvey survey_rest(std::span<const std::uint64_t> values, std::size_t n, ColumnSurvey seen) {
  std::uint64_t differing = 0;
  for (; n < values.size(); ++n) {
    differing |= values[n] ^ values[0];
    seen.others += values[n] != 0 ? 1 : 0;
    seen.least = std::min(seen.least, as_signed(values[n]));
    seen.greatest = std::max(seen.greatest, as_signed(values[n]));
  }
  seen.is_constant = seen.is_constant && differing == 0;
  return seen;
}

std::uint32_t divide_rest(std::span<const std::uint64_t> values, std::size_t n, const ColumnDivision& by,
                          std::uint64_t* to) {
  std::uint32_t above = 0;
  for (; n < values.size(); ++n) {
    const std::uint64_t quotient = quotient_of(values[n], by);
    above += quotient > by.limit ? 1 : 0;
    to[n] = quotient > by.limit ? 0 : quotient;
  }
  return above;
}

ColumnSurvey survey_each(std::span<const std::uint64_t> values) {
  return survey_rest(values, 0, {.least = as_signed(values[0]), .greatest = as_signed(values[0])});
}

std::uint32_t divide_each(std::span<const std::uint64_t> values, const ColumnDivision& by, std::uint64_t* to) {
  return divide_rest(values, 0, by, to);
}

constexpr ColumnLoops one_at_a_time{survey_each, divide_each};

#ifdef __x86_64__
// Four values at a time. Without AVX2 these would take longer than one at a time: SSE2 compares no 64-bit numbers.

using Four [[gnu::vector_size(32)]] = std::uint64_t;
using SignedFour [[gnu::vector_size(32)]] = std::int64_t;
constexpr std::size_t lanes = 4;

__attribute__((target("avx2"))) ColumnSurvey survey_four(std::span<const std::uint64_t> values) {
  const std::int64_t first = as_signed(values[0]);
  const SignedFour firsts{first, first, first, first};
  SignedFour least = firsts, greatest = firsts, differing{}, zeros{};
  std::size_t n = 0;
  for (; n + lanes <= values.size(); n += lanes) {
    SignedFour four;
    std::memcpy(&four, &values[n], sizeof four);
    differing |= four ^ firsts;
    zeros += four == 0;  // -1 each
    least = four < least ? four : least;
    greatest = four > greatest ? four : greatest;
  }
  ColumnSurvey seen{.others = static_cast<std::uint32_t>(n), .least = first, .greatest = first};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    seen.is_constant = seen.is_constant && differing[lane] == 0;
    seen.others += static_cast<std::uint32_t>(zeros[lane]);
    seen.least = std::min<std::int64_t>(seen.least, least[lane]);
    seen.greatest = std::max<std::int64_t>(seen.greatest, greatest[lane]);
  }
  return survey_rest(values, n, seen);
}

__attribute__((target("avx2"))) std::uint32_t divide_four(std::span<const std::uint64_t> values,
                                                          const ColumnDivision& by, std::uint64_t* to) {
  const std::uint64_t right = by.twos, left = (64 - by.twos) % 64;
  SignedFour above{};
  std::size_t n = 0;
  for (; n + lanes <= values.size(); n += lanes) {
    Four four;
    std::memcpy(&four, &values[n], sizeof four);
    four = (four - by.base) * by.inverse;
    four = four >> right | four << left;
    const SignedFour is_above = four > by.limit;
    above += is_above;
    four &= ~reinterpret_cast<Four>(is_above);
    std::memcpy(&to[n], &four, sizeof four);
  }
  std::int64_t minus = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) minus += above[lane];
  return static_cast<std::uint32_t>(-minus) + divide_rest(values, n, by, to);
}

constexpr ColumnLoops four_at_a_time{survey_four, divide_four};

bool has_avx2() {
#ifdef CPU_FEATURE_ACTIVE
  return CPU_FEATURE_ACTIVE(AVX2);
#else
  return __builtin_cpu_supports("avx2") != 0;
#endif
}
#endif

}  // namespace

std::vector<ColumnLoops> all_column_loops() {
  std::vector<ColumnLoops> all;
#ifdef __x86_64__
  if (has_avx2()) all.push_back(four_at_a_time);
#endif
  all.push_back(one_at_a_time);
  return all;
}

const ColumnLoops& column_loops() {
#ifdef __x86_64__
  if (has_avx2()) return four_at_a_time;
#endif
  return one_at_a_time;
}

}  // namespace iosig::trace
