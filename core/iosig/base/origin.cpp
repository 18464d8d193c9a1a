#include "iosig/base/origin.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "iosig/base/mix.h"

namespace iosig {

void fill(std::span<std::byte> bytes, WriteOrigin origin, std::uint64_t offset_bytes) {
  static_assert(std::endian::native == std::endian::little, "files would differ between machines");
  const std::uint64_t key = mixed(mixed(origin.rank) + origin.sequence);
  while (!bytes.empty()) {
    const std::uint64_t word = mixed(key ^ offset_bytes / sizeof key);
    const std::size_t skipped = offset_bytes % sizeof word;
    const std::size_t count = std::min(bytes.size(), sizeof word - skipped);
    std::memcpy(bytes.data(), reinterpret_cast<const char*>(&word) + skipped, count);
    bytes = bytes.subspan(count);
    offset_bytes += count;
  }
}

}  // namespace iosig
