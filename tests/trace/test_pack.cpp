#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

#include "iosig/base/crc32c.h"
#include "iosig/trace/pack.h"
#include "iosig/trace/unpack.h"

using namespace iosig::trace;

namespace {

bool is_equal(const Slot& a, const Slot& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

std::vector<std::byte> packed(const std::vector<Slot>& slots, PackOptions options = {}, std::uint64_t base = 0) {
  static const auto memory = std::make_unique<PackMemory>();
  std::vector<std::byte> out(max_packed_bytes);
  out.resize(pack(slots, 7, base, {1, 2}, options, *memory, out));
  return out;
}

std::span<const std::byte> payload_of(const std::vector<std::byte>& chunk) {
  ChunkHeader header;
  REQUIRE(chunk.size() >= sizeof header);
  std::memcpy(&header, chunk.data(), sizeof header);
  REQUIRE(header.magic == chunk_magic);
  REQUIRE(chunk.size() == sizeof header + (header.bytes + 7) / 8 * 8);
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(chunk.data()), chunk.size());
  REQUIRE(header.checksum == iosig::crc32c(bytes.subspan(sizeof header, header.bytes), iosig::crc32c(bytes.first(12))));
  return std::span(chunk).subspan(sizeof header, header.bytes);
}

void check_round_trip(const std::vector<Slot>& slots, std::uint64_t base = 0) {
  const auto chunk = packed(slots, {}, base);
  const auto again = unpack(payload_of(chunk));
  REQUIRE(again);
  REQUIRE(again->size() == slots.size());
  for (std::size_t n = 0; n < slots.size(); ++n) REQUIRE(is_equal((*again)[n], slots[n]));
}

/// Returns bytes per call, after a round trip.
double bytes_per_call(const std::vector<Slot>& slots, PackOptions options = {}) {
  if (options.quantum_ticks < 2) check_round_trip(slots);
  return static_cast<double>(packed(slots, options).size()) / static_cast<double>(slots.size());
}

using Random = std::mt19937_64;

/// A stream of `count` calls on one file, with times like those of a processor whose counter steps by 26 ticks of
/// 0.385 ns each: a gap of about 50 ns, and a duration with a long tail.
std::vector<Slot> stream(std::size_t count, Call call, double duration_ns,
                         const std::function<std::int64_t(int)>& offset, std::int64_t length,
                         double spread_of_log = 0.1) {
  Random random(1);
  std::lognormal_distribution<double> spread(0, spread_of_log), rare(0, 1);
  std::vector<Slot> slots;
  std::uint64_t now = 26'000'000'000'000;
  const auto ticks = [](double ns) { return static_cast<std::uint64_t>(ns * 2.6 / 26) * 26; };
  for (std::size_t n = 0; n < count; ++n) {
    Slot slot{};
    now += ticks(50 * spread(random));
    slot.start = now;
    now += ticks(duration_ns * (n % 50 == 0 ? 1 + rare(random) : spread(random)));
    slot.end = now;
    slot.offset = offset(static_cast<int>(n));
    slot.length = slot.result = length;
    slot.id = static_cast<std::uint32_t>(n + 1);
    slot.file = 1;
    slot.fd = 3;
    slot.call = call;
    slots.push_back(slot);
  }
  return slots;
}

std::uint64_t extreme(Random& random) {
  static constexpr std::uint64_t some[] = {0, 1, UINT64_MAX, 0x8000000000000000U, 0x7fffffffffffffffU, 4096, 1000};
  switch (random() % 4) {
    case 0: return some[random() % std::size(some)];
    case 1: return some[random() % std::size(some)] + random() % 9 - 4;
    case 2: return random() >> random() % 64;
    default: return random();
  }
}

}  // namespace

TEST_CASE("pack: whatever the values, they come back, within the promised room") {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Slot> slots(round % 10 == 0 ? max_slots : 1 + random() % 70);
    const std::uint64_t fields = random();  // which of them vary; each in one of a few ways
    const std::uint64_t few = 1 + random() % 5;
    for (std::size_t n = 0; n < slots.size(); ++n) {
      const auto value = [&](int field) -> std::uint64_t {
        if ((fields >> field & 1) == 0) return fields >> 32 & 3;
        switch (fields >> (16 + field) & 3) {
          case 0: return extreme(random);
          case 1: return n * few;
          case 2: return random() % few;
          default: return random() % 16 == 0 ? extreme(random) : 26 * (random() % 100);
        }
      };
      Slot& slot = slots[n];
      slot.start = value(0);
      slot.end = value(1);
      slot.offset = static_cast<std::int64_t>(value(2));
      slot.length = static_cast<std::int64_t>(value(3));
      slot.result = static_cast<std::int64_t>(value(4));
      slot.id = static_cast<std::uint32_t>(value(5));
      slot.parent = static_cast<std::uint32_t>(value(6));
      slot.file = static_cast<std::uint32_t>(value(7));
      slot.fd = static_cast<std::int32_t>(value(8));
      slot.path = static_cast<std::uint32_t>(value(9));
      slot.call = static_cast<Call>(value(10) & 0xffff);
      slot.flags = static_cast<std::uint16_t>(value(11) & slot_flag_mask);
    }
    check_round_trip(slots);
  }
}

TEST_CASE("pack: random 64-byte slots take no more than 70 bytes each") {
  Random random(6);
  std::vector<Slot> slots(max_slots);
  for (Slot& slot : slots) {
    std::uint64_t words[8];
    for (std::uint64_t& word : words) word = random();
    std::memcpy(&slot, words, sizeof slot);
    slot.flags &= slot_flag_mask;
  }
  check_round_trip(slots);
  CHECK(packed(slots).size() < 70 * max_slots);
  CHECK(packed(slots).size() <= max_packed_bytes);
}

TEST_CASE("pack: ids beyond 32 bits are told apart by the base") {
  auto slots = stream(
      10, Call::pread, 200, [](int n) { return n * 64; }, 64);
  const std::uint64_t base = 0x1'ffff'fffa;
  for (std::size_t n = 0; n < slots.size(); ++n) slots[n].id = static_cast<std::uint32_t>(base + n);
  const auto chunk = packed(slots, {}, base - 5);
  const auto header = block_header(payload_of(chunk));
  REQUIRE(header);
  CHECK(header->first_id == base);
  CHECK(header->last_id == base + 9);
  CHECK(full_id(slots[9].id, header->first_id) == base + 9);
  check_round_trip(slots, base - 5);
}

TEST_CASE("pack: regular and random streams take few bytes a call") {
  Random random(2);
  const auto regular = stream(
      512, Call::pwrite, 300, [](int n) { return std::int64_t{n} * 64; }, 64);
  CHECK(bytes_per_call(regular) < 2.5);
  const auto device = stream(
      512, Call::pread, 80'000, [](int n) { return std::int64_t{n} * 4096; }, 4096, 0.05);
  CHECK(bytes_per_call(device) < 3.5);
  const auto in_64MB = stream(
      512, Call::pread, 700, [&](int) { return static_cast<std::int64_t>(random() % (1 << 14)) * 4096; }, 4096);
  CHECK(bytes_per_call(in_64MB) < 4);
  const auto in_1TB = stream(
      512, Call::pread, 700, [&](int) { return static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40)); }, 4096);
  CHECK(bytes_per_call(in_1TB) < 6.5);
  const PackOptions microseconds{.quantum_ticks = 2600};
  CHECK(bytes_per_call(regular, microseconds) < 0.5);
  CHECK(bytes_per_call(device, microseconds) < 1.2);
}

TEST_CASE("pack: nested calls and several files at a time stay small") {
  // fread() of 512 bytes from a buffer that read(2) fills each 8 calls; two files in turn.
  Random random(3);
  std::vector<Slot> slots;
  std::uint64_t now = 1'000'000'000;
  std::uint32_t id = 0;
  const auto pass = [&](unsigned least) { now += 26 * (least + random() % least); };
  for (int n = 0; slots.size() < 500; ++n)
    for (std::uint32_t file = 1; file <= 2; ++file) {
      pass(4);
      Slot outer{};
      outer.start = now;
      outer.id = ++id;
      outer.file = file;
      outer.fd = static_cast<std::int32_t>(2 + file);
      outer.offset = n * 512;
      outer.length = outer.result = 512;
      outer.call = Call::fread;
      pass(2);
      if (n % 8 == 0) {
        Slot inner = outer;
        inner.id = ++id;
        inner.parent = outer.id;
        inner.call = Call::read;
        inner.start = now;
        inner.offset = n * 512;
        inner.length = inner.result = 4096;
        pass(30);
        inner.end = now;
        slots.push_back(inner);
      }
      pass(4);
      outer.end = now;
      slots.push_back(outer);
    }
  CHECK(bytes_per_call(slots) < 2.5);
  std::ranges::sort(slots, {}, &Slot::id);  // as the recorder has them: in the order of begins
  CHECK(bytes_per_call(slots) < 2.5);
}

TEST_CASE("pack: an open, a read and a close for each of many files stay small") {
  Random random(4);
  std::vector<Slot> slots;
  std::uint64_t now = 1'000'000'000;
  for (std::uint32_t file = 1; file <= 170; ++file)
    for (const Call call : {Call::open, Call::read, Call::close}) {
      Slot slot{};
      slot.start = now += 26 * (5 + random() % 8);
      slot.end = now += 26 * (30 + random() % 60);
      slot.id = static_cast<std::uint32_t>(slots.size() + 1);
      slot.file = file;
      slot.fd = 3;
      slot.call = call;
      slot.path = call == Call::open ? file : 0;
      slot.offset = call == Call::read ? 0 : no_offset;
      slot.length = call == Call::read ? 1000 : call == Call::open ? 0 : no_length;
      slot.result = call == Call::read ? 1000 : call == Call::open ? 3 : 0;
      slots.push_back(slot);
    }
  CHECK(bytes_per_call(slots) < 3.5);
}

TEST_CASE("pack: times in microseconds are off by less than one, and no call ends before it starts") {
  const auto slots = stream(
      512, Call::pwrite, 1500, [](int n) { return std::int64_t{n} * 64; }, 64);
  const auto rounded = unpack(payload_of(packed(slots, {.quantum_ticks = 2600})));
  REQUIRE(rounded);
  for (std::size_t n = 0; n < slots.size(); ++n) {
    const Slot& slot = (*rounded)[n];
    REQUIRE(slot.start % 2600 == 0);
    REQUIRE(slots[n].start - slot.start < 2600);
    REQUIRE(slot.end >= slot.start);
    const auto error = static_cast<std::int64_t>((slot.end - slot.start) - (slots[n].end - slots[n].start));
    REQUIRE(std::abs(error) <= 1300);
    REQUIRE(slot.offset == slots[n].offset);
  }
}

TEST_CASE("unpack: every prefix and every changed byte is a refusal or another block, never more") {
  auto slots = stream(
      40, Call::pwrite, 300, [](int n) { return std::int64_t{n} * n * 64; }, 64);
  slots[7].result = -5;
  const auto chunk = packed(slots);
  const auto payload = payload_of(chunk);
  for (std::size_t size = 0; size < payload.size(); ++size) REQUIRE_FALSE(unpack(payload.first(size)));
  std::vector<std::byte> changed(payload.begin(), payload.end());
  for (std::byte& byte : changed)
    for (unsigned bits = 1; bits < 256; ++bits) {
      byte ^= static_cast<std::byte>(bits);
      if (const auto other = unpack(changed)) REQUIRE(other->size() <= max_slots);
      byte ^= static_cast<std::byte>(bits);
    }
}
