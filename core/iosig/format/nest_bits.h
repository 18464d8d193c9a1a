// A nest <-> bits: the part of the binary form in which regular data lies (docs/formats/pattern.md, "Nests").
//
// Sizes, strides and counts of I/O are small numbers times powers of two, and many strides are what the loop within
// covers, so each number is a sign, a shift and an odd number, or a bit that says that it is 0 or just that. Nests that
// differ in some numbers only, as those of a program's ranks do, are told by how they differ.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

/// Term `term` of `pattern`, a nest, in whole bytes of which the first is odd.
void append_nest(const Pattern& pattern, std::size_t term, std::vector<std::uint8_t>& bytes);

/// Puts the nest at the beginning of `bytes` behind the nodes and numbers of `pattern`, whose terms are those before
/// it; returns how many bytes it took, or what is wrong with them. Whether it is sound remains to be checked. Memory:
/// by the size of the bytes.
[[nodiscard]] tl::expected<std::size_t, std::string_view> read_nest(std::span<const std::uint8_t> bytes,
                                                                    Pattern& pattern);

}  // namespace iosig
