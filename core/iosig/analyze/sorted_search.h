// Binary search in ascending numbers without branches that the processor could mispredict.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iosig {

/// How many of the `count` ascending `numbers` are at most `value`.
[[nodiscard]] inline std::size_t count_up_to(const std::int64_t* numbers, std::size_t count, std::int64_t value) {
  const std::int64_t* first = numbers;
  while (count > 1) {
    const std::size_t half = count / 2;
    first = first[half - 1] <= value ? first + half : first;
    count -= half;
  }
  return static_cast<std::size_t>(first - numbers) + (count == 1 && *first <= value ? 1 : 0);
}

}  // namespace iosig
