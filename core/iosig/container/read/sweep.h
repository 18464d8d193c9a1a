// Finds which of many writes is the latest at each byte of a file.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "iosig/analyze/piece_table.h"

namespace iosig {

/// Writes and holes in the order of their begin in the file. Their numbers, from 0 on, are places in that order.
template <class List>
concept WritesInOrder = requires(const List& list, std::uint32_t n, std::int64_t offset) {
  { list.size() } -> std::convertible_to<std::size_t>;
  { list.begin_of(n) } -> std::same_as<std::int64_t>;
  { list.end_of(n) } -> std::same_as<std::int64_t>;  ///< behind its begin
  { list.is_hole(n) } -> std::same_as<bool>;
  { list.is_older(n, n) } -> std::same_as<bool>;  ///< a strict order; of two writes over a byte, the later one counts
  { list.extent(n, offset, offset) } -> std::same_as<Extent>;  ///< the write's bytes from one offset to another
  list.fetch_soon(n);                                          ///< may begin to load what the other functions need
};

/// Adds the bytes of the file that are not holes, each as a part of the last write to it.
///
/// A heap holds the writes over the current byte, the latest on top, and ended ones below it.
/// Example: write 0 of [0, 100), write 1 of [50, 60). At 0 the heap is {0}: [0, 50) is of 0. At 50 it is {1, 0}: [50,
/// 60) is of 1. Then 1 has ended: [60, 100) is of 0.
template <WritesInOrder List>
void sweep(const List& list, PieceTableBuilder& table) {
  const auto add = [&](std::uint32_t n, std::int64_t begin, std::int64_t end) {
    if (!list.is_hole(n)) table.add(list.extent(n, begin, end));
  };
  std::vector<std::uint32_t> over;
  const auto is_older = [&](std::uint32_t one, std::uint32_t other) { return list.is_older(one, other); };
  const auto size = static_cast<std::uint32_t>(list.size());
  std::int64_t at = 0;
  for (std::uint32_t next = 0; next < size || !over.empty();) {
    if (next < size) list.fetch_soon(next);
    if (over.empty()) {
      const std::int64_t end = list.end_of(next);
      if (next + 1 == size || list.begin_of(next + 1) >= end) {  // nothing lies over it
        add(next, list.begin_of(next), end);
        ++next;
        continue;
      }
      at = list.begin_of(next);
    }
    for (; next < size && list.begin_of(next) == at; ++next) {
      over.push_back(next);
      std::ranges::push_heap(over, is_older);
    }
    while (!over.empty() && list.end_of(over.front()) <= at) {
      std::ranges::pop_heap(over, is_older);
      over.pop_back();
    }
    if (over.empty()) continue;
    const std::uint32_t latest = over.front();
    const std::int64_t last = list.end_of(latest), end = next < size ? std::min(last, list.begin_of(next)) : last;
    add(latest, at, end);
    at = end;
  }
}

}  // namespace iosig
