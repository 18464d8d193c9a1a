#include "iosig/trace/calls.h"

#include <algorithm>
#include <array>

namespace iosig::trace {
namespace {

/// Without pointers: the dynamic linker would write each of them at the start of every traced process.
struct Known {
  constexpr Known() = default;
  constexpr Known(std::string_view text, Layer of) : length(static_cast<std::uint8_t>(text.size())), layer(of) {
    std::ranges::copy(text, letters.begin());  // a name that is too long does not compile
  }
  [[nodiscard]] constexpr std::string_view name() const { return {letters.data(), length}; }

  std::array<char, 29> letters{};
  std::uint8_t length = 0;
  Layer layer = Layer::posix;
};

constexpr std::array<Known, call_limit> known_calls = [] {
  std::array<Known, call_limit> known{};
#define IOSIG_CALL(number, name, layer, kind, manner) known[number] = {#name, Layer::layer};
#include "iosig/trace/calls.inc"
#undef IOSIG_CALL
  return known;
}();

}  // namespace

[[gnu::hot]] std::string_view name_of(Call call) {
  const auto number = static_cast<std::uint16_t>(call);
  return number < call_limit ? known_calls[number].name() : std::string_view();
}

Call call_of(std::string_view name) {
  const auto* const found = std::ranges::find(known_calls, name, &Known::name);
  return name.empty() || found == known_calls.end() ? Call::none : static_cast<Call>(found - known_calls.begin());
}

Layer layer_of(Call call) { return known_calls[static_cast<std::uint16_t>(call)].layer; }

bool has_second_path(Call call) { return call == Call::rename || call == Call::link || call == Call::symlink; }

}  // namespace iosig::trace
