// Amounts in the cells of a rectangle, which may be made coarser.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace iosig::observe {

class Grid {
 public:
  Grid() = default;
  Grid(std::uint32_t columns, std::uint32_t rows)
      : columns_(columns), rows_(rows), cells_(std::size_t{columns} * rows) {}

  [[nodiscard]] std::uint32_t columns() const { return columns_; }
  [[nodiscard]] std::uint32_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t at(std::uint32_t column, std::uint32_t row) const {
    return cells_[std::size_t{row} * columns_ + column];
  }
  void add(std::uint32_t column, std::uint32_t row, std::uint64_t amount) {
    cells_[std::size_t{row} * columns_ + column] += amount;
  }

  /// Adds each two rows (0 and 1, 2 and 3, ...) and leaves the upper half of the rows, which it keeps, empty.
  void squeeze_rows();
  /// Makes each two columns, or rows, one. Their number must be even.
  void halve_columns();
  void halve_rows();

  /// Leaves only these rows, which ascend; each has `rows_of_one` rows: the numbers 1 and 3 of two are 2, 3, 6, and 7.
  void keep_rows(const std::vector<std::uint32_t>& kept, std::uint32_t rows_of_one = 1);

  /// The cells that are not 0, row by row, as pairs of numbers in LEB128: the cells that are 0 since the one before,
  /// and the amount.
  [[nodiscard]] std::string encoded() const;

 private:
  std::uint32_t columns_ = 0, rows_ = 0;
  std::vector<std::uint64_t> cells_;  ///< row by row
};

}  // namespace iosig::observe
