#include "iosig/model/literals.h"

#include <algorithm>
#include <array>
#include <bit>

#include "iosig/model/bits.h"
#include "iosig/model/pattern.h"

namespace iosig {
namespace {

enum Predictor : unsigned { nothing = 0, before = 1, step = 2, sum = 3 };

/// Vectors in columns, stored contiguously; values modulo 2^64.
struct Vectors {
  const std::int64_t* first;
  std::uint32_t columns;
  [[nodiscard]] std::uint64_t at(std::size_t n, std::uint32_t column) const {
    return static_cast<std::uint64_t>(first[n * columns + column]);
  }
};

/// Returns how many values precede the residuals: as many as the predictor needs.
std::size_t seeds_of(unsigned predictor, std::size_t count) {
  return std::min<std::size_t>(count, predictor == nothing ? 0 : predictor == step ? 2 : 1);
}

/// Predicts vector `n` in `column` from those before it.
std::uint64_t prediction(const Vectors& vectors, std::size_t n, std::uint32_t column, unsigned predictor) {
  if (predictor == nothing) return 0;
  const std::uint64_t last = vectors.at(n - 1, column);
  if (predictor == before) return last;
  if (predictor == step) return 2 * last - vectors.at(n - 2, column);
  return last + vectors.at(n - 1, predictor - sum);
}

struct Residuals {
  std::int64_t least = 0;
  unsigned bits = 0;
};

/// Returns the range of the residuals. Gives up, with 65 bits, once it takes `enough` bits.
Residuals residuals_of(const Vectors& vectors, std::size_t count, std::uint32_t column, unsigned predictor,
                       unsigned enough) {
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  for (std::size_t n = seeds_of(predictor, count); n < count; ++n) {
    const auto left = static_cast<std::int64_t>(vectors.at(n, column) - prediction(vectors, n, column, predictor));
    if (left >= least && left <= most) continue;
    least = std::min(least, left);
    most = std::max(most, left);
    if (static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least))) >=
        enough)
      return {0, 65};
  }
  if (least > most) return {};
  return {least,
          static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least)))};
}

}  // namespace

void append_varint(std::uint64_t value, std::vector<std::uint8_t>& bytes) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

std::optional<std::uint64_t> read_long_varint(std::span<const std::uint8_t> bytes, std::size_t& at) {
  std::uint64_t value = 0;
  std::size_t next = at;  // not `at` itself, which the compiler would store for each byte
  for (unsigned shift = 0; next < bytes.size() && shift < 64; shift += 7) {
    const std::uint64_t byte = bytes[next++];
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    at = next;
    return value;
  }
  at = next;
  return std::nullopt;
}

void append_block(std::span<const std::int64_t> values, std::uint32_t columns, std::vector<std::uint8_t>& bytes) {
  const Vectors vectors{values.data(), columns};
  const std::size_t count = values.size() / columns;
  append_varint(count, bytes);
  for (std::uint32_t column = 0; column < columns; ++column) {
    unsigned best = nothing;
    Residuals left = residuals_of(vectors, count, column, nothing, 65);
    for (unsigned predictor = before; predictor < sum + columns && left.bits > 0; ++predictor) {
      if (predictor == sum + column) continue;
      const Residuals other = residuals_of(vectors, count, column, predictor, left.bits);
      if (other.bits >= left.bits) continue;
      best = predictor;
      left = other;
    }
    bytes.push_back(static_cast<std::uint8_t>(best));
    bytes.push_back(static_cast<std::uint8_t>(left.bits));
    const std::size_t seeds = seeds_of(best, count);
    for (std::size_t n = 0; n < seeds; ++n) append_varint(zigzag(values[n * columns + column]), bytes);
    append_varint(zigzag(left.least), bytes);
    BitWriter writer(bytes);
    for (std::size_t n = seeds; n < count; ++n)
      writer.put(vectors.at(n, column) - prediction(vectors, n, column, best) - static_cast<std::uint64_t>(left.least),
                 left.bits);
    writer.end();
  }
}

namespace {

struct ColumnCode {
  unsigned predictor = 0, bits = 0;
  std::size_t seeds = 0;
  std::array<std::uint64_t, 2> seed{};
  std::uint64_t least = 0;
  BitReader residuals;
};

/// What precedes the residuals of a block.
struct BlockCode {
  std::array<ColumnCode, max_columns> columns;
  BlockSize size;
};

std::optional<BlockCode> block_code(std::span<const std::uint8_t> bytes, std::uint32_t columns) {
  BlockCode code;
  std::size_t at = 0;
  const auto count = read_varint(bytes, at);
  if (!count || *count == 0 || *count > block_vectors) return std::nullopt;
  for (std::uint32_t c = 0; c < columns; ++c) {
    ColumnCode& column = code.columns[c];
    if (bytes.size() - at < 2) return std::nullopt;
    column.predictor = bytes[at++];
    column.bits = bytes[at++];
    if (column.predictor >= sum + columns || column.predictor == sum + c || column.bits > 64) return std::nullopt;
    column.seeds = seeds_of(column.predictor, *count);
    for (std::size_t n = 0; n < column.seeds; ++n) {
      const auto seed = read_varint(bytes, at);
      if (!seed) return std::nullopt;
      column.seed[n] = static_cast<std::uint64_t>(unzigzag(*seed));
    }
    const auto least = read_varint(bytes, at);
    if (!least) return std::nullopt;
    column.least = static_cast<std::uint64_t>(unzigzag(*least));
    const std::size_t packed = ((*count - column.seeds) * column.bits + 7) / 8;
    if (bytes.size() - at < packed) return std::nullopt;
    column.residuals = BitReader(bytes.subspan(at, packed));
    at += packed;
  }
  code.size = {*count, at};
  return code;
}

}  // namespace

std::optional<BlockSize> size_of_block(std::span<const std::uint8_t> bytes, std::uint32_t columns) {
  const auto code = block_code(bytes, columns);
  return code ? std::optional(code->size) : std::nullopt;
}

std::optional<std::size_t> read_block(std::span<const std::uint8_t> bytes, std::uint32_t columns,
                                      std::vector<std::int64_t>& out) {
  auto code = block_code(bytes, columns);
  if (!code) return std::nullopt;
  // Vector by vector, since a column may be predicted from a later column.
  out.resize(code->size.vectors * columns);
  const Vectors vectors{out.data(), columns};
  for (std::size_t n = 0; n < code->size.vectors; ++n)
    for (std::uint32_t c = 0; c < columns; ++c) {
      ColumnCode& column = code->columns[c];
      out[n * columns + c] =
          static_cast<std::int64_t>(n < column.seeds ? column.seed[n]
                                                     : prediction(vectors, n, c, column.predictor) + column.least +
                                                           column.residuals.take(column.bits));
    }
  return code->size.bytes;
}

}  // namespace iosig
