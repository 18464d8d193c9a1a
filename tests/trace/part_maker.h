// Makes parts of traces for tests, as the recorder writes them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/crc32c.h"
#include "iosig/trace/pack.h"

namespace iosig::trace::test {

using Bytes = std::vector<std::byte>;

inline void append(Bytes& bytes, const void* data, std::size_t count) {
  const auto* const first = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), first, first + count);
}

inline std::uint32_t crc_of(const Bytes& bytes, std::size_t first, std::size_t count, std::uint32_t before = 0) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()) + first, count}, before);
}

inline Bytes chunk(ChunkKind kind, std::string_view payload) {
  ChunkHeader header{chunk_magic, static_cast<std::uint16_t>(kind), 0, static_cast<std::uint32_t>(payload.size()), 0};
  Bytes bytes;
  append(bytes, &header, sizeof header);
  append(bytes, payload.data(), payload.size());
  header.checksum = crc_of(bytes, sizeof header, payload.size(), crc_of(bytes, 0, offsetof(ChunkHeader, checksum)));
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  return bytes;
}

inline Bytes name_chunk(std::uint32_t id, std::string_view path) {
  std::string payload(reinterpret_cast<const char*>(&id), sizeof id);
  payload += path;
  return chunk(ChunkKind::name, payload);
}

inline Bytes block_chunk(const std::vector<Slot>& slots, std::int32_t tid = 77) {
  const auto memory = std::make_unique<PackMemory>();
  Bytes bytes(max_packed_bytes);
  bytes.resize(pack(slots, tid, 0, {slots.back().end, slots.back().end}, {}, *memory, bytes));
  return bytes;
}

inline PartHeader header_of(std::uint64_t process, std::int32_t pid) {
  PartHeader header{};
  std::memcpy(header.magic, part_magic, sizeof part_magic);
  header.version = part_version;
  header.clock = ClockKind::nanoseconds;
  header.process = process;
  header.pid = pid;
  header.first = header.latest = {1000, 1000};
  header.realtime_ns = 1'700'000'000'000'001'000;
  header.boot = 1;
  std::memcpy(header.host, "node1", 5);
  header.checksum = crc32c({reinterpret_cast<const std::uint8_t*>(&header), offsetof(PartHeader, checksum)});
  header.slot_capacity = first_slots;
  header.tid = 77;
  header.is_closed = 1;
  return header;
}

/// `slots`: at most first_slots. `pending`: chunks.
inline Bytes part(const PartHeader& header, const std::vector<Slot>& slots, const std::vector<Bytes>& chunks,
                  const Bytes& pending = {}) {
  Bytes bytes(chunks_offset);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(pending.begin(), pending.end(), bytes.begin() + pending_offset);
  if (!slots.empty()) std::memcpy(bytes.data() + slots_offset, slots.data(), slots.size() * sizeof(Slot));
  for (const Bytes& each : chunks) append(bytes, each.data(), each.size());
  return bytes;
}

/// A call that took 10 ticks from 1000 + 100 id on, on file 1.
inline Slot call(std::uint32_t id, Call what = Call::pwrite) {
  Slot slot{};
  slot.start = 1000 + 100 * id;
  slot.end = slot.start + 10;
  slot.offset = 64 * id;
  slot.length = slot.result = 64;
  slot.id = id;
  slot.file = 1;
  slot.fd = 3;
  slot.call = what;
  return slot;
}

inline std::vector<Slot> calls(std::uint32_t first, std::uint32_t last) {
  std::vector<Slot> made;
  for (std::uint32_t id = first; id <= last; ++id) made.push_back(call(id));
  return made;
}

}  // namespace iosig::trace::test
