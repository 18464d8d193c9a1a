// The rows of an answer (query.h): which row a call belongs to, and in which order they are told.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/observe/query.h"
#include "iosig/observe/text_numbers.h"

namespace iosig::observe {

/// A number for each key that a query names, and 0 for the others: equal ones belong to one row.
using KeyNumbers = std::array<std::uint64_t, std::size(key_names)>;
struct HashKeys {
  std::size_t operator()(const KeyNumbers& numbers) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t number : numbers) hash = (hash ^ number) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return hash ^ hash >> 32;
  }
};
inline constexpr auto window_place = static_cast<std::size_t>(Key::window);
inline constexpr std::uint32_t no_row = UINT32_MAX;

class AnswerRows {
 public:
  /// The query must outlive the object.
  explicit AnswerRows(const Query& query);

  [[nodiscard]] bool has(Key key) const { return has_key_[static_cast<std::size_t>(key)]; }
  /// Whether a row may have calls of several layers.
  [[nodiscard]] bool mixes_layers() const;
  /// Of the call, without the window.
  KeyNumbers numbers_of(const trace::Access& access);
  /// A number for the keys, from 1.
  std::uint64_t group_of(const KeyNumbers& numbers);
  /// The number of the row with these keys; makes one for the access. Fails with `usage` beyond max_rows.
  Result<std::uint32_t> row_of(const KeyNumbers& numbers, const trace::Access& access);
  /// Returns the key of the stream of the call: the reads, or the writes, of a process on a file.
  KeyNumbers stream_of(std::uint64_t group, const trace::Access& access);

  Row& operator[](std::size_t row) { return rows_[row]; }
  std::vector<Row>& all() { return rows_; }
  /// In the order of the keys, as the query names them.
  std::vector<Row> sorted() &&;

 private:
  /// Of Query::sources; empty: not known.
  [[nodiscard]] std::string_view source_of(std::string_view path);

  const Query& query_;
  std::array<bool, std::size(key_names)> has_key_{};
  TextNumbers files_, nodes_, sources_;
  std::unordered_map<const char*, std::string_view> source_of_path_;  ///< paths stay where they are
  std::unordered_map<KeyNumbers, std::uint64_t, HashKeys> groups_;
  std::unordered_map<KeyNumbers, std::uint32_t, HashKeys> numbers_;
  KeyNumbers latest_group_numbers_{}, latest_row_numbers_{};
  std::uint64_t latest_group_ = 0;
  std::uint32_t latest_row_ = no_row;
  std::vector<Row> rows_;
};

}  // namespace iosig::observe
