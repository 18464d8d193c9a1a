// CRC-32C (Castagnoli) of bytes. Detects every change within 32 consecutive bits. No protection against tampering.
#pragma once

#include <cstdint>
#include <span>

namespace iosig {

/// Returns the checksum. Of "123456789": 0xe3069283 (RFC 3720, appendix B.4, has more).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

}  // namespace iosig
