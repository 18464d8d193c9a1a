#include "iosig/observe/busy_time.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace iosig::observe {

void BusyTime::add(std::int64_t start, std::int64_t end) {
  add_duration(total_, end - start);
  const std::int64_t from = std::max(start, covered_until_);
  if (end > from) {
    busy_ += end - from;
    covered_until_ = end;
  }
  // An interval that ends where another starts is not in flight with it, but an empty one at that place is.
  while (!ends_.empty() && ends_.front() <= std::pair(start, false)) {
    std::ranges::pop_heap(ends_, std::greater());
    ends_.pop_back();
  }
  ends_.emplace_back(end, end == start);
  std::ranges::push_heap(ends_, std::greater());
  most_ = std::max(most_, ends_.size());
}

}  // namespace iosig::observe
