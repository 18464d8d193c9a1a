// A nest <-> bits: the part of the binary form for regular data (docs/formats/pattern.md, "Nests").
//
// Sizes, strides and counts of I/O are small numbers times powers of two, and many strides equal the span of the inner
// loop. A number is therefore coded as sign, shift and odd part, or as a bit for 0 or for the expected stride. Nests
// that differ only in some numbers, as those of a program's ranks do, are coded as differences.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

/// Appends term `term` of `pattern`, a nest, in whole bytes. The first byte is odd.
void append_nest(const Pattern& pattern, std::size_t term, std::vector<std::uint8_t>& bytes);

/// Reads the nest at the beginning of `bytes` and appends it to the nodes and numbers of `pattern`, whose terms are
/// those before it. Returns the number of bytes read, or what is wrong with them. Does not check that the nest is
/// valid. Uses memory proportional to the bytes.
[[nodiscard]] tl::expected<std::size_t, std::string_view> read_nest(std::span<const std::uint8_t> bytes,
                                                                    Pattern& pattern);

}  // namespace iosig
