// Where the compiler has inlined a function.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>

namespace iosig::lines {

struct SourcePlace {
  const char* file;  ///< as libdw keeps it
  std::uint64_t line;
};

/// Returns the place of the call that `function`, an inlined one in `unit`, stands for; nothing if it is not known.
[[nodiscard]] std::optional<SourcePlace> inlined_at(Dwarf_Die& unit, Dwarf_Die& function);

}  // namespace iosig::lines
