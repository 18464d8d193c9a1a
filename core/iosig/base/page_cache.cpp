#include "iosig/base/page_cache.h"

#include <algorithm>

#include "iosig/base/files.h"
#include "iosig/base/room.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// Returns the threshold that `setting` names: a number of bytes, or a percentage of the available memory. The kernel
/// ignores the percentage if the number is set.
std::optional<std::uint64_t> threshold(const std::string& setting, std::uint64_t available_bytes) {
  const auto number_in = [&](const char* unit) -> std::optional<std::uint64_t> {
    const auto text = read_file(setting + unit);
    return text ? parse_count<std::uint64_t>(trimmed(*text)) : std::nullopt;
  };
  if (const auto bytes = number_in("bytes"); bytes && *bytes > 0) return bytes;
  const auto percent = number_in("ratio");
  if (!percent) return std::nullopt;
  return available_bytes / 100 * std::min<std::uint64_t>(*percent, 100);
}

}  // namespace

PageCache ask_page_cache(const std::string& root) {
  const auto available = memory_room_bytes(root);
  if (!available) return {};
  PageCache cache{.cached_bytes = *available};
  const std::string vm = root + "/proc/sys/vm/dirty_";
  const auto limit = threshold(vm, *available);
  auto background = threshold(vm + "background_", *available);
  if (!limit || !background) return cache;
  if (*background >= *limit) background = *limit / 2;  // as the kernel does
  cache.background_bytes = *background;
  cache.unthrottled_bytes = (*limit + *background) / 2;
  return cache;
}

}  // namespace iosig
