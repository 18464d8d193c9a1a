#include "iosig/replay/trace_content.h"

#include <algorithm>

namespace iosig {
namespace {

constexpr std::size_t compared_at_once = 4096;

}  // namespace

std::size_t ContentChecker::matching(std::span<const std::byte> bytes, std::int64_t offset, WriteOrigin origin) {
  expected_.resize(compared_at_once);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto part = bytes.subspan(at, std::min(bytes.size() - at, compared_at_once));
    const auto expected = std::span(expected_).first(part.size());
    fill(expected, origin, static_cast<std::uint64_t>(offset) + at);
    const auto differs = std::ranges::mismatch(part, expected).in1 - part.begin();
    at += static_cast<std::size_t>(differs);
    if (static_cast<std::size_t>(differs) < part.size()) return at;
  }
  return bytes.size();
}

void ContentChecker::check(std::span<const std::byte> bytes, std::int64_t offset, std::span<const WriteOrigin> origins,
                           WrongBytes& wrong) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto rest = bytes.subspan(at);
    const auto place = offset + static_cast<std::int64_t>(at);
    if (last_ >= origins.size()) last_ = 0;
    std::size_t best = 0;
    if (!origins.empty()) best = matching(rest, place, origins[last_]);
    for (std::size_t n = 0; n < origins.size() && best < rest.size(); ++n)
      if (const std::size_t found = n == last_ ? 0 : matching(rest, place, origins[n]); found > best) {
        best = found;
        last_ = n;
      }
    if (best < rest.size()) {
      const auto zeros = std::ranges::find_if(rest, [](std::byte byte) { return byte != std::byte{0}; });
      best = std::max(best, static_cast<std::size_t>(zeros - rest.begin()));
    }
    if (best == 0) {
      if (wrong.count++ == 0) wrong.first = place;
      best = 1;
    }
    at += best;
  }
}

}  // namespace iosig
