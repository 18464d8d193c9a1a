// File content that is derived from the access that wrote it; every wrong byte of a file can be detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iosig {

/// The rank that wrote, and a number that distinguishes this access from the rank's others.
struct WriteOrigin {
  std::uint64_t rank = 0;
  std::uint64_t sequence = 0;

  bool operator==(const WriteOrigin&) const = default;
};

/// Fills `bytes` with what `origin` writes from `offset_bytes` on. Independent of how an extent is split into calls.
void fill(std::span<std::byte> bytes, WriteOrigin origin, std::uint64_t offset_bytes);

}  // namespace iosig
