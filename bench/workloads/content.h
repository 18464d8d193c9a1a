// What workloads write: bytes that follow from the access they belong to, so that every wrong byte shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iosig::workloads {

/// Who wrote, and as its how-manieth access; shared extents are everybody's, {0, 0}.
struct Origin {
  std::uint32_t rank = 0;
  std::uint64_t sequence = 0;

  bool operator==(const Origin&) const = default;
};

/// The bytes that `origin` writes from `offset_bytes` on. The same for any way to cut an extent into calls.
void fill(std::span<std::byte> bytes, Origin origin, std::uint64_t offset_bytes);

}  // namespace iosig::workloads
