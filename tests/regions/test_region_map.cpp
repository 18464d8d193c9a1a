// The region map gives back what was stored, in at most 128 bytes a region, or refuses.
#include <doctest/doctest.h>

#include "iosig/base/files.h"
#include "iosig/base/units.h"
#include "iosig/regions/region_map.h"
#include "support/directories.h"

using namespace iosig;
using namespace iosig::regions;
using iosig::test::Directory;
using iosig::test::fast_directory;

namespace {

const std::vector<MappedClass> unlike_servers{{"hdd", {"h0", "h1", "h2"}}, {"ssd", {"s0"}}};

/// Regions of 64 MB: every third on all servers, the others on the HDD servers alone.
MappedWindow window_of(std::uint32_t regions, std::uint32_t window) {
  MappedWindow made;
  for (std::uint32_t n = 0; n < regions; ++n) {
    const bool is_hybrid = (n + window) % 3 == 0;
    made.push_back(
        {n, n * 64 * MiB, 64 * MiB,
         is_hybrid ? std::vector<std::uint64_t>{12 * KiB, 92 * KiB} : std::vector<std::uint64_t>{512 * KiB, 0},
         "checkpoint.dat.r" + std::to_string(n) + (is_hybrid ? "-w" + std::to_string(window) : "")});
  }
  return made;
}

MappedPlacement placement_of(std::uint32_t regions, std::uint32_t windows,
                             const std::string& file = "/data/checkpoint.dat") {
  MappedPlacement made{{"solver", 32, file}, unlike_servers, {}};
  for (std::uint32_t n = 0; n < windows; ++n) made.windows.push_back(window_of(regions, n));
  return made;
}

std::string stored(const Directory& directory, const MappedPlacement& placement) {
  const std::string path = directory / "map";
  const auto done = store_placement(path, placement);
  REQUIRE_MESSAGE(done.has_value(), done.error().message);
  return path;
}

/// A map must read as `wanted`, or be refused as bad input with its name. Returns whether it was refused.
bool refused_or_same(const std::string& path, const std::vector<MappedPlacement>& wanted) {
  const auto read = read_region_map(path);
  if (read) {
    CHECK(*read == wanted);
    return false;
  }
  CHECK_MESSAGE(read.error().kind == ErrorKind::bad_input, read.error().message);
  CHECK_MESSAGE(read.error().message.starts_with("'" + path + "': "), read.error().message);
  return true;
}

std::string refusal(const MappedPlacement& placement) {
  const Directory directory(fast_directory());
  const auto done = store_placement(directory / "map", placement);
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == ErrorKind::bad_input);
  CHECK_FALSE(read_file(directory / "map"));  // an impossible placement does not even make the file
  return done.error().message;
}

}  // namespace

TEST_CASE("region map: what was stored comes back, each placement under its key") {
  const Directory directory(fast_directory());
  const MappedPlacement one = placement_of(10, 3), other = placement_of(4, 1, "/data/a\xff\x01'b");
  MappedPlacement fewer = one;
  fewer.key.processes = 16;
  fewer.windows.resize(2);
  const std::string path = stored(directory, one);
  for (const MappedPlacement& each : {other, fewer}) stored(directory, each);
  CHECK(read_region_map(path).value() == std::vector{fewer, other, one});
  CHECK(read_window(path, one.key, 2).value() == one.windows[2]);

  const auto missing = read_window(path, one.key, 3);
  CHECK(missing.error().kind == ErrorKind::infeasible);
  CHECK(missing.error().message ==
        "'" + path + "': 'solver' with 32 processes, file '/data/checkpoint.dat': has no window 3; the last is 2");
  CHECK(read_window(path, {"solver", 8, "/x"}, 0).error().kind == ErrorKind::infeasible);
}

TEST_CASE("region map: a placement replaces the one with its key, a window the one with its number") {
  const Directory directory(fast_directory());
  const MappedPlacement other = placement_of(4, 1, "/data/other");
  const std::string path = stored(directory, other);
  stored(directory, placement_of(10, 3));
  MappedPlacement next = placement_of(20, 2);
  next.classes.push_back({"tape", {"t"}});
  for (MappedWindow& window : next.windows)
    for (MappedRegion& region : window) region.stripe_bytes.push_back(MiB);
  stored(directory, next);
  CHECK(read_region_map(path).value() == std::vector{next, other});

  next.windows[1].pop_back();
  next.windows[1][3].target = "moved";
  REQUIRE(replace_window(path, next.key, 1, next.windows[1]));
  next.windows.push_back(next.windows[0]);
  REQUIRE(replace_window(path, next.key, 2, next.windows[2]));  // one past the last
  CHECK(read_region_map(path).value() == std::vector{next, other});
  CHECK(replace_window(path, next.key, 4, next.windows[0]).error().kind == ErrorKind::infeasible);
  CHECK(replace_window(path, {"solver", 1, "/x"}, 0, next.windows[0]).error().kind == ErrorKind::infeasible);
  CHECK(replace_window(path, other.key, 0, next.windows[0]).error().message.find("3 stripe sizes for 2 classes") !=
        std::string::npos);
  CHECK(read_region_map(path).value() == std::vector{next, other});
}

TEST_CASE("region map: the paper's 1600 regions of a file of 100 GB take at most 128 bytes each") {
  const Directory directory(fast_directory());
  for (const std::uint32_t windows : {1U, 6U}) {
    const std::string path = stored(directory, placement_of(1600, windows));
    CHECK(read_file(path).value().size() <= 128 * 1600 * windows);
  }
}

TEST_CASE("region map: impossible placements are refused with window and region") {
  MappedPlacement placement = placement_of(3, 2);
  const auto with = [&](auto change) {
    MappedPlacement changed = placement;
    change(changed.windows[1][1]);
    return refusal(changed);
  };
  CHECK(with([](MappedRegion& region) { region.length_bytes = 0; }).find("window 1: region 1: is empty") !=
        std::string::npos);
  CHECK(with([](MappedRegion& region) { region.offset_bytes -= 1; }).find("inside region 0") != std::string::npos);
  CHECK(with([](MappedRegion& region) { region.number = 0; }).find("ascending") != std::string::npos);
  CHECK(with([](MappedRegion& region) { region.offset_bytes = 1ULL << 63; }).find("2^63") != std::string::npos);
  CHECK(with([](MappedRegion& region) { region.length_bytes = UINT64_MAX; }).find("2^63") != std::string::npos);
  CHECK(with([](MappedRegion& region) {
          region.stripe_bytes = {0, 0};
        }).find("no stripe on any server") != std::string::npos);
  CHECK(with([](MappedRegion& region) { region.stripe_bytes = {1}; }).find("1 stripe sizes for 2 classes") !=
        std::string::npos);
  placement.windows.clear();
  CHECK(refusal(placement).find("no windows") != std::string::npos);
  MappedPlacement last = placement_of(1, 1);
  last.windows[0][0].offset_bytes =
      max_bytes - last.windows[0][0].length_bytes;  // ends at the last byte that a file has
  const Directory directory(fast_directory());
  CHECK(read_region_map(stored(directory, last)).value() == std::vector{last});
}

TEST_CASE("region map: no flipped bit goes unnoticed where it matters") {
  const Directory directory(fast_directory());
  const std::vector wanted{placement_of(40, 2)};
  const std::string path = stored(directory, wanted[0]), whole = read_file(path).value(),
                    flipped = directory / "flipped";
  const auto is_refused_at = [&](std::size_t at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    test::write(flipped, bytes);
    CAPTURE(at);
    return refused_or_same(flipped, wanted);
  };
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += at < 600 ? 1 : 13) refused += is_refused_at(at) ? 1 : 0;
  CHECK(refused > 100);  // the other bytes hold nothing
  for (const std::string name : {"checkpoint.dat.r31", "/data/checkpoint.dat", "solver", "[[\"hdd\""}) {
    const std::size_t at = whole.find(name);
    REQUIRE(at != std::string::npos);
    for (std::size_t n = 0; n < name.size(); ++n) CHECK(is_refused_at(at + n));
  }
}

TEST_CASE("region map: a cut file is refused at every length") {
  const Directory directory(fast_directory());
  const std::vector wanted{placement_of(200, 2)};
  const std::string path = stored(directory, wanted[0]), whole = read_file(path).value(), cut = directory / "cut";
  for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 9 : 511) {
    test::write(cut, whole.substr(0, size));
    CAPTURE(size);
    CHECK(refused_or_same(cut, wanted));
    if (size >= 512) CHECK(store_placement(cut, wanted[0]).error().kind == ErrorKind::bad_input);  // nor written into
  }
}

TEST_CASE("region map: other versions, other databases and other files are refused") {
  const Directory directory(fast_directory());
  const std::string path = stored(directory, placement_of(3, 1)), whole = read_file(path).value();
  const auto message = [&](std::size_t at, char value) {
    std::string bytes = whole;
    bytes[at] = value;
    test::write(directory / "other", bytes);
    const auto read = read_region_map(directory / "other");
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == ErrorKind::bad_input);
    return read.error().message;
  };
  CHECK(message(63, 2).find("is a region map of version 2; this iosig reads version 1") !=
        std::string::npos);                                                        // user_version
  CHECK(message(68, 0).find("database of another program") != std::string::npos);  // application_id
  CHECK(message(0, 'X').find("is no region map") != std::string::npos);
  test::write(directory / "text", std::string(5000, 'x'));
  CHECK(read_region_map(directory / "text").error().message.find("is no region map") != std::string::npos);
  CHECK(store_placement(directory / "text", placement_of(1, 1)).error().kind == ErrorKind::bad_input);
  test::write(directory / "empty", "");
  CHECK(read_region_map(directory / "empty").error().message.find("holds no region map") != std::string::npos);
  CHECK(read_region_map(directory / "none").error().kind == ErrorKind::system);
  CHECK(read_region_map(std::string(directory / ".")).error().kind == ErrorKind::system);
}

TEST_CASE("region map: the placements of several files are stored together, or none of them") {
  const Directory directory(fast_directory());
  std::vector<MappedPlacement> wanted{placement_of(3, 1, "/a"), placement_of(2, 2, "/b")};
  const std::string path = stored(directory, placement_of(5, 1, "/a"));
  REQUIRE(store_placements(path, wanted));
  CHECK(*read_region_map(path) == wanted);
  auto next = wanted;
  next[0] = placement_of(9, 9, "/a");
  next[1].windows[1].back().length_bytes = 0;  // impossible
  CHECK(store_placements(path, next).error().kind == ErrorKind::bad_input);
  CHECK(*read_region_map(path) == wanted);
}
