// CRC-32C (Castagnoli) of bytes. Detects every change within 32 consecutive bits. No protection against tampering.
//
// Not a library's, because libiosig-preload, which computes it for each write, brings no other library into programs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace iosig {

/// Returns the checksum. Of "123456789": 0xe3069283 (RFC 3720, appendix B.4, has more). `before`: the checksum of the
/// bytes that precede these.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before = 0);

/// Returns the checksum of bytes with the checksum `first`, followed by `second_bytes` bytes with the checksum
/// `second`.
[[nodiscard]] std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// A way to compute a checksum; the checksum is complemented before and after.
using Crc32cWay = std::uint32_t (*)(std::span<const std::uint8_t> bytes, std::uint32_t before);
/// Returns all ways that this processor has, for tests. Each is for any number of bytes.
[[nodiscard]] std::vector<Crc32cWay> crc32c_ways();

}  // namespace iosig
