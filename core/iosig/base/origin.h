// Bytes that follow from the access that wrote them, so that every wrong byte of a file shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iosig {

/// Who wrote, and what tells this access from the others of the rank.
struct WriteOrigin {
  std::uint64_t rank = 0;
  std::uint64_t sequence = 0;

  bool operator==(const WriteOrigin&) const = default;
};

/// The bytes that `origin` writes from `offset_bytes` on. The same for any way to cut an extent into calls.
void fill(std::span<std::byte> bytes, WriteOrigin origin, std::uint64_t offset_bytes);

}  // namespace iosig
