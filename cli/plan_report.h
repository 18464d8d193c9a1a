// A plan in words: what each window costs, which regions gain, and what moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "console.h"
#include "iosig/model/plan.h"

namespace iosig::cli {

/// "1 file", "2 files".
[[nodiscard]] std::string amount_of(std::uint64_t count, std::string_view what);

/// Returns the lines for a checked plan; `max_regions`: of each window, those that save most.
[[nodiscard]] std::string plan_words(const Plan& plan, std::size_t max_regions);

/// Returns a picture, a row for each window: regions from left to right, how many of the requests go to them (blank,
/// then . : - = + * #), and below where they lie: the first letter of the class with most of the bytes, in capitals if
/// other classes have some, too. More regions than `columns` share a column.
[[nodiscard]] std::string plan_picture(const Plan& plan, std::size_t columns);

}  // namespace iosig::cli
