#include "iosig/container/layout/data_checksums.h"

#include <algorithm>

#include "iosig/base/crc32c.h"

namespace iosig {
namespace {

constexpr std::size_t packed_bytes = 4;

}  // namespace

std::array<std::uint8_t, 4> packed_checksum(std::uint32_t checksum) {
  std::array<std::uint8_t, packed_bytes> packed{};
  for (std::size_t n = 0; n < packed_bytes; ++n) packed[n] = static_cast<std::uint8_t>(checksum >> (8 * n));
  return packed;
}

std::uint32_t DataChecksums::of(std::int64_t block) const {
  std::uint32_t checksum = 0;
  for (std::size_t n = 0; n < packed_bytes; ++n)
    checksum |= std::uint32_t{packed[static_cast<std::size_t>(block) * packed_bytes + n]} << (8 * n);
  return checksum;
}

bool DataChecksums::is_complete() const {
  if (bytes == 0) return packed.empty();
  return bytes > 0 && block_bytes > 0 && packed.size() % packed_bytes == 0 &&
         count() == std::ssize(packed) / static_cast<std::int64_t>(packed_bytes);
}

void LogChecksums::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(checksum_block_bytes - filled_);
    const auto part = bytes.first(std::min(room, bytes.size()));
    last_ = crc32c({reinterpret_cast<const std::uint8_t*>(part.data()), part.size()}, last_);
    filled_ += std::ssize(part);
    bytes = bytes.subspan(part.size());
    if (filled_ < checksum_block_bytes) continue;
    packed_.resize(complete_bytes());
    append_last();
    before_ = joined_crc32c(before_, last_, checksum_block_bytes);
    done_ += filled_;
    filled_ = 0;
    last_ = 0;
  }
}

void LogChecksums::append_last() {
  const auto packed = packed_checksum(last_);
  packed_.insert(packed_.end(), packed.begin(), packed.end());
}

std::size_t LogChecksums::complete_bytes() const {
  return static_cast<std::size_t>(done_ / checksum_block_bytes) * packed_bytes;
}

std::uint32_t LogChecksums::whole() const { return joined_crc32c(before_, last_, static_cast<std::uint64_t>(filled_)); }

DataChecksums LogChecksums::blocks() {
  packed_.resize(complete_bytes());
  if (filled_ > 0) append_last();
  return {bytes(), checksum_block_bytes, packed_};
}

}  // namespace iosig
