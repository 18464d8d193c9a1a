// The order in which a program will read a file, as the program writes it (docs/formats/read-order.md) -> its reads.
//
//   iosig.order/1
//   records 16384
//   17
//   3
//
// Pure: text in, reads out.
#pragma once

#include <cstdint>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/known_reads.h"

namespace iosig {

inline constexpr std::uint64_t max_order_bytes = std::uint64_t{256} << 20;  ///< of the text: max_known_reads fit in it

/// Returns the reads in their order. Fails with `bad_input`, "source:LINE: what was expected", for another version, a
/// line that breaks a rule of the format, a read beyond 2^63 - 1 bytes, and more than max_known_reads reads.
[[nodiscard]] Result<KnownReads> parse_read_order(std::string_view text, std::string_view source);

}  // namespace iosig
