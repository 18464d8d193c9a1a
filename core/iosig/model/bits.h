// Bit streams in bytes, lowest bit first, padded to a whole byte. Used by model/literals and format/nest_bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace iosig {

class BitWriter {
 public:
  /// Appends to `bytes`.
  explicit BitWriter(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  /// Appends the `bits` lowest bits of `value`, 0 to 64. Requires `value` < 2^bits.
  void put(std::uint64_t value, unsigned bits) {
    held_ |= static_cast<unsigned __int128>(value) << filled_;
    for (filled_ += bits; filled_ >= 8; filled_ -= 8, held_ >>= 8) bytes_.push_back(static_cast<std::uint8_t>(held_));
  }
  /// Pads the last byte with zeros. To be called once, at the end.
  void end() {
    if (filled_ > 0) bytes_.push_back(static_cast<std::uint8_t>(held_));
  }

 private:
  std::vector<std::uint8_t>& bytes_;
  unsigned __int128 held_ = 0;
  unsigned filled_ = 0;
};

class BitReader {
 public:
  BitReader() = default;
  explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// Returns the next `bits`, 0 to 64; zeros after the end.
  std::uint64_t take(unsigned bits) {
    if (bits == 0) return 0;
    const std::size_t at = at_ / 8;
    const unsigned shift = at_ % 8;
    at_ += bits;
    std::uint64_t value = word_from(at) >> shift;
    if (shift + bits > 64) value |= word_from(at + 8) << (64 - shift);
    return value & (~std::uint64_t{0} >> (64 - bits));
  }
  /// Takes a number >= 1 that is coded as a zero for each bit after its highest, a one, and those bits. Returns 0, and
  /// takes nothing, if the code is longer than 56 bits or has no end.
  std::uint64_t take_short_natural() {
    const std::uint64_t word = word_from(at_ / 8) >> (at_ % 8);
    const auto more = static_cast<unsigned>(std::countr_zero(word));
    if (more > 27) return 0;
    at_ += 2 * more + 1;
    const std::uint64_t highest = std::uint64_t{1} << more;
    return highest | (word >> (more + 1) & (highest - 1));
  }
  /// Returns whether more bits were taken than exist.
  [[nodiscard]] bool is_past_end() const { return taken() > bytes_.size(); }
  /// Returns the number of bytes of which bits were taken.
  [[nodiscard]] std::size_t taken() const { return at_ / 8 + (at_ % 8 == 0 ? 0 : 1); }

 private:
  /// Returns the 8 bytes from `at` on, the first one lowest; zeros after the end.
  [[nodiscard]] std::uint64_t word_from(std::size_t at) const {
    std::uint64_t word = 0;
    if (at + sizeof word <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + at, sizeof word);
      if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
      return word;
    }
    for (std::size_t n = 0; n < sizeof word && at + n < bytes_.size(); ++n)
      word |= std::uint64_t{bytes_[at + n]} << (8 * n);
    return word;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;  ///< in bits
};

}  // namespace iosig
