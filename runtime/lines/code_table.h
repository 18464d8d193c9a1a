// The table that iosig-lines prints for libiosig-preload.so: where the code of a process is, and which part of it comes
// from the selected lines. A header, then `mapped` ranges, `selected` ranges, `facts_bytes` and `message_bytes` of
// text.
#pragma once

#include <cstdint>

namespace iosig::lines {

inline constexpr std::uint64_t table_magic = 0x314e494c47534f49;  // "IOSGLIN1"

/// Addresses [begin, end) in the process.
struct CodeRange {
  std::uint64_t begin, end;
};

/// Ranges are in the order of their begins; those of a kind do not overlap.
struct CodeTableHeader {
  std::uint64_t magic;
  std::uint32_t mapped;         ///< executable mappings
  std::uint32_t selected;       ///< code of the selected lines
  std::uint32_t facts_bytes;    ///< for the trace: texts "key=value", each ended by NUL
  std::uint32_t message_bytes;  ///< for the user; 0: there is nothing to say
};

}  // namespace iosig::lines
