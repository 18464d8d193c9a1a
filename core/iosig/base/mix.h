// Deterministic pseudo-randomness: the same input gives the same output on every machine.
#pragma once

#include <cstdint>

namespace iosig {

/// SplitMix64's step and finalizer (Steele, Lea, Flood, OOPSLA 2014): a bijection in which every output bit depends on
/// all input bits.
constexpr std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

}  // namespace iosig
