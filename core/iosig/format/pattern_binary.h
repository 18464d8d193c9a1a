// A pattern <-> compact, checksummed bytes. The format is docs/formats/pattern.md.
//
// Pure: bytes in, bytes out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

/// pattern_from_bytes(pattern_bytes(p)) == p for every pattern for which checked(p).
[[nodiscard]] std::vector<std::uint8_t> pattern_bytes(const Pattern& pattern);

/// Fails with `bad_input`, "source: byte N: what is wrong", for bytes that are truncated, modified, of another version,
/// or not a valid description. Uses memory proportional to the bytes, whatever sizes they declare.
[[nodiscard]] Result<Pattern> pattern_from_bytes(std::span<const std::uint8_t> bytes, std::string_view source);

/// Returns whether `bytes` begin as a pattern does, of any version.
[[nodiscard]] bool is_pattern_binary(std::string_view bytes);

}  // namespace iosig
