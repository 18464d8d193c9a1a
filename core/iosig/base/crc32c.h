// CRC-32C (Castagnoli) of bytes. Detects every change within 32 consecutive bits. No protection against tampering.
#pragma once

#include <cstdint>
#include <span>

namespace iosig {

/// Returns the checksum. Of "123456789": 0xe3069283 (RFC 3720, appendix B.4, has more). `before`: the checksum of the
/// bytes that precede these.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before = 0);

/// Returns the checksum of bytes with the checksum `first`, followed by `second_bytes` bytes with the checksum
/// `second`.
[[nodiscard]] std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

}  // namespace iosig
