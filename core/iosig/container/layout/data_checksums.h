// Checksums of the bytes of a data dropping, one for each block of 64 KiB.
//
// A writer computes them while it appends, and leaves them in the record of closed writers
// (container/layout/closed_writers). Readers of whole blocks, and `iosig container check --data`, compare.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace iosig {

inline constexpr std::int64_t checksum_block_bytes = 64 << 10;

/// The CRC-32C of each block of the first `bytes` bytes of a data dropping. The last block may be shorter.
struct DataChecksums {
  std::int64_t bytes = 0;                  ///< 0: no checksums
  std::int64_t block_bytes = 0;            ///< of all blocks but the last
  std::span<const std::uint8_t> packed{};  ///< 4 little-endian bytes for each block

  [[nodiscard]] std::int64_t count() const { return bytes == 0 ? 0 : (bytes - 1) / block_bytes + 1; }
  [[nodiscard]] std::int64_t begin_of(std::int64_t block) const { return block * block_bytes; }
  [[nodiscard]] std::int64_t end_of(std::int64_t block) const {
    return bytes - begin_of(block) < block_bytes ? bytes : begin_of(block) + block_bytes;
  }
  [[nodiscard]] std::uint32_t of(std::int64_t block) const;
  /// Whether there is a checksum for each block.
  [[nodiscard]] bool is_complete() const;
};

/// Packs a checksum as DataChecksums holds it.
[[nodiscard]] std::array<std::uint8_t, 4> packed_checksum(std::uint32_t checksum);

/// The checksums of a log that grows.
class LogChecksums {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::int64_t bytes() const { return done_ + filled_; }
  /// Returns the CRC-32C of all bytes.
  [[nodiscard]] std::uint32_t whole() const;
  /// Returns the checksums of all blocks; they live until the next call of a function that is not const.
  [[nodiscard]] DataChecksums blocks();

 private:
  [[nodiscard]] std::size_t complete_bytes() const;
  void append_last();

  std::vector<std::uint8_t> packed_;  ///< of complete blocks; after blocks(), also of the last one
  std::int64_t done_ = 0;             ///< bytes of complete blocks
  std::int64_t filled_ = 0;           ///< bytes of the last block, which is not complete
  std::uint32_t last_ = 0;            ///< its checksum
  std::uint32_t before_ = 0;          ///< checksum of all complete blocks
};

}  // namespace iosig
