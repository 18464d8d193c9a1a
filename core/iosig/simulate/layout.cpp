// How a layout splits a request among its servers.
#include <algorithm>

#include "iosig/simulate/engine.h"

namespace iosig::simulate {

Layout::Layout(std::span<const Stripe> stripes) {
  for (const Stripe& stripe : stripes) {
    if (stripe.bytes == 0) continue;
    begins_.push_back(period_);
    stripes_.push_back(stripe);
    period_ += stripe.bytes;
  }
}

void Layout::split(std::uint64_t offset, std::uint64_t length, std::vector<Part>& parts) const {
  parts.clear();
  const std::uint64_t periods = length / period_;
  std::uint64_t at = offset % period_, rest = length % period_;
  if (periods > 0)  // every server has its whole stripe that many times, and some a part of the rest
    for (const Stripe& stripe : stripes_) parts.push_back({stripe.server, periods * stripe.bytes});
  auto index = static_cast<std::size_t>(std::ranges::upper_bound(begins_, at) - begins_.begin()) - 1;
  const std::size_t first = index;
  bool is_wrapped = false;
  for (; rest > 0; at = begins_[index]) {
    const std::uint64_t taken = std::min(rest, begins_[index] + stripes_[index].bytes - at);
    if (periods > 0)
      parts[index].bytes += taken;
    else if (is_wrapped && index == first)
      parts.front().bytes += taken;  // the end of the rest is in the stripe in which it began
    else
      parts.push_back({stripes_[index].server, taken});
    rest -= taken;
    if (++index == stripes_.size()) index = 0;
    is_wrapped = true;
  }
}

}  // namespace iosig::simulate
