// Bit streams in bytes, lowest bit first, padded to a whole byte. Used by model/literals and format/nest_bits.
#pragma once

#include <cstdint>
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
    for (; filled_ < bits; filled_ += 8, ++at_)
      if (at_ < bytes_.size()) held_ |= static_cast<unsigned __int128>(bytes_[at_]) << filled_;
    const auto value = static_cast<std::uint64_t>(held_) & (~std::uint64_t{0} >> (64 - bits));
    held_ >>= bits;
    filled_ -= bits;
    return value;
  }
  /// Returns whether more bits were taken than exist.
  [[nodiscard]] bool is_past_end() const { return at_ > bytes_.size(); }
  /// Returns the number of bytes of which bits were taken.
  [[nodiscard]] std::size_t taken() const { return at_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  unsigned __int128 held_ = 0;
  unsigned filled_ = 0;
};

}  // namespace iosig
