// Searches in sorted numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace iosig {

/// Returns how many of the `count` ascending `numbers` are at most `value`. Branch-free, so without mispredictions.
[[nodiscard]] inline std::size_t count_up_to(const std::int64_t* numbers, std::size_t count, std::int64_t value) {
  const std::int64_t* first = numbers;
  while (count > 1) {
    const std::size_t half = count / 2;
    first = first[half - 1] <= value ? first + half : first;
    count -= half;
  }
  return static_cast<std::size_t>(first - numbers) + (count == 1 && *first <= value ? 1 : 0);
}

/// As above, from a guess at the answer, in steps that double. A good guess avoids most memory accesses in a large
/// array.
[[nodiscard]] inline std::size_t count_up_to(const std::int64_t* numbers, std::size_t count, std::int64_t value,
                                             std::size_t guess) {
  std::size_t low = 0, high = count;  // the answer is in [low, high]
  if (guess < count && numbers[guess] <= value) {
    low = guess + 1;
    for (std::size_t step = 1; step <= high - low; step *= 2) {
      if (numbers[low + step - 1] > value) {
        high = low + step - 1;
        break;
      }
      low += step;
    }
  } else {
    high = guess < count ? guess : count;
    for (std::size_t step = 1; step <= high; step *= 2) {
      if (numbers[high - step] <= value) {
        low = high - step + 1;
        break;
      }
      high -= step;
    }
  }
  return low + count_up_to(numbers + low, high - low, value);
}

}  // namespace iosig
