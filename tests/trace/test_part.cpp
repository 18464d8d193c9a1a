#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "iosig/trace/export.h"
#include "iosig/trace/part.h"
#include "iosig/trace/summary.h"
#include "part_maker.h"
#include "place.h"

using namespace iosig;
using namespace iosig::trace;
using namespace iosig::trace::test;

namespace {

/// A part with 60 calls in three blocks, 10 in slots, one in flight, names before and in the pending room.
Bytes some_part() {
  std::vector<Slot> slots = calls(61, 71);
  slots.back().end = 0;
  const std::vector<Bytes> chunks{chunk(ChunkKind::process, std::string_view("program=/bin/a\0rank=3\0", 22)),
                                  name_chunk(1, "/data/a"), block_chunk(calls(1, 20)), block_chunk(calls(21, 40)),
                                  block_chunk(calls(41, 60))};
  PartHeader header = header_of(9, 42);
  header.chunks_end = chunks_offset;
  for (const Bytes& each : chunks) header.chunks_end += each.size();
  return part(header, slots, chunks, name_chunk(2, "/data/b"));
}

bool is_same(const Slot& a, const Slot& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("part: calls of blocks and slots are read once each, with names and facts") {
  const Place place;
  place.put("a.part", some_part());
  const auto part = place.read("a.part");
  REQUIRE(part);
  REQUIRE(part->has_value());
  CHECK_FALSE((*part)->fault);
  CHECK((*part)->host == "node1");
  CHECK((*part)->names == std::vector<std::pair<std::uint32_t, std::string>>{{1, "/data/a"}, {2, "/data/b"}});
  CHECK((*part)->facts == std::vector<std::pair<std::string, std::string>>{{"program", "/bin/a"}, {"rank", "3"}});
  const auto found = place.calls_of(**part);
  REQUIRE(found.size() == 71);
  for (std::uint32_t id = 1; id <= 70; ++id) REQUIRE(is_same(found.at(id), call(id)));
  CHECK(found.at(71).end == 0);
}

TEST_CASE("part: after a kill between appending and emptying, slots that are packed already are dropped") {
  const Place place;
  place.put("a.part", part(header_of(9, 42), calls(1, 30), {block_chunk(calls(1, 30))}));
  CHECK(place.calls_of(**place.read("a.part")).size() == 30);
  // A call in flight may be in two slots.
  auto slots = calls(1, 4);
  slots[3] = slots[1];
  slots[1].end = 0;
  place.put("b.part", part(header_of(9, 42), slots, {}));
  const auto found = place.calls_of(**place.read("b.part"));
  CHECK(found.size() == 3);
  CHECK(found.at(2).end == call(2).end);
}

TEST_CASE("part: every prefix is a sound prefix, nothing yet, or a refusal that names the file") {
  const Place place;
  const Bytes whole = some_part();
  const auto complete = place.calls_of([&] {
    place.put("whole.part", whole);
    return **place.read("whole.part");
  }());
  std::size_t before = 0;
  for (std::size_t size = 0; size <= whole.size();
       size += size < slots_offset + 13 * 64 || size >= chunks_offset ? 1 : 64) {
    place.put("a.part", std::span(whole).first(size));
    const auto part = place.read("a.part");
    if (!part) {
      REQUIRE(size < sizeof(PartHeader));
      REQUIRE(part.error().message.starts_with("a.part: "));
      continue;
    }
    if (!*part) continue;
    const auto found = place.calls_of(**part);
    for (const auto& [id, slot] : found) REQUIRE(is_same(slot, complete.at(id)));
    REQUIRE(found.size() >= before);  // more bytes never show fewer calls
    before = found.size();
    if ((*part)->fault) {
      REQUIRE(((*part)->fault->is_cut || (*part)->fault->what.ends_with(" bytes of blocks are missing")));
      REQUIRE((*part)->fault->at <= size);
    } else {
      REQUIRE(size == whole.size());
    }
  }
  CHECK(before == 71);
}

TEST_CASE("part: every changed byte outside the slots is a sound prefix or a refusal") {
  const Place place;
  const Bytes whole = some_part();
  place.put("a.part", whole);
  const auto complete = place.calls_of(**place.read("a.part"));
  const Fd file(::open((place.path + "/a.part").c_str(), O_RDWR | O_CLOEXEC));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= 700 && at < chunks_offset) continue;  // slots, and pending room that is empty
    for (const unsigned bits : {0x01U, 0x80U, 0xffU}) {
      const std::byte changed = whole[at] ^ static_cast<std::byte>(bits);
      REQUIRE(::pwrite(file.get(), &changed, 1, static_cast<off_t>(at)) == 1);
      const auto part = place.read("a.part");
      if (part && *part)
        for (const auto& [id, slot] : place.calls_of(**part)) REQUIRE(is_same(slot, complete.at(id)));
      if (at >= chunks_offset) {
        REQUIRE(part);
        // A changed byte of padding harms nothing.
        if ((*part)->fault) REQUIRE((*part)->fault->at <= at);
      }
      if (at < offsetof(PartHeader, slot_capacity)) REQUIRE_FALSE(part);
    }
    REQUIRE(::pwrite(file.get(), &whole[at], 1, static_cast<off_t>(at)) == 1);
  }
}

TEST_CASE("part: a slot with impossible values is left out, and said") {
  const Place place;
  auto slots = calls(1, 3);
  slots[1].end = slots[1].start - 1;
  place.put("a.part", part(header_of(9, 42), slots, {}));
  const auto read = place.read("a.part");
  CHECK(place.calls_of(**read).size() == 2);
  REQUIRE((*read)->fault);
  CHECK((*read)->fault->at == slots_offset + sizeof(Slot));
}

TEST_CASE("part: a changed byte in a slot of a call that has ended leaves that call out") {
  const Place place;
  auto slots = calls(1, 3);
  slots[1].flags = derived_offset;
  std::map<std::uint32_t, Slot> wanted;
  for (Slot& slot : slots) {
    wanted[slot.id] = slot;
    slot.flags = checked_flags(slot, slot.end, slot.flags);
  }
  const Bytes whole = part(header_of(9, 42), slots, {});
  for (std::size_t at = slots_offset + sizeof(Slot); at < slots_offset + 2 * sizeof(Slot); ++at)
    for (unsigned bits = 0; bits < 256; bits += bits < 16 ? 1 : 15) {
      Bytes changed = whole;
      changed[at] ^= static_cast<std::byte>(bits);
      place.put("a.part", changed);
      const auto read = place.read("a.part");
      // Without its end it is in flight, without its start empty; without any check an older trace's.
      for (const auto& [id, slot] : place.calls_of(**read))
        REQUIRE((is_same(slot, wanted[id]) || slot.end == 0 || at % sizeof(Slot) >= offsetof(Slot, flags)));
      if (bits == 0) REQUIRE(place.calls_of(**read).size() == 3);
    }
}

TEST_CASE("part: a call in flight that began before its part is damage") {
  const Place place;
  auto slots = calls(1, 2);
  slots[1].start = 999;  // the part was made at 1000
  slots[1].end = 0;
  place.put("a.part", part(header_of(9, 42), slots, {}));
  const auto read = place.read("a.part");
  CHECK(place.calls_of(**read).size() == 1);
  REQUIRE((*read)->fault);
  CHECK((*read)->fault->at == slots_offset + sizeof(Slot));
}

TEST_CASE("part: other versions, other files, symbolic links and FIFOs are refused") {
  const Place place;
  PartHeader header = header_of(9, 42);
  header.version = 3;
  place.put("new.part", part(header, {}, {}));
  CHECK(place.read("new.part").error().message ==
        "new.part: version 3 of the trace format; this iosig reads versions up to 2");
  header = header_of(9, 42);
  header.version = 1;
  header.checksum = crc32c({reinterpret_cast<const std::uint8_t*>(&header), offsetof(PartHeader, checksum)});
  place.put("old.part", part(header, calls(1, 3), {}));
  CHECK(place.read("old.part").has_value());
  place.put("text.part", Bytes(100, std::byte{'x'}));
  CHECK(place.read("text.part").error().kind == ErrorKind::bad_input);
  place.put("real", some_part());
  REQUIRE(::symlink("real", (place.path + "/link.part").c_str()) == 0);
  CHECK(place.read("link.part").error().kind == ErrorKind::system);
  REQUIRE(::mkfifo((place.path + "/fifo.part").c_str(), 0600) == 0);
  CHECK(place.read("fifo.part").error().kind == ErrorKind::system);
}

TEST_CASE("trace: accesses of all parts come in the order of their starts, on one clock") {
  const Place place;
  Slot outer = call(1, Call::fwrite), inner = call(2, Call::write);
  outer.end = inner.end + 5;  // 1100 to 1215
  inner.parent = 1;
  outer.path = 1;
  place.put("a.part", part(header_of(9, 42), {outer, inner},
                           {name_chunk(1, "/data/a"), chunk(ChunkKind::process, std::string_view("rank=3\0", 7))}));
  PartHeader other = header_of(10, 43);
  other.latest = {1150, 1150};
  auto later = calls(1, 40);
  for (Slot& slot : later) slot.start += 20, slot.end += 20;
  place.put("b.part",
            part(other, {},
                 {block_chunk({later.begin(), later.begin() + 20}), block_chunk({later.begin() + 20, later.end()})}));
  const auto trace = Trace::open(place.path);
  REQUIRE(trace);
  const auto found = all_of(*trace);
  REQUIRE(found.size() == 42);
  CHECK(std::ranges::is_sorted(found, {}, &Access::start_ns));
  CHECK(trace->started_ns() == 1'700'000'000'000'001'100);
  CHECK(found[0].start_ns == 0);
  CHECK(found[0].end_ns == 115);
  CHECK(found[1].start_ns == 20);  // the other process's first
  CHECK(found[2].parent == found[0].id);
  CHECK(found[2].path == "/data/a");  // the file's, from the call that names it
  CHECK(found[2].process->rank == 3);
  CHECK(found[1].id != found[0].id);
  std::string line;
  append_csv(found[2], line);
  CHECK(line == "2,1,node1,42,77,3,posix,write,/data/a,3,128,64,100,110,64,\n");

  const auto posix = all_of(*trace, {.layer = Layer::posix, .files = "*/a"});
  CHECK(posix.size() == 1);

  const auto summary = summary_of(*trace);
  REQUIRE(summary);
  const CallTotals& stdio = summary->layers[static_cast<std::size_t>(Layer::stdio)];
  CHECK(stdio.inclusive_ns == 115);
  CHECK(stdio.exclusive_ns == 105);  // without the write(2) of 10 ns
  CHECK(summary->processes.size() == 2);
  CHECK(summary->files.at("/data/a").written_bytes == 64);  // once, not by each layer
}

TEST_CASE("trace: a path is quoted in CSV where it must be, and keeps its bytes") {
  Process process;
  process.host = "n";
  Access access;
  access.process = &process;
  access.call = Call::open;
  access.path = "a,\"b\"\n\xff";
  std::string line;
  append_csv(access, line);
  CHECK(line == "0,0,n,0,0,,posix,open,\"a,\"\"b\"\"\n\xff\",,,,0,0,0,\n");
}

TEST_CASE("trace: the rate of the clock comes from the trace; a manifest's reading stands in for a second one") {
  const Place place;
  PartHeader header = header_of(9, 42);
  header.clock = ClockKind::tsc;  // 3 ticks are a nanosecond
  header.first = {3000, 1000};
  header.latest = {};
  header.checksum = crc32c({reinterpret_cast<const std::uint8_t*>(&header), offsetof(PartHeader, checksum)});
  Slot only = call(1);
  only.start = 6000, only.end = 9000;
  place.put("a.part", part(header, {only}, {}));
  CHECK(Trace::open(place.path)->hosts_without_clock().size() == 1);
  const std::string manifest = R"({"clock": {"boot": 1, "ticks": 1500, "monotonic_ns": 500}})";
  const auto* const bytes = reinterpret_cast<const std::byte*>(manifest.data());
  place.put("manifest.json", {bytes, manifest.size()});
  const auto trace = Trace::open(place.path);
  REQUIRE(trace);
  CHECK(trace->hosts_without_clock().empty());
  CHECK(all_of(*trace).front().end_ns == 1000);
}

TEST_CASE("trace: an unreadable part is left out; a directory without parts is refused") {
  const Place place;
  CHECK(Trace::open(place.path).error().kind == ErrorKind::bad_input);
  place.put("a.part", some_part());
  place.put("b.part", Bytes(100, std::byte{'x'}));
  const auto trace = Trace::open(place.path);
  REQUIRE(trace);
  CHECK(trace->unreadable().size() == 1);
  CHECK(all_of(*trace).size() == 71);
  CHECK(all_of(*trace).back().is_in_flight);
}
