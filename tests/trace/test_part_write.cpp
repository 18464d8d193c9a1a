#include <doctest/doctest.h>
#include <sys/stat.h>

#include <memory>

#include "iosig/trace/part_write.h"
#include "part_maker.h"
#include "place.h"

using namespace iosig;
using namespace iosig::trace;
using namespace iosig::trace::test;

namespace {

PartIdentity identity_of(std::uint64_t process, std::int32_t pid) {
  return {.host = "node7",
          .process = process,
          .pid = pid,
          .parent_pid = 1,
          .tid = pid + 1,
          .first = {1000, 1000},
          .realtime_ns = 1'700'000'000'000'001'000};
}

struct Written : Place {
  std::unique_ptr<Packing> packing = std::make_unique<Packing>();

  /// The only part of the directory.
  [[nodiscard]] Part only() const {
    const auto names = names_in(directory);
    REQUIRE(names);
    REQUIRE(names->size() == 1);
    const auto part = read(names->front());
    REQUIRE(part);
    REQUIRE(part->has_value());
    CHECK_FALSE((*part)->fault);
    return **part;
  }
  [[nodiscard]] LivePart live() const {
    auto made = LivePart::make(directory, path, identity_of(9, 42));
    REQUIRE(made);
    return std::move(*made);
  }
  std::uint64_t begin(LivePart& part, std::uint32_t number) const {
    Slot begun = call(number);
    begun.end = 0;
    begun.result = 0;
    return part.begin(begun, *packing);
  }
  void make_calls(LivePart& part, std::uint32_t first, std::uint32_t last) const {
    for (std::uint32_t n = first; n <= last; ++n) part.end(begin(part, n), 64, call(n).end);
  }
  [[nodiscard]] std::uint64_t stored_bytes() const {
    struct stat status {};
    REQUIRE(::stat((path + "/" + only().name).c_str(), &status) == 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
};

bool are_calls(const std::map<std::uint64_t, Slot>& found, std::uint32_t count) {
  if (found.size() != count) return false;
  for (std::uint32_t n = 1; n <= count; ++n)
    if (const Slot wanted = call(n); std::memcmp(&found.at(n), &wanted, sizeof wanted) != 0) return false;
  return true;
}

}  // namespace

TEST_CASE("part writer: past calls are read as they were given, with host, process, rank, names and times") {
  const Written place;
  {
    auto part = PartWriter::make(place.directory, place.path, identity_of(5, 42));
    REQUIRE(part);
    part->add_facts({{"argument", "solver"}, {"program", "/bin/solver"}, {"rank", "3"}, {"size", "8"}});
    part->add_name(1, "/data/a\nb");
    for (std::uint32_t n = 1; n <= 2000; ++n) {
      Slot past = call(n);
      past.path = n == 1 ? 1 : 0;
      past.parent = n % 2 == 0 ? n - 1 : 0;
      if (past.parent != 0) past.end = past.start + 5;
      REQUIRE(part->add(past, 0, *place.packing) == n);
      if (n == 700) REQUIRE(part->flush(*place.packing));
    }
    REQUIRE(part->close(*place.packing));
  }
  const auto trace = Trace::open(place.path);
  REQUIRE(trace);
  REQUIRE(trace->parts().size() == 1);
  CHECK(trace->parts()[0].name == "node7.42.5.1.part");
  CHECK(trace->parts()[0].header.is_closed == 1);
  CHECK(trace->started_ns() == 1'700'000'000'000'001'100);  // the first call: 100 ns after the header's pair
  const auto found = all_of(*trace);
  REQUIRE(found.size() == 2000);
  for (std::uint32_t n = 1; n <= 2000; ++n) {
    const Access& access = found[n - 1];
    REQUIRE(access.id == n);
    REQUIRE(access.parent == (n % 2 == 0 ? n - 1 : 0));
    REQUIRE(access.path == "/data/a\nb");
    REQUIRE(access.offset == 64 * n);
    REQUIRE(access.start_ns == 100 * n - 100);
    REQUIRE(access.end_ns == access.start_ns + (n % 2 == 0 ? 5 : 10));
  }
  const Process& process = *found[0].process;
  CHECK(process.host == "node7");
  CHECK(process.pid == 42);
  CHECK(process.parent_pid == 1);
  CHECK(process.rank == 3);
  CHECK(process.ranks == 8);
  CHECK(process.program == "/bin/solver");
  CHECK(found[0].tid == 43);
}

TEST_CASE("part writer: ids that are given may come in any order") {
  const Written place;
  auto part = PartWriter::make(place.directory, place.path, identity_of(5, 42));
  REQUIRE(part);
  // A tracer that writes calls when they end: the child, number 2, before its parent.
  for (const std::uint32_t n : {2U, 1U, 3U}) {
    Slot past = call(n);
    past.parent = n == 2 ? 1 : 0;
    if (n == 1) past.end = past.start + 150;
    REQUIRE(part->add(past, n, *place.packing) == n);
  }
  REQUIRE(part->close(*place.packing));
  const auto found = all_of(*Trace::open(place.path));
  REQUIRE(found.size() == 3);
  CHECK(found[1].id == 2);
  CHECK(found[1].parent == 1);
}

TEST_CASE("part writer: a million calls take no more than a few bytes each, and no descriptor") {
  const Written place;
  auto part = PartWriter::make(place.directory, place.path, identity_of(5, 42));
  REQUIRE(part);
  const Fd next_number(::dup(0));
  for (std::uint32_t n = 1; n <= 1'000'000; ++n) (void)part->add(call(n), 0, *place.packing);
  CHECK(Fd(::dup(0)).get() == next_number.get() + 1);
  REQUIRE(part->close(*place.packing));
  CHECK(place.stored_bytes() < 2'000'000);
  std::uint64_t calls = 0;
  for (const BlockPlace& block : place.only().blocks) calls += block.calls;
  CHECK(calls == 1'000'000);
}

TEST_CASE("part writer: no host, however spelled, leads out of the directory, and no file is replaced") {
  const Written place;
  PartIdentity identity = identity_of(5, 42);
  identity.host = "../../etc";
  REQUIRE(PartWriter::make(place.directory, place.path, identity));
  CHECK(place.only().name == ".._.._etc.42.5.1.part");
  const auto again = PartWriter::make(place.directory, place.path, identity);
  REQUIRE_FALSE(again);
  CHECK(again.error().kind == ErrorKind::system);
}

TEST_CASE("live part: each call is in the file when it has begun, and when it has ended, without a close") {
  const Written place;
  LivePart part = place.live();
  part.add_name(1, "/data/a");
  for (std::uint32_t n = 1; n <= 1300; ++n) {
    const std::uint64_t id = place.begin(part, n);
    REQUIRE(id == n);
    const bool is_looked_at = n < 5 || n % 64 < 2 || n % 576 < 2;
    if (is_looked_at) {
      const auto found = place.calls_of(place.only());
      REQUIRE(found.size() == n);
      REQUIRE(found.at(n).end == 0);
    }
    part.end(id, 64, call(n).end);
    if (is_looked_at) REQUIRE(are_calls(place.calls_of(place.only()), n));
  }
  const Part found = place.only();
  CHECK(found.header.is_closed == 0);
  CHECK(found.names == std::vector<std::pair<std::uint32_t, std::string>>{{1, "/data/a"}});
}

TEST_CASE("live part: calls that take long stay open while later ones are packed") {
  const Written place;
  LivePart part = place.live();
  const std::uint64_t first = place.begin(part, 1), second = place.begin(part, 2);
  place.make_calls(part, 3, 2000);
  auto found = place.calls_of(place.only());
  REQUIRE(found.size() == 2000);
  CHECK(found.at(1).end == 0);
  CHECK(found.at(2).end == 0);
  part.open_call(first).offset = 64;  // what the call found out
  part.end(second, 64, call(2).end);
  part.end(first, 64, call(1).end);
  CHECK(are_calls(place.calls_of(place.only()), 2000));
}

TEST_CASE("live part: calls beyond the slots of open ones are counted as lost") {
  const Written place;
  LivePart part = place.live();
  for (std::uint32_t n = 1; n <= max_slots; ++n) REQUIRE(place.begin(part, n) == n);
  CHECK(place.begin(part, max_slots + 1) == 0);
  CHECK(place.only().header.lost_calls == 1);
  CHECK(place.calls_of(place.only()).size() == max_slots);
}

TEST_CASE("live part: it goes on after it was unmapped, but never in another file of its name") {
  const Written place;
  LivePart part = place.live();
  place.make_calls(part, 1, 100);
  part.unmap();
  CHECK_FALSE(part.is_mapped());
  REQUIRE(part.map());
  place.make_calls(part, 101, 800);
  CHECK(are_calls(place.calls_of(place.only()), 800));
  part.unmap();
  const std::string name = place.only().name;
  std::filesystem::rename(place.path + "/" + name, place.path + "/" + name + ".old");
  place.put(name, Bytes(8, std::byte{'x'}));
  CHECK_FALSE(part.map());
}

TEST_CASE("live part: a closed one takes two pages if it had few calls, and its blocks and a page if it had many") {
  for (const std::uint32_t count : {3U, 64U, 65U, 576U, 1000U}) {
    const Written place;
    LivePart part = place.live();
    part.add_name(1, "/data/a");
    place.make_calls(part, 1, count);
    part.close(*place.packing);
    CHECK(place.only().header.is_closed == 1);
    CHECK(are_calls(place.calls_of(place.only()), count));
    CHECK(place.stored_bytes() <= 4 * page_bytes);
  }
}

TEST_CASE("live part: each thread has its own calls when another goes on with its part") {
  const Written place;
  LivePart part = place.live();
  place.make_calls(part, 1, 10);
  part.pass_to(99, *place.packing);
  place.make_calls(part, 11, 12);
  const auto trace = Trace::open(place.path);
  REQUIRE(trace);
  const auto found = all_of(*trace);
  REQUIRE(found.size() == 12);
  for (std::uint32_t n = 1; n <= 12; ++n) CHECK(found[n - 1].tid == (n <= 10 ? 43 : 99));
}

TEST_CASE("live part: names that are longer than a page, and facts, are kept") {
  const Written place;
  LivePart part = place.live();
  const std::string path(9000, 'p');
  part.add_facts({{"argument", "./a"}, {"argument", "b=c"}, {"program", "/bin/a"}});
  part.add_name(1, path);
  part.add_name(2, "/short");
  const Part found = place.only();
  REQUIRE(found.names.size() == 2);
  CHECK(found.names[0].second == path);
  CHECK(found.facts == std::vector<std::pair<std::string, std::string>>{
                           {"program", "/bin/a"}, {"argument", "./a"}, {"argument", "b=c"}});
}
