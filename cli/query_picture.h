// Draws the answer of a question with characters: a histogram of durations for each row, or a bar for each row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/observe/query.h"
#include "query_columns.h"

namespace iosig::cli {

/// The column that is drawn; "": the question has no picture. `latency` draws Row::values.
[[nodiscard]] std::string_view drawn_column(std::string_view question);

struct TextStyle {
  std::size_t columns = 80;  ///< total width in characters
  bool is_utf8 = true;       ///< else ASCII
};

/// At most `max_rows` rows; a last line says if there are more. Without a final newline. A row without a number has no
/// bar. Bars are as long as their number is beside the greatest; of a histogram, each bin is as high as it is beside
/// the fullest one of its row, and bins are powers of two.
[[nodiscard]] std::string query_picture(std::string_view question, const std::vector<observe::Row>& rows,
                                        const std::vector<AnswerColumn>& columns, std::size_t key_columns,
                                        std::size_t max_rows, const TextStyle& style);

/// A window of time so that `wall_ns` has 50 or fewer: 1, 2 or 5 times a power of ten.
[[nodiscard]] std::int64_t window_for(std::int64_t wall_ns);

}  // namespace iosig::cli
