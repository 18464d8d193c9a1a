// Structures to hold the chain and the simulation against each other.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "iosig/base/units.h"
#include "iosig/cost/structure.h"

namespace iosig {

constexpr double day_s = 86400;
/// Bits of 1 TB that a device with the UBER of the paper's section 7.4 (4.36e-14) is expected not to read.
constexpr double unreadable_of_1tb = 8 * static_cast<double>(TiB) * 4.36e-14;

inline Structure device(double mttf_s = 10 * year_s, double unreadable = 0) {
  return {.failures_per_s = 1 / mttf_s, .unreadable = unreadable};
}

inline Structure code(std::vector<Structure> parts, std::uint32_t parity, double mttr_s = day_s) {
  return {.kind = Structure::Kind::code, .parity = parity, .repairs_per_s = 1 / mttr_s, .parts = std::move(parts)};
}

inline Structure code(std::size_t count, const Structure& part, std::uint32_t parity, double mttr_s = day_s) {
  return code(std::vector<Structure>(count, part), parity, mttr_s);
}

/// A local reconstruction code with `groups` groups of `data` + 1 devices and `parity` global parities.
inline Structure local_codes(std::size_t groups, std::size_t data, std::uint32_t parity, const Structure& part,
                             double mttr_s = day_s) {
  Structure whole = code(groups, code(data + 1, part, 1, mttr_s), parity, mttr_s);
  whole.kind = Structure::Kind::local_codes;
  whole.parts.insert(whole.parts.end(), parity, part);
  return whole;
}

}  // namespace iosig
