#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "iosig/trace/collectives.h"
#include "part_maker.h"
#include "place.h"

using namespace iosig;
using namespace iosig::trace;
using namespace iosig::trace::test;

namespace {

Slot waiting(std::uint32_t id, Call call, std::uint64_t start, std::uint64_t end, std::int64_t length = no_length) {
  Slot slot{};
  slot.id = id;
  slot.call = call;
  slot.start = start;
  slot.end = end;
  slot.offset = no_offset;
  slot.length = length;
  slot.fd = -1;
  slot.path = call == Call::MPI_Barrier ? 0 : 1;
  return slot;
}

Bytes rank_part(int rank, const std::vector<Slot>& slots, std::uint64_t lost_calls = 0, bool ends = true) {
  PartHeader header = header_of(static_cast<std::uint64_t>(9 + rank), 42 + rank);
  header.lost_calls = lost_calls;
  header.is_closed = ends ? 1 : 0;
  std::string facts = "rank=" + std::to_string(rank);
  facts += std::string(1, '\0') + "size=2" + std::string(1, '\0');
  return part(header, slots, {chunk(ChunkKind::process, facts), name_chunk(1, "/shared")});
}

std::vector<CollectiveCall> found_in(const Place& place) {
  const auto traces = open_traces(std::vector{place.path});
  REQUIRE(traces);
  std::vector<Error> faults;
  auto found = collective_calls(*traces, faults);
  REQUIRE(faults.empty());
  for (CollectiveCall& each : found) each.path = {};  // of the trace, which ends here
  return found;
}

}  // namespace

TEST_CASE("collectives: the n-th barrier of all ranks is one call; those of fewer ranks are left out") {
  const Place place;
  place.put("a.0.9.1.part", rank_part(0, {waiting(1, Call::MPI_Barrier, 2000, 2500, 2),
                                          waiting(2, Call::MPI_Barrier, 2600, 2700, 1),  // of itself alone
                                          waiting(3, Call::MPI_Barrier, 3000, 3100, 2)}));
  place.put("a.1.10.1.part",
            rank_part(1, {waiting(1, Call::MPI_Barrier, 2400, 2510, 2), waiting(2, Call::MPI_Barrier, 2900, 3105, 2),
                          waiting(3, Call::MPI_Barrier, 4000, 0, 2)}));  // rank 0 never came
  const auto found = found_in(place);
  REQUIRE(found.size() == 2);
  CHECK(found[0].complete_ns() == 400);  // since the first call
  CHECK(found[1].complete_ns() == 1000);
  CHECK(found[0].is_barrier());
  CHECK(found[1].is_barrier());
}

TEST_CASE("collectives: opens of each rank for itself are no barrier, as one ends before the other begins") {
  const Place place;
  place.put("a.0.9.1.part", rank_part(0, {waiting(1, Call::MPI_File_open, 2000, 2100)}));
  place.put("a.1.10.1.part", rank_part(1, {waiting(1, Call::MPI_File_open, 2200, 2300)}));
  const auto found = found_in(place);
  REQUIRE(found.size() == 1);
  CHECK(!found[0].is_barrier());
}

TEST_CASE("collectives: a rank that lost calls is no member, as its n-th call may be another one") {
  const Place place;
  place.put("a.0.9.1.part", rank_part(0, {waiting(1, Call::MPI_Barrier, 2000, 2500, 2)}));
  place.put("a.1.10.1.part", rank_part(1, {waiting(1, Call::MPI_Barrier, 2400, 2510, 2)}, 1));
  CHECK(found_in(place).empty());
}

TEST_CASE("collectives: of ranks that end well, one with fewer barriers was recorded from another moment on") {
  const auto second_is_uneven = [](bool ends) {
    const Place place;
    place.put("a.0.9.1.part", rank_part(0, {waiting(1, Call::MPI_Barrier, 2000, 2500, 2),
                                            waiting(2, Call::MPI_Barrier, 3000, 3500, 2)}));
    place.put("a.1.10.1.part", rank_part(1, {waiting(1, Call::MPI_Barrier, 2400, 2510, 2)}, 0, ends));
    const auto found = found_in(place);
    REQUIRE(found.size() == 1);
    CHECK(!found[0].members[0].may_be_another);
    return found[0].members[1].may_be_another;
  };
  CHECK(second_is_uneven(true));
  CHECK(!second_is_uneven(false));  // it may have died before its second barrier
}
