#include "iosig/storage/block_size.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace iosig {
namespace {

constexpr std::size_t terms = 3;  // l, 1 / wbw, e
using Row = std::array<double, terms>;

/// Returns the solution of the normal equations for the terms in `used`; the others are 0. Nothing if it is not unique.
std::optional<Row> solve(std::array<Row, terms> matrix, Row right, const std::array<bool, terms>& used) {
  for (std::size_t i = 0; i < terms; ++i)
    if (!used[i]) {
      for (std::size_t j = 0; j < terms; ++j) matrix[i][j] = matrix[j][i] = 0;
      matrix[i][i] = 1;
      right[i] = 0;
    }
  for (std::size_t i = 0; i < terms; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < terms; ++j)
      if (std::abs(matrix[j][i]) > std::abs(matrix[pivot][i])) pivot = j;
    if (std::abs(matrix[pivot][i]) < 1e-12) return std::nullopt;
    std::swap(matrix[i], matrix[pivot]);
    std::swap(right[i], right[pivot]);
    for (std::size_t j = i + 1; j < terms; ++j) {
      const double factor = matrix[j][i] / matrix[i][i];
      for (std::size_t k = i; k < terms; ++k) matrix[j][k] -= factor * matrix[i][k];
      right[j] -= factor * right[i];
    }
  }
  Row solution{};
  for (std::size_t i = terms; i-- > 0;) {
    solution[i] = right[i];
    for (std::size_t k = i + 1; k < terms; ++k) solution[i] -= matrix[i][k] * solution[k];
    solution[i] /= matrix[i][i];
  }
  return solution;
}

/// Returns the smallest sum of squared relative errors with blocks of `block` bytes, over all l, 1/wbw and e >= 0.
double error_with(std::span<const TimedSize> times, std::uint64_t block) {
  // Each equation divided by its time: the errors are relative. Bytes in units of the largest size.
  std::vector<Row> rows;
  const auto unit = static_cast<double>(times.back().bytes);
  for (const TimedSize& each : times) {
    const std::uint64_t moved = (each.bytes + block - 1) / block * block;
    rows.push_back({1 / each.seconds, static_cast<double>(moved) / unit / each.seconds,
                    (each.bytes % block != 0 ? 1 : 0) / each.seconds});
  }
  std::array<Row, terms> matrix{};
  Row right{};
  double scale = 0;
  for (const Row& row : rows) scale = std::max(scale, row[0]);
  for (Row& row : rows)
    for (double& value : row) value /= scale;  // the solution then is in units of 1 / scale
  for (const Row& row : rows)
    for (std::size_t i = 0; i < terms; ++i) {
      right[i] += row[i];
      for (std::size_t j = 0; j < terms; ++j) matrix[i][j] += row[i] * row[j];
    }
  double least = std::numeric_limits<double>::infinity();
  for (unsigned subset = 1; subset < 1u << terms; ++subset) {
    const std::array<bool, terms> used{(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0};
    const auto solution = solve(matrix, right, used);
    if (!solution || std::ranges::any_of(*solution, [](double value) { return value < 0; })) continue;
    double error = 0;
    for (const Row& row : rows) {
      double relative = -1;
      for (std::size_t i = 0; i < terms; ++i) relative += row[i] * (*solution)[i];
      error += relative * relative;
    }
    least = std::min(least, error);
  }
  return least;
}

}  // namespace

std::uint64_t closest_block_bytes(std::span<const TimedSize> times, std::uint64_t reported) {
  constexpr std::uint64_t step = 2 * KiB, largest = 64 * KiB;
  constexpr double needed_gain = 0.5;
  if (times.size() < block_size_steps.size() / 2) return reported;
  const double as_reported = error_with(times, reported);
  double least = as_reported;
  std::uint64_t best = reported;
  for (std::uint64_t block = (reported / step + 1) * step; block <= largest; block += step) {
    const double error = error_with(times, block);
    if (error >= least) continue;
    least = error;
    best = block;
  }
  return least < needed_gain * as_reported ? best : reported;
}

}  // namespace iosig
