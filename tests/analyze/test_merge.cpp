// Merging loses nothing: each process's accesses in its order, overlapping ones in theirs; and it folds what is
// regular.
#include <doctest/doctest.h>

#include <map>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/lookup.h"
#include "iosig/analyze/merge.h"
#include "iosig/analyze/overlap.h"
#include "iosig/analyze/split.h"
#include "iosig/model/pattern_cursor.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

struct Access {
  std::int64_t logical, length, physical, sequence;
};

/// What processes did, by id.
using Job = std::map<std::int64_t, std::vector<Access>>;

Pattern described(const std::vector<Access>& accesses, bool has_sequence, bool follows) {
  DetectOptions options{.columns = has_sequence ? 4U : 3U};
  if (follows) options.follows[2] = 1;
  Detector detector(options);
  for (const Access& access : accesses) {
    const std::array<std::int64_t, 4> vector{access.logical, access.length, access.physical, access.sequence};
    detector.push(std::span(vector).first(options.columns));
  }
  return detector.finish();
}

struct Local {
  std::vector<Pattern> patterns;
  std::vector<LocalPattern> locals;
};
Local described(const Job& job, bool has_sequence = true, bool follows = false) {
  Local made;
  for (const auto& [id, accesses] : job) made.patterns.push_back(described(accesses, has_sequence, follows));
  std::size_t n = 0;
  for (const auto& [id, accesses] : job) made.locals.push_back({&made.patterns[n++], id});
  return made;
}

MergedPattern merged(const std::vector<LocalPattern>& locals, unsigned threads = 2) {
  auto result = merge_patterns(locals, {threads});
  REQUIRE_MESSAGE(result, result.error().message);
  REQUIRE_MESSAGE(checked(result->pattern), checked(result->pattern).error().message);
  REQUIRE(result->pattern.columns == 4);
  return std::move(*result);
}

bool overlap(const Access& a, const Access& b) {
  return a.length > 0 && b.length > 0 && a.logical < b.logical + b.length && b.logical < a.logical + a.length;
}

/// Nothing lost, and no two accesses of unlike processes that overlap the wrong way round.
void check_kept(const Job& job, const Pattern& pattern) {
  const auto vectors = expanded(pattern);
  REQUIRE(vectors);
  std::map<std::int64_t, std::size_t> next;
  std::vector<std::pair<std::int64_t, Access>> found;
  std::size_t count = 0;
  for (const auto& [id, accesses] : job) count += accesses.size();
  REQUIRE(vectors->size() == 4 * count);
  for (std::size_t at = 0; at < vectors->size(); at += 4) {
    const std::int64_t* const vector = vectors->data() + at;
    REQUIRE(job.contains(vector[3]));
    const std::vector<Access>& accesses = job.at(vector[3]);
    const std::size_t n = next[vector[3]]++;
    REQUIRE(n < accesses.size());
    REQUIRE(accesses[n].logical == vector[0]);
    REQUIRE(accesses[n].length == vector[1]);
    REQUIRE(accesses[n].physical == vector[2]);
    found.emplace_back(vector[3], accesses[n]);
  }
  std::size_t wrong = 0;
  for (std::size_t a = 0; a < found.size(); ++a)
    for (std::size_t b = a + 1; b < found.size(); ++b)
      if (found[a].first != found[b].first && found[b].second.sequence < found[a].second.sequence &&
          overlap(found[a].second, found[b].second))
        ++wrong;
  CHECK(wrong == 0);
}

/// `ranks` processes that write `count` accesses of `length` in turns.
Job strided(std::int64_t ranks, std::int64_t count, std::int64_t length) {
  Job job;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    for (std::int64_t n = 0; n < count; ++n)
      job[rank].push_back({(n * ranks + rank) * length, length, n * length, n * ranks + rank});
  return job;
}

/// What one process does in one phase, somewhere below 4096.
std::vector<std::pair<std::int64_t, std::int64_t>> made_up(Random& random, std::int64_t rank, std::int64_t ranks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> writes;
  const std::int64_t count = 1 + random.below(20), length = 1 + random.below(16), base = random.below(1000);
  const std::int64_t kind = random.below(6);
  for (std::int64_t n = 0; n < count; ++n) {
    if (kind == 0) writes.emplace_back((n * ranks + rank) * length, length);
    if (kind == 1) writes.emplace_back(base + n * length, length);
    if (kind == 2) writes.emplace_back(random.below(2000), random.below(40));
    if (kind == 3) writes.emplace_back(4000 - n * 40, length);
    if (kind == 4) writes.emplace_back(rank * 500 + n / 4 * 100 + n % 4 * length, length);
    if (kind == 5) writes.emplace_back(n == 7 ? random.below(2000) : base + n * 24, length);
  }
  return writes;
}

}  // namespace

TEST_CASE("merge: whatever processes do, nothing is lost and overlapping writes stay in order") {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    Job job;
    const std::int64_t ranks = 1 + random.below(6), phases = 1 + random.below(4);
    const bool are_alike = random.chance(50), is_ordered_in_phases = random.chance(50);
    std::map<std::int64_t, std::int64_t> physical;
    for (std::int64_t phase = 0, sequence = 0; phase < phases; ++phase) {
      std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> writes;
      const std::int64_t seed = random.below(1 << 30);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        Random own(static_cast<std::uint64_t>(seed + (are_alike ? 0 : rank)));
        writes[rank] = made_up(own, rank, ranks);
      }
      // Within a phase in turns or at random; or nobody knows, and only the phases are in order.
      const bool in_turns = random.chance(50);
      std::map<std::int64_t, std::size_t> next;
      for (std::int64_t left = ranks, turn = 0; left > 0; ++turn) {
        const std::int64_t rank = in_turns ? turn % ranks : random.below(ranks);
        if (next[rank] == writes[rank].size()) {
          if (next[rank]++ == writes[rank].size()) --left;
          continue;
        }
        if (next[rank] > writes[rank].size()) continue;
        const auto [logical, length] = writes[rank][next[rank]++];
        job[rank * 3].push_back({logical, length, physical[rank], is_ordered_in_phases ? phase : sequence++});
        physical[rank] += length;
      }
    }
    const Local local = described(job, true, random.chance(50));
    const MergedPattern result = merged(local.locals);
    check_kept(job, result.pattern);
    CHECK(merged(local.locals, 1).pattern == result.pattern);
  }
}

TEST_CASE("merge: ranks that write in turns, by blocks or in a grid are one nest") {
  const auto terms = [](const Job& job, bool has_sequence) {
    const MergedPattern result = merged(described(job, has_sequence, true).locals);
    CHECK(result.interleaved == 0);
    check_kept(job, result.pattern);
    return result.pattern.terms.size();
  };
  CHECK(terms(strided(64, 10, 47), true) == 1);
  CHECK(terms(strided(100, 5, 4096), false) == 1);
  Job segmented, grid, two;
  for (std::int64_t rank = 0; rank < 48; ++rank)
    for (std::int64_t n = 0; n < 12; ++n) segmented[rank].push_back({rank * 1200 + n * 100, 100, n * 100, n});
  CHECK(terms(segmented, true) == 1);
  for (std::int64_t y = 0; y < 6; ++y)  // 6 x 8 processes, each with 5 rows of 16 bytes of an 8 x 16 bytes wide plane
    for (std::int64_t x = 0; x < 8; ++x)
      for (std::int64_t row = 0; row < 5; ++row)
        grid[y * 8 + x].push_back({(y * 5 + row) * 128 + x * 16, 16, row * 16, row});
  CHECK(terms(grid, true) == 1);
  for (const auto& [rank, accesses] : strided(32, 20, 64)) {  // and a header each, which is part of the loop over ranks
    two[rank].push_back({100000 + rank * 512, 512, 0, 0});
    for (Access access : accesses) {
      access.physical += 512;
      access.sequence += 1;
      two[rank].push_back(access);
    }
  }
  CHECK(terms(two, true) <= 2);
}

TEST_CASE("merge: the description of a thousand ranks is as small as that of ten") {
  const auto numbers = [](std::int64_t ranks) {
    return merged(described(strided(ranks, 64, 4096), false).locals).pattern.numbers.size();
  };
  CHECK(numbers(1000) == numbers(10));
}

TEST_CASE("merge: ranks that rewrite the same bytes at the same time are put in order one by one") {
  Job job;
  for (std::int64_t n = 0; n < 50; ++n)
    for (std::int64_t rank = 0; rank < 4; ++rank) job[rank].push_back({n * 10, 10, n * 10, n * 4 + (rank + n) % 4});
  const MergedPattern result = merged(described(job).locals);
  CHECK(result.interleaved == 200);
  check_kept(job, result.pattern);
}

TEST_CASE("merge: phases that overwrite each other keep their order without being expanded") {
  Job job;  // each phase shifts the ranks by one, so everybody overwrites what another one wrote before
  for (std::int64_t phase = 0; phase < 5; ++phase)
    for (std::int64_t rank = 0; rank < 16; ++rank)
      for (std::int64_t n = 0; n < 30; ++n)
        job[rank].push_back({(n * 16 + (rank + phase) % 16) * 100, 100, (phase * 30 + n) * 100, phase});
  const MergedPattern result = merged(described(job).locals);
  CHECK(result.interleaved == 0);
  check_kept(job, result.pattern);
}

TEST_CASE("merge: parts of processes are ordered by when they were open") {
  // Process 1 writes [0, 100) before, [200, 300) after process 0 wrote [50, 250).
  const Pattern early = described({{0, 100, 0, 0}}, false, false), between = described({{50, 200, 0, 0}}, false, false),
                late = described({{200, 100, 100, 0}}, false, false);
  const std::vector<LocalPattern> parts = {{&early, 1, 0, 10}, {&between, 0, 11, 12}, {&late, 1, 13, 20}};
  const Pattern pattern = merged(parts).pattern;
  const auto lookup = PatternLookup::of(pattern);
  REQUIRE(lookup);
  CHECK(lookup->piece_at(60).id == 0);
  CHECK(lookup->piece_at(210).id == 1);
  CHECK(lookup->piece_at(210).physical == 110);
}

TEST_CASE("merge: the paper's Figs. 10 to 12: local patterns that differ by their starts are one global pattern") {
  // Fig. 12: ids and starts are patterns themselves; [0,(3)^..] of ranks 0..n with starts at even distances.
  Job job;
  for (std::int64_t rank = 0; rank < 4; ++rank)
    for (std::int64_t n = 0; n < 6; ++n) job[rank].push_back({rank * 7 + n * 28, 7, n * 7, 0});
  const Pattern pattern = merged(described(job, false).locals).pattern;
  REQUIRE(pattern.terms.size() == 1);
  REQUIRE(pattern.nodes.size() == 3);
  CHECK(pattern.numbers == std::vector<std::int64_t>{4, 6, 0, 0, 7, 28, 7, 0, 0, 0, 0, 7, 0, 1, 0});
}

TEST_CASE("merge: bad input is refused with the process and the place") {
  const Pattern negative = described({{-5, 5, 0, 0}}, false, false),
                far = described({{INT64_MAX - 2, 5, 0, 0}}, false, false),
                falls = described({{0, 5, 0, 7}, {10, 5, 5, 6}}, true, false),
                one = detect(std::vector<std::int64_t>{1}, {});
  const auto message = [](const Pattern& pattern) {
    const auto result = merge_patterns(std::vector<LocalPattern>{{&pattern, 3}});
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::bad_input);
    return result.error().message;
  };
  CHECK(message(negative) == "process 3: access 1 has logical offset -5; expected 0 or more");
  CHECK(message(far) == "process 3: access 1 ends after byte 2^63 - 1");
  CHECK(message(falls) == "process 3: the sequence numbers fall at access 1 or after it");
  CHECK(message(one).starts_with("process 3: a pattern of 1 column(s); expected 3"));
  CHECK(merge_patterns({})->pattern.count() == 0);
}

TEST_CASE("merge: footprints that are said not to overlap share no byte; all pairs that may are visited") {
  Random random(5);
  std::size_t apart = 0;
  for (int round = 0; round < 3000; ++round) {
    // Two or three leaves of up to three loops in a pattern each.
    std::vector<Pattern> patterns;
    for (int n = 0; n < 3; ++n) {
      Detector detector({.columns = 3});
      const std::int64_t a = 1 + random.below(4), b = 1 + random.below(4), c = 1 + random.below(4);
      const std::int64_t x = 8 * random.below(20), y = 2 * random.below(12), z = random.below(6);
      const std::int64_t base = random.below(200), length = random.below(5);
      for (std::int64_t i = 0; i < a; ++i)
        for (std::int64_t j = 0; j < b; ++j)
          for (std::int64_t k = 0; k < c; ++k)
            detector.push(std::array<std::int64_t, 3>{base + x * i + y * j + z * k, length, 0});
      patterns.push_back(detector.finish());
    }
    std::vector<Footprint> footprints;
    std::vector<std::vector<bool>> bytes;
    for (std::size_t n = 0; n < patterns.size(); ++n) {
      const auto vectors = *expanded(patterns[n]);
      const PatternIndex index(patterns[n]);
      LeafIndex leaves(patterns[n], {.id = -1});
      if (patterns[n].terms.size() != 1 || !patterns[n].terms[0].is_nest || !leaves.add(0, index).empty()) continue;
      for (const LeafIndex::Leaf& leaf : leaves.leaves()) {
        footprints.push_back(Footprint::of(leaves, leaf));
        footprints.back().group = static_cast<std::int64_t>(n);
      }
      if (leaves.leaves().size() != 1) {
        footprints.clear();
        break;
      }
      bytes.emplace_back(2000);
      for (std::size_t at = 0; at < vectors.size(); at += 3)
        for (std::int64_t byte = 0; byte < vectors[at + 1]; ++byte)
          bytes.back()[static_cast<std::size_t>(vectors[at] + byte)] = true;
    }
    std::vector<std::vector<bool>> is_visited(footprints.size(), std::vector<bool>(footprints.size()));
    CHECK(for_each_overlap(footprints, 1000,
                           [&](std::size_t a, std::size_t b) { is_visited[a][b] = is_visited[b][a] = true; }));
    for (std::size_t a = 0; a < footprints.size(); ++a)
      for (std::size_t b = a + 1; b < footprints.size(); ++b) {
        const bool may = may_overlap(footprints[a], footprints[b]);
        CHECK(is_visited[a][b] == may);
        for (std::size_t byte = 0; !may && byte < bytes[a].size(); ++byte)
          REQUIRE_FALSE((bytes[a][byte] && bytes[b][byte]));
        apart += may ? 0 : 1;
      }
  }
  CHECK(apart > 200);
}

TEST_CASE("merge: turns that were taken apart are the same sequence") {
  Random random(9);
  std::size_t many = 0;
  for (int round = 0; round < 1000; ++round) {
    const GeneratedNest nest = generated_nest(random);
    const Pattern pattern = detect(nest.vectors, {.columns = nest.columns});
    std::vector<std::uint32_t> terms;
    for (std::uint32_t term = 0; term < pattern.terms.size(); ++term)
      if (can_take_apart(pattern, term, 100)) terms.push_back(term);
    const Pattern apart = turns_apart(pattern, terms);
    REQUIRE(checked(apart));
    CHECK(*expanded(apart) == nest.vectors);
    CHECK((terms.empty() ? apart == pattern : apart.terms.size() > pattern.terms.size()));
    many += terms.size();
  }
  CHECK(many > 50);
}

TEST_CASE("merge: what would have to be expanded and is too much is refused, not tried") {
  // Lengths that grow: physical offsets are sums of them, and no affine function.
  Detector growing({.columns = 3, .follows = {-1, -1, 1, -1, -1, -1, -1, -1}}), shared({.columns = 4});
  std::int64_t physical = 0;
  for (std::int64_t n = 0; n < 1000; ++n) {
    growing.push(std::array{n * 1000, n, physical});
    physical += n;
    shared.push(std::array{n * 8, std::int64_t{8}, n * 8, n});
  }
  const Pattern one = growing.finish(), other = shared.finish();
  const auto refused = [](const std::vector<LocalPattern>& locals) {
    const auto result = merge_patterns(locals, {.max_expanded = 999});
    REQUIRE_FALSE(result);
    CHECK(result.error().kind == ErrorKind::infeasible);
  };
  refused({{&one, 0}});
  refused({{&other, 0}, {&other, 1}});
  CHECK(merge_patterns(std::vector<LocalPattern>{{&other, 0}}, {.max_expanded = 999}));
}
