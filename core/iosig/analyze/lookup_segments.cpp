#include "iosig/analyze/lookup_segments.h"

#include <algorithm>
#include <queue>

#include "iosig/analyze/sorted_search.h"

namespace iosig {

Segments::Segments(std::vector<Written> elements) {
  std::erase_if(elements, [](const Written& element) { return element.begin >= element.end; });
  std::ranges::sort(elements, {}, [](const Written& element) { return std::pair(element.begin, element.position); });
  const auto is_older = [&](std::size_t a, std::size_t b) { return elements[a].position < elements[b].position; };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(is_older)> open(is_older);
  std::size_t last = SIZE_MAX;  // the element of the last segment
  std::int64_t at = 0;
  const auto write_until = [&](std::int64_t until) {  // appends the open elements from `at` on
    while (at < until) {
      while (!open.empty() && elements[open.top()].end <= at) open.pop();
      if (open.empty()) {
        at = until;
        return;
      }
      const Written& newest = elements[open.top()];
      const std::int64_t end = std::min(newest.end, until);
      if (last == open.top() && begins_.back() + rest_.back().length == at) {
        rest_.back().length += end - at;
      } else {
        begins_.push_back(at);
        rest_.push_back({end - at,
                         static_cast<std::int64_t>(static_cast<std::uint64_t>(newest.physical) +
                                                   static_cast<std::uint64_t>(at - newest.begin)),
                         newest.id, newest.position});
        last = open.top();
      }
      at = end;
    }
  };
  for (std::size_t n = 0; n < elements.size(); ++n) {
    write_until(elements[n].begin);
    open.push(n);
  }
  write_until(INT64_MAX);
  begins_.shrink_to_fit();
  rest_.shrink_to_fit();
  if (begins_.size() > 1)
    per_byte_ = static_cast<double>(begins_.size() - 1) / static_cast<double>(begins_.back() - begins_.front());
}

void Segments::search(ByteSearch& search) const {
  if (begins_.empty()) return;
  const std::int64_t distance = std::max<std::int64_t>(0, search.offset - begins_.front());
  const auto guess = std::min(static_cast<std::size_t>(static_cast<double>(distance) * per_byte_), begins_.size() - 1);
  __builtin_prefetch(&rest_[guess]);  // loads while the guess is verified
  const std::size_t next = count_up_to(begins_.data(), begins_.size(), search.offset, guess);
  if (next < begins_.size()) search.limit(static_cast<std::uint64_t>(begins_[next] - search.offset));
  if (next == 0) return;
  const std::size_t n = next - 1;
  const std::int64_t end = begins_[n] + rest_[n].length;
  if (end <= search.offset) return;
  search.take_if_newer({.position = rest_[n].position,
                        .begin = begins_[n],
                        .end = end,
                        .physical = static_cast<std::uint64_t>(rest_[n].physical),
                        .id = static_cast<std::uint64_t>(rest_[n].id)});
}

}  // namespace iosig
