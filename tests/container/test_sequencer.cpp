// Of two writes of one byte, the one that began after the other had ended is read: whatever was claimed meanwhile.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <random>
#include <thread>

#include "iosig/container/admin/container.h"
#include "iosig/container/order/claim.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

TEST_CASE("claims: two that share a byte always meet, by trying every byte") {
  std::mt19937 random(5);
  const auto below = [&](unsigned n) { return static_cast<std::uint64_t>(random() % n); };
  const auto make = [&] {
    Claim claim{below(60), 0, below(3) == 0 ? 0 : 1 + below(16), 0};
    claim.end = claim.begin + below(60);
    claim.width = claim.period == 0 ? 0 : 1 + below(static_cast<unsigned>(claim.period));
    return claim;
  };
  const auto has = [](const Claim& claim, std::uint64_t byte) {
    return claim.begin <= byte && byte < claim.end &&
           (claim.period == 0 || (byte - claim.begin) % claim.period < claim.width);
  };
  unsigned apart = 0;
  for (int n = 0; n < 20000; ++n) {
    const Claim a = make(), b = make();
    bool share = false;
    for (std::uint64_t byte = 0; byte < 130; ++byte) share = share || (has(a, byte) && has(b, byte));
    CHECK(may_overlap(a, b) == may_overlap(b, a));
    if (share) CHECK(may_overlap(a, b));
    if (!may_overlap(a, b)) ++apart;
    const Claim both = joined(a, b);
    for (std::uint64_t byte = 0; byte < 130; ++byte)
      if (has(a, byte) || has(b, byte)) REQUIRE(has(both, byte));
    const std::uint64_t offset = below(130), length = 1 + below(8);
    for (std::uint64_t byte = offset; byte < offset + length; ++byte)
      if (offset >= a.begin && has(a, byte)) REQUIRE(has(part_of(a, offset, offset + length), byte));
    if (a.covers(offset, length))
      for (std::uint64_t byte = offset; byte < offset + length; ++byte) CHECK(has(a, byte));
  }
  CHECK(apart > 5000);  // it is not just always true
  const Claim mine{0, 4000, 40, 10}, next{10, 4000, 40, 10}, third{20, 4000, 80, 21};
  CHECK_FALSE(may_overlap(mine, next));
  CHECK_FALSE(may_overlap(next, mine));
  CHECK(may_overlap(mine, third));  // byte 40 of the third's period is byte 20 + 20 of the file
  CHECK(may_overlap(mine, everything));
  CHECK(joined({100, 110, 0, 0}, {140, 150, 0, 0}) == Claim{100, 150, 40, 10});
  CHECK(joined({100, 150, 40, 10}, {220, 430, 40, 10}) == Claim{100, 430, 40, 10});  // the next row
  CHECK(joined({100, 150, 40, 10}, {190, 200, 0, 0}) == Claim{100, 200, 40, 20});
}

TEST_CASE("claims: a summary meets whatever was added to it") {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    WrittenSummary summary;
    std::vector<Claim> added;
    std::uint64_t at = random() % 50;
    for (int n = 0; n < 12; ++n) {
      const std::uint64_t length = 1 + random() % 9;
      at = random() % 3 == 0 ? random() % 2000 : at + 40;
      const std::uint64_t period = random() % 2 == 0 ? 0 : length + random() % 30;
      added.push_back({at, at + (period == 0 ? length : 1 + random() % 200), period, period == 0 ? 0 : length});
      summary.add(added.back());
      for (const Claim& part : added) CHECK(summary.may_overlap(part));
    }
  }
  // Rows of a plane, then of another one at another place in their period: what others do between the rows is apart.
  WrittenSummary rows;
  for (std::uint64_t plane = 0; plane < 3; ++plane)
    for (std::uint64_t row = 0; row < 4; ++row) {
      const std::uint64_t begin = plane * 10020 + row * 400;
      rows.add({begin, begin + 170, 40, 10});
      CHECK_FALSE(rows.may_overlap({begin + 10, begin + 180, 40, 10}));
      CHECK(rows.may_overlap({begin + 5, begin + 180, 40, 10}));
    }
}

TEST_CASE("claims: a strided writer claims its stride from its second write on, without its neighbours' bytes") {
  ClaimGuess guess;
  CHECK(guess.next(0, 0, 10, 10) == Claim{10, 20, 0, 0});
  const Claim second = guess.next(10, 10, 50, 10);
  CHECK(second.period == 40);
  CHECK(second.width == 10);
  CHECK(second.covers(90, 10));
  CHECK(second.covers(50 + 40 * 1000000, 10));
  CHECK_FALSE(second.covers(95, 10));
  CHECK_FALSE(second.covers(60, 1));
  Claim smaller = guess.smaller();
  CHECK(smaller.end < second.end);
  for (int n = 0; n < 20; ++n) smaller = guess.smaller();
  CHECK(smaller == Claim{50, 60, 0, 0});
  CHECK(guess.next(50, 10, 90, 10).covers(130, 10));  // and again
}

TEST_CASE("order: threads that write the same blocks in turn and their own rows at once") {
  constexpr int threads = 4, writes = 4000;
  constexpr std::int64_t blocks = 8, block = 40, row = 16;
  for (const IndexKind index : {IndexKind::pattern, IndexKind::traditional}) {
    const Directory directory;
    ContainerOptions options;
    options.index = index;
    const auto container = create_container(directory / "file", options);
    REQUIRE(container);
    std::array<std::mutex, blocks> turns;
    std::string expected(static_cast<std::size_t>(blocks * block + threads * row * writes), '\0');
    const auto work = [&](int who) {
      auto writer = ContainerWriter::open(*container);
      std::mt19937 random(static_cast<unsigned>(who));
      std::int64_t mine = 0;
      bool sound = writer.has_value();
      for (int n = 0; n < writes && sound; ++n) {
        const std::string text(1 + random() % 16, static_cast<char>('a' + random() % 26));
        if (random() % 3 != 0) {  // N-1 strided, behind the blocks
          const std::string full(row, text[0]);
          const std::int64_t offset = blocks * block + (mine++ * threads + who) * row;
          sound = (*writer)->write(offset, std::as_bytes(std::span(full))).has_value();
          std::copy(full.begin(), full.end(), expected.begin() + offset);
        } else {
          const std::size_t at = random() % blocks;
          const std::int64_t offset = static_cast<std::int64_t>(at) * block + static_cast<std::int64_t>(random() % 24);
          const std::lock_guard lock(turns[at]);
          sound = (*writer)->write(offset, std::as_bytes(std::span(text))).has_value();
          std::copy(text.begin(), text.end(), expected.begin() + offset);
        }
        if (random() % 1000 == 0) {  // a new writer, as a program that closes its file and opens it again
          sound = sound && (*writer)->close();
          writer = ContainerWriter::open(*container);
          sound = sound && writer;
        }
      }
      return sound && (*writer)->close();
    };
    std::array<bool, threads> sound{};
    {
      std::vector<std::jthread> all;
      for (int who = 0; who < threads; ++who)
        all.emplace_back([&, who] { sound[static_cast<std::size_t>(who)] = work(who); });
    }
    for (const bool one : sound) CHECK(one);
    const auto view = ContainerView::open(*container);
    REQUIRE_MESSAGE(view, view.error().message);
    expected.resize(static_cast<std::size_t>((*view)->size()));
    std::string found(expected.size(), '?');
    REQUIRE((*view)->read(0, std::as_writable_bytes(std::span(found))));
    const auto differs = std::mismatch(found.begin(), found.end(), expected.begin());
    CHECK_MESSAGE(found == expected, "at byte ", differs.first - found.begin());
  }
}

TEST_CASE("order: writers that jump about among others that stride over the same blocks") {
  constexpr int jumpers = 3, walkers = 2, writes = 3000;
  constexpr std::int64_t blocks = 4096, block = 24;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Directory directory;
    const auto container = create_container(directory / "file");
    REQUIRE(container);
    std::vector<std::mutex> turns(blocks);
    std::string expected(static_cast<std::size_t>(blocks * block), '\0');
    const auto work = [&](unsigned who) {
      auto writer = ContainerWriter::open(*container);
      std::mt19937 random(who + 10 * seed);
      bool sound = writer.has_value();
      const auto put = [&](std::int64_t at, std::int64_t shift) {
        const std::string text(8, static_cast<char>('a' + random() % 26));
        const std::int64_t offset = at * block + shift;
        const std::lock_guard lock(turns[static_cast<std::size_t>(at)]);
        sound = sound && (*writer)->write(offset, std::as_bytes(std::span(text)));
        std::ranges::copy(text, expected.begin() + offset);
      };
      if (who < walkers)
        for (const std::int64_t shift : {3, 10})
          for (std::int64_t at = who * blocks / walkers; at < (who + 1) * blocks / walkers; ++at) put(at, shift);
      else
        for (int n = 0; n < writes; ++n) put(random() % blocks, random() % 17);
      return sound && (*writer)->close();
    };
    std::array<bool, jumpers + walkers> sound{};
    {
      std::vector<std::jthread> all;
      for (unsigned who = 0; who < sound.size(); ++who) all.emplace_back([&, who] { sound[who] = work(who); });
    }
    for (const bool one : sound) CHECK(one);
    const auto view = ContainerView::open(*container);
    REQUIRE_MESSAGE(view, view.error().message);
    expected.resize(static_cast<std::size_t>((*view)->size()));
    std::string found(expected.size(), '?');
    REQUIRE((*view)->read(0, std::as_writable_bytes(std::span(found))));
    const auto differs = std::mismatch(found.begin(), found.end(), expected.begin());
    CHECK_MESSAGE(found == expected, "at byte ", differs.first - found.begin());
  }
}

TEST_CASE("order: a child by fork leaves its parent's writer alone, and has one of its own") {
  const Directory directory;
  const auto container = create_container(directory / "file");
  REQUIRE(container);
  auto writer = ContainerWriter::open(*container);
  REQUIRE(writer);
  const auto put = [](ContainerWriter& one, std::int64_t offset, const std::string& text) {
    return one.write(offset, std::as_bytes(std::span(text))).has_value();
  };
  CHECK(put(**writer, 0, "parent"));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = !put(**writer, 0, "CHILD!");
    writer->reset();
    auto own = ContainerWriter::open(*container);
    ::_exit(refused && own && put(**own, 2, "child") && (*own)->close() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(put(**writer, 3, "E"));
  CHECK((*writer)->close());
  auto view = ContainerView::open(*container);
  REQUIRE(view);
  std::string found(7, '?');
  CHECK((*view)->read(0, std::as_writable_bytes(std::span(found))));
  CHECK(found == "pacEild");
}

TEST_CASE("order: tables of starts before are removed, and numbers go on above those in use") {
  const Directory directory;
  const auto container = create_container(directory / "file");
  REQUIRE(container);
  const auto put = [&](const std::string& text) {
    auto writer = ContainerWriter::open(*container);
    return writer && (*writer)->write(0, std::as_bytes(std::span(text))) && (*writer)->close();
  };
  CHECK(put("old"));
  const std::string table = directory / ("file/" + sequencer_name()),
                    before = directory / "file/order.0123456789abcdef";
  std::filesystem::rename(table, before);
  CHECK(put("new"));
  CHECK(std::filesystem::exists(table));
  CHECK_FALSE(std::filesystem::exists(before));
  auto view = ContainerView::open(*container);
  REQUIRE(view);
  std::string found(3, '?');
  CHECK((*view)->read(0, std::as_writable_bytes(std::span(found))));
  CHECK(found == "new");
  CHECK((*view)->content().writers.size() == 2);
}
