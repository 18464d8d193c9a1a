#include "iosig/cost/collective.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace iosig {
namespace {

constexpr std::size_t term_count = 6;
using Row = std::array<double, term_count>;

Row row_of(const TransferTerms& terms) {
  return {terms.outputs, terms.calls, terms.memory_pieces, terms.file_pieces, terms.interleaved_bytes, terms.bytes};
}

/// The normal equations of min |A x - 1|^2, whose rows are those of `work`, each divided by its time.
struct Equations {
  std::array<Row, term_count> matrix{};
  Row right{};
};

/// Solves the equations of the terms in `kept` (bit i: term i), the others being 0. Nothing if they have no single
/// solution. Scaled by the diagonal, because bytes are many and calls are few.
std::optional<Row> solved(const Equations& equations, unsigned kept) {
  std::array<std::size_t, term_count> terms{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < term_count; ++i)
    if ((kept >> i & 1U) != 0) terms[n++] = i;
  std::array<std::array<double, term_count + 1>, term_count> a{};
  Row scale{};
  for (std::size_t i = 0; i < n; ++i) {
    if (equations.matrix[terms[i]][terms[i]] <= 0) return std::nullopt;
    scale[i] = 1 / std::sqrt(equations.matrix[terms[i]][terms[i]]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a[i][j] = equations.matrix[terms[i]][terms[j]] * scale[i] * scale[j];
    a[i][n] = equations.right[terms[i]] * scale[i];
  }
  for (std::size_t column = 0; column < n; ++column) {  // Gauss; symmetric and positive: no pivots are exchanged
    if (a[column][column] < 1e-9) return std::nullopt;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == column) continue;
      const double factor = a[i][column] / a[column][column];
      for (std::size_t j = column; j <= n; ++j) a[i][j] -= factor * a[column][j];
    }
  }
  Row found{};
  for (std::size_t i = 0; i < n; ++i) found[terms[i]] = a[i][n] / a[i][i] * scale[i];
  return found;
}

}  // namespace

TransferTerms work_of(TransferMethod method, std::span<const SharedTransfer> data_sets) {
  TransferTerms work{.outputs = 1};
  for (const SharedTransfer& each : data_sets) {
    const bool is_interleaved = each.file_pieces > each.ranks;
    work.calls = method == TransferMethod::nonblocking ? std::max(work.calls, each.ranks) : work.calls + each.ranks;
    work.memory_pieces += each.memory_pieces;
    work.file_pieces += each.file_pieces;
    if (is_interleaved) work.interleaved_bytes += each.bytes;
    work.bytes += is_interleaved && method == TransferMethod::sieving ? 2 * each.spanned_bytes : each.bytes;
  }
  return work;
}

double predicted_seconds(const TransferTerms& work, const TransferTerms& costs) {
  const Row number = row_of(work), each = row_of(costs);
  double seconds = 0;
  for (std::size_t i = 0; i < term_count; ++i) seconds += number[i] * each[i];
  return seconds;
}

Result<TransferTerms> fitted_costs(std::span<const MeasuredTransfer> measured) {
  if (measured.empty()) return fail(ErrorKind::bad_input, "no transfer was measured");
  std::vector<Row> rows;
  Equations equations;
  for (const MeasuredTransfer& each : measured) {
    if (!(each.seconds > 0))
      return fail(ErrorKind::bad_input, "a transfer took {} s; expected more than 0", each.seconds);
    Row& row = rows.emplace_back(row_of(each.work));
    for (double& number : row) number /= each.seconds;
    for (std::size_t i = 0; i < term_count; ++i) {
      equations.right[i] += row[i];
      for (std::size_t j = 0; j < term_count; ++j) equations.matrix[i][j] += row[i] * row[j];
    }
  }
  // The best solution without negative costs leaves some terms out; there are few enough to try all.
  Row best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned kept = 1; kept < 1U << term_count; ++kept) {
    const auto found = solved(equations, kept);
    if (!found || std::ranges::any_of(*found, [](double cost) { return cost < 0; })) continue;
    double error = 0;
    for (const Row& row : rows) {
      double predicted = 0;
      for (std::size_t i = 0; i < term_count; ++i) predicted += row[i] * (*found)[i];
      error += (predicted - 1) * (predicted - 1);
    }
    if (error >= least) continue;
    least = error;
    best = *found;
  }
  return TransferTerms{best[0], best[1], best[2], best[3], best[4], best[5]};
}

}  // namespace iosig
