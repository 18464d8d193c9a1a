#include "iosig/observe/grid.h"

#include <algorithm>

namespace iosig::observe {
namespace {

void append_leb128(std::uint64_t number, std::string& text) {
  for (; number >= 0x80; number >>= 7) text += static_cast<char>(0x80 | (number & 0x7f));
  text += static_cast<char>(number);
}

}  // namespace

void Grid::squeeze_rows() {
  for (std::uint32_t row = 0; row < rows_; ++row) {
    const auto from = cells_.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * columns_);
    if (row == 0) continue;
    const auto to = cells_.begin() + static_cast<std::ptrdiff_t>(std::size_t{row / 2} * columns_);
    for (std::uint32_t column = 0; column < columns_; ++column) {
      const std::uint64_t amount = from[column];
      from[column] = 0;
      to[column] += amount;
    }
  }
}

void Grid::halve_rows() {
  squeeze_rows();
  rows_ /= 2;
  cells_.resize(std::size_t{columns_} * rows_);
}

void Grid::halve_columns() {
  for (std::size_t pair = 0; pair < cells_.size() / 2; ++pair) cells_[pair] = cells_[2 * pair] + cells_[2 * pair + 1];
  columns_ /= 2;
  cells_.resize(std::size_t{columns_} * rows_);
}

void Grid::keep_rows(const std::vector<std::uint32_t>& kept, std::uint32_t rows_of_one) {
  const std::size_t size = std::size_t{columns_} * rows_of_one;
  for (std::size_t n = 0; n < kept.size(); ++n)
    std::copy_n(cells_.begin() + static_cast<std::ptrdiff_t>(kept[n] * size), size,
                cells_.begin() + static_cast<std::ptrdiff_t>(n * size));
  rows_ = static_cast<std::uint32_t>(kept.size()) * rows_of_one;
  cells_.resize(std::size_t{columns_} * rows_);
}

std::string Grid::encoded() const {
  std::string text;
  std::uint64_t empty = 0;
  for (const std::uint64_t amount : cells_) {
    if (amount == 0) {
      ++empty;
      continue;
    }
    append_leb128(empty, text);
    append_leb128(amount, text);
    empty = 0;
  }
  return text;
}

}  // namespace iosig::observe
