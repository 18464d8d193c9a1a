// What every fuzzer needs: a property that must hold, and a crash with its name when it does not.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "iosig/base/text.h"

namespace iosig::fuzz {

inline void hold(bool property, std::string_view what, std::string_view detail = {}) {
  if (property) return;
  fmt::print(stderr, "BROKEN: {}\n{}\n", what, printable(detail));
  std::abort();
}

/// A refusal says which file and which line of it: "source:12..." or "source:12:3...".
inline bool names_a_line(std::string_view message, std::string_view source) {
  return message.size() > source.size() + 1 && message.starts_with(source) && message[source.size()] == ':' &&
         message[source.size() + 1] >= '1' && message[source.size() + 1] <= '9';
}

}  // namespace iosig::fuzz

/// Defined by each fuzzer: one input, made up by libFuzzer from those of corpus/<name>.
void try_one(std::string_view text);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_one({reinterpret_cast<const char*>(data), size});
  return 0;
}
