#include "iosig/trace/part_bytes.h"

#include <algorithm>
#include <cstring>

#include "iosig/base/crc32c.h"

namespace iosig::trace {
namespace {

std::uint32_t checksum_before(const void* bytes, std::size_t count, std::uint32_t before = 0) {
  return crc32c({static_cast<const std::uint8_t*>(bytes), count}, before);
}

}  // namespace

[[gnu::hot]] PartHeader part_header(const PartIdentity& identity) noexcept {
  PartHeader header{};
  std::ranges::copy(part_magic, header.magic);
  header.version = part_version;
  header.clock = identity.clock;
  header.process = identity.process;
  header.pid = identity.pid;
  header.parent_pid = identity.parent_pid;
  header.first = header.latest = identity.first;
  header.realtime_ns = identity.realtime_ns;
  header.boot = identity.boot;
  std::ranges::copy(identity.host.substr(0, sizeof header.host - 1), header.host);
  header.checksum = checksum_before(&header, offsetof(PartHeader, checksum));
  header.tid = identity.tid;
  return header;
}

void put_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest, std::byte* out) noexcept {
  const std::size_t bytes = head.size() + rest.size();
  std::byte* const payload = out + sizeof(ChunkHeader);
  if (bytes > 0) std::memset(out + chunk_bytes(bytes) - 8, 0, 8);
  if (!head.empty()) std::memcpy(payload, head.data(), head.size());
  if (!rest.empty()) std::memcpy(payload + head.size(), rest.data(), rest.size());
  ChunkHeader header{chunk_magic, static_cast<std::uint16_t>(kind), 0, static_cast<std::uint32_t>(bytes), 0};
  header.checksum = checksum_before(&header, offsetof(ChunkHeader, checksum));
  header.checksum = checksum_before(payload, bytes, header.checksum);
  std::memcpy(out, &header, sizeof header);
}

std::uint32_t chunks_in(std::span<const std::byte> bytes) noexcept {
  std::uint32_t count = 0;
  for (ChunkHeader header{}; bytes.size() >= sizeof header; ++count) {
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != chunk_magic || chunk_bytes(header.bytes) > bytes.size()) break;
    bytes = bytes.subspan(chunk_bytes(header.bytes));
  }
  return count;
}

[[gnu::hot]] std::uint64_t boot_number(std::string_view boot_id) noexcept {
  std::uint64_t boot = 0;
  int digits = 0;
  for (const char each : boot_id) {
    if (digits == 16 || each == '\0') break;
    if (each == '-') continue;
    boot = boot << 4 | static_cast<std::uint64_t>(each <= '9' ? each - '0' : each - 'a' + 10);
    ++digits;
  }
  return boot;
}

}  // namespace iosig::trace
