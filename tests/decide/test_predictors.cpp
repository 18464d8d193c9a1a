#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "iosig/analyze/detect.h"
#include "iosig/decide/predictors.h"

namespace iosig {
namespace {

using Reads = std::vector<FileRead>;

/// Loops, the outermost first, around reads of `length` bytes.
struct Loop {
  std::int64_t trips, step;
};
Reads nested(const std::vector<Loop>& loops, std::int64_t length) {
  Reads reads;
  const std::function<void(std::size_t, std::int64_t)> turn = [&](std::size_t depth, std::int64_t offset) {
    if (depth == loops.size()) return reads.push_back({offset, length});
    for (std::int64_t n = 0; n < loops[depth].trips; ++n) turn(depth + 1, offset + n * loops[depth].step);
  };
  turn(0, 0);
  return reads;
}

Reads random_reads(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Reads reads;
  for (std::size_t n = 0; n < count; ++n)
    reads.push_back({static_cast<std::int64_t>(random() % 1000'000) * 4096, 4096});
  return reads;
}

struct Score {
  std::size_t reads = 0, right = 0, wrong = 0;  ///< of the reads: expected just so; something else was expected
  [[nodiscard]] double share() const { return static_cast<double>(right) / static_cast<double>(reads); }
};

/// Asks before each read, from `first` on, which one follows.
Score score_of(ReadPredictor& predictor, const Reads& reads, std::size_t first = 0) {
  Score score;
  for (std::size_t n = 0; n < reads.size(); ++n) {
    const auto next = predictor.expected(1);
    if (n >= first) {
      ++score.reads;
      if (next) ++(*next == reads[n] ? score.right : score.wrong);
    }
    (void)predictor.observe(reads[n]);
  }
  return score;
}

std::shared_ptr<const KnownReads> shared(const Reads& reads) {
  return std::make_shared<const KnownReads>(KnownReads{reads});
}

}  // namespace

TEST_CASE("predictors: names are those of the command line") {
  for (const char* name : {"none", "kernel", "markov", "paper", "pattern", "remembered", "perfect"})
    CHECK(name_of(predictor_kind_of(name).value()) == name);
  CHECK(!predictor_kind_of("Pattern"));
}

TEST_CASE("predictors: ours expects nests of loops after two turns of each level") {
  std::mt19937_64 random(1);
  for (int n = 0; n < 60; ++n) {
    std::vector<Loop> loops;
    const std::int64_t length = std::int64_t{512} << random() % 8;
    std::int64_t step = length * static_cast<std::int64_t>(1 + random() % 5);
    std::size_t turn = 1;  // reads in a turn of the outermost loop
    for (std::size_t depth = 1 + random() % 3; depth > 0; --depth) {
      const auto trips = static_cast<std::int64_t>(6 + random() % 8);
      loops.insert(loops.begin(), {trips, step});
      step = step * trips + length * static_cast<std::int64_t>(random() % 9);
      if (depth > 1) turn *= static_cast<std::size_t>(trips);
    }
    const Reads reads = nested(loops, length);
    CAPTURE(n);
    const Score score = score_of(*pattern_predictor(), reads, std::max<std::size_t>(8, 2 * turn + 2));
    if (score.reads > 0) CHECK(score.share() >= 0.97);
  }
}

TEST_CASE("predictors: ours tells reads far ahead, beyond the ends of loops") {
  const Reads reads = nested({{20, 1 << 20}, {8, 8192}}, 4096);
  const auto predictor = pattern_predictor();
  for (std::size_t n = 0; n < reads.size(); ++n) {
    (void)predictor->observe(reads[n]);
    if (n < 40) continue;
    for (const std::size_t ahead : {1U, 7U, 30U})
      if (n + ahead < reads.size()) CHECK(predictor->expected(ahead) == reads[n + ahead]);
  }
}

TEST_CASE("predictors: random reads are hardly ever expected wrongly") {
  const Reads reads = random_reads(5000, 7);
  for (const auto& make : {pattern_predictor, +[] { return paper_predictor(); }}) {
    const Score score = score_of(*make(), reads);
    CHECK(score.wrong <= 0.03 * 5000);
  }
}

TEST_CASE("predictors: after a change of phase, ours is back within 16 reads") {
  Reads reads = nested({{400, 12288}}, 4096);
  std::vector<std::size_t> begins;
  for (int phase = 1; phase <= 5; ++phase) {
    begins.push_back(reads.size());
    for (FileRead read : nested({{40, 5 << 20}, {4, 16384 * phase}}, 1024 * phase)) {
      read.offset += phase * (std::int64_t{1} << 32);
      reads.push_back(read);
    }
  }
  const auto predictor = pattern_predictor();
  std::size_t wrong = 0, expected = 0;
  for (std::size_t n = 0; n < reads.size(); ++n) {
    const bool is_new = std::ranges::any_of(begins, [&](std::size_t begin) { return n >= begin && n < begin + 16; });
    if (n >= 400 && !is_new) {
      ++expected;
      if (predictor->expected(1) != reads[n]) ++wrong;
    }
    (void)predictor->observe(reads[n]);
  }
  CHECK(wrong <= expected / 20);
}

TEST_CASE("predictors: stray reads between those of a nest, and gaps, cost few predictions") {
  const Reads clean = nested({{100, 1 << 20}, {20, 8192}}, 4096);
  std::mt19937_64 random(3);
  Reads with_strays, with_gaps;
  std::size_t strays = 0, gaps = 0;
  for (const FileRead& read : clean) {
    if (random() % 100 == 0) {
      with_strays.push_back({static_cast<std::int64_t>(random() % 1000) * 512, 512});
      ++strays;
    }
    with_strays.push_back(read);
    if (random() % 100 == 0)
      ++gaps;
    else
      with_gaps.push_back(read);
  }
  const auto missed = [](const Reads& reads) {
    const Score score = score_of(*pattern_predictor(), reads, 30);
    return static_cast<double>(score.reads - score.right);
  };
  CHECK(missed(with_strays) <= 3.0 * static_cast<double>(strays));
  CHECK(missed(with_gaps) <= 8.0 * static_cast<double>(gaps));
}

TEST_CASE("predictors: at the ends of what a file can be, nothing is expected beyond them") {
  constexpr std::int64_t last = INT64_MAX;
  const std::vector<Reads> sequences = {{{0, 1}, {last / 4, 1}, {last / 2, 1}, {last / 4 * 3, 1}, {last - 1, 1}},
                                        {{last - 4, 1}, {last - 3, 1}, {last - 2, 1}, {last - 1, 1}, {last, 0}},
                                        {{300, 10}, {200, 10}, {100, 10}, {0, 10}},
                                        {{0, last}, {0, last}, {0, last}, {0, last}}};
  for (const Reads& reads : sequences)
    for (const auto& make : {pattern_predictor, +[] { return paper_predictor(); }}) {
      const auto predictor = make();
      for (int turn = 0; turn < 20; ++turn)
        for (const FileRead& read : reads) {
          (void)predictor->observe(read);
          for (const std::size_t ahead : {1U, 2U, 40U})
            if (const auto next = predictor->expected(ahead)) CHECK(next->length >= 0);
        }
    }
}

TEST_CASE("predictors: a remembered order is followed, and found again after a gap or from its start") {
  const Reads order = random_reads(3000, 5);
  CHECK(score_of(*remembered_predictor(shared(order)), order, 2).right == order.size() - 2);
  Reads again(order.begin(), order.begin() + 500);
  again.insert(again.end(), order.begin() + 1500, order.end());  // leaves out 1000
  again.insert(again.end(), order.begin(), order.end());         // and begins anew
  const Score score = score_of(*remembered_predictor(shared(order)), again, 2);
  CHECK(score.reads - score.right <= 10);
}

TEST_CASE("predictors: of several remembered streams the one that a thread reads is found, and left at its end") {
  // Ranks 0 to 3 read a header first, then every fourth block, each from its own on.
  KnownReads known;
  std::vector<Reads> ranks;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    Reads reads = {{0, 512}};
    for (std::int64_t n = 0; n < 40; ++n) reads.push_back({4096 * (4 * n + rank + 1), 4096});
    if (rank > 0) known.ends.push_back(known.reads.size());
    known.reads.insert(known.reads.end(), reads.begin(), reads.end());
    ranks.push_back(reads);
  }
  for (const Reads& reads : ranks) {
    const auto predictor = remembered_predictor(std::make_shared<const KnownReads>(known));
    CHECK(score_of(*predictor, reads, 2).right == reads.size() - 2);  // the header is every rank's
    CHECK(!predictor->expected(1));                                   // not the next rank's header
  }
  // No step leads from a rank's last block back to the next one's header.
  const BlockTransitions model = transitions_of(known, 4096);
  for (const BlockTransition& each : model.transitions) CHECK(each.to > each.from);
}

TEST_CASE(
    "predictors: in a declared order, parts of a record are reads of it, and records of other threads are left out") {
  KnownReads known;
  std::vector<std::int64_t> order(200);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(3));
  for (const std::int64_t n : order) known.reads.push_back({1000 * n, 1000});
  const auto shared = std::make_shared<const KnownReads>(known);

  const auto parts = records_predictor(shared);  // a header of 8 bytes, then the rest
  for (std::size_t n = 0; n + 1 < known.reads.size(); ++n)
    for (const FileRead part : {FileRead{known.reads[n].offset, 8}, {known.reads[n].offset + 8, 992}}) {
      CHECK(parts->observe(part));
      CHECK(parts->expected(1) == known.reads[n + 1]);
    }

  const auto every_third = records_predictor(shared);  // of three threads
  for (std::size_t n = 2; n + 1 < known.reads.size(); n += 3) {
    CHECK(every_third->observe(known.reads[n]));
    CHECK(every_third->expected(1) == known.reads[n + 1]);
    CHECK(every_third->confidence() > 0.9);
  }

  const auto elsewhere = records_predictor(shared);
  CHECK(elsewhere->expected(200) == known.reads[199]);
  CHECK_FALSE(elsewhere->expected(201));
  CHECK_FALSE(elsewhere->observe({200'000, 10}));  // behind the last record
  CHECK_FALSE(elsewhere->expected(1));
  CHECK_FALSE(elsewhere->observe({known.reads[150].offset + 990, 10}));  // far off, but in the order again
  CHECK(elsewhere->expected(1) == known.reads[151]);
  CHECK_FALSE(elsewhere->observe({known.reads[100].offset + 990, 11}));  // beyond the end of the record
  CHECK_FALSE(elsewhere->expected(1));
}

TEST_CASE("predictors: an order that the program does not follow is expected no more") {
  KnownReads known;
  for (std::int64_t n = 0; n < 1000; ++n) known.reads.push_back({1000 * n, 1000});
  const auto predictor = records_predictor(std::make_shared<const KnownReads>(known));
  std::mt19937 random(4);
  for (int n = 0; n < 40; ++n) (void)predictor->observe({1000 * static_cast<std::int64_t>(random() % 1000), 1000});
  CHECK(predictor->confidence() < 0.5);
  CHECK_FALSE(predictor->expected(1));
}

TEST_CASE("predictors: the reads of a pattern are remembered, and what is no pattern of reads is refused") {
  const Reads reads = nested({{50, 65536}, {10, 4096}}, 4096);
  DetectOptions options;
  options.columns = 2;
  Detector detector(options);
  for (const FileRead& read : reads) detector.push(std::array{read.offset, read.length});
  Pattern pattern = detector.finish();
  CHECK(reads_of(pattern).error().kind == ErrorKind::bad_input);  // its columns are not named
  pattern.kinds[0] = Column::logical;
  pattern.kinds[1] = Column::length;
  CHECK(reads_of(pattern).value().reads == reads);
  CHECK(reads_of(pattern).value().ends.empty());
  Pattern of_three = detect(std::array<std::int64_t, 15>{0, 8, 5, 9, 8, 5, 0, 8, 6, 9, 8, 6, 7, 8, 2}, {.columns = 3});
  of_three.kinds = {Column::logical, Column::length, Column::id};
  CHECK(reads_of(of_three).value().ends == std::vector<std::size_t>{2, 4});  // where 5 becomes 6, and 6 becomes 2
}

TEST_CASE("predictors: the Markov model of the paper's example expects block 6 after block 3") {
  Reads reads;
  for (const std::int64_t block : {2, 3, 6, 7, 10, 11}) reads.push_back({block * 8192, 8192});
  const auto model = std::make_shared<const BlockTransitions>(transitions_of({reads}, 8192));
  CHECK(model->transitions.size() == 5);
  const auto predictor = markov_predictor(model);
  (void)predictor->observe({3 * 8192, 8192});
  CHECK(predictor->expected(1) == FileRead{6 * 8192, 8192});
  CHECK(predictor->expected(2) == FileRead{7 * 8192, 8192});
  CHECK(!predictor->expected(5));
  CHECK(score_of(*markov_predictor(model), reads, 1).right == 5);
  // Blocks that it has not seen: the paper's weakness.
  for (FileRead& read : reads) read.offset += 1 << 20;
  CHECK(score_of(*markov_predictor(model), reads, 1).right == 0);
}

TEST_CASE("predictors: the paper's expects a stride, and with its tree the units of an outer loop") {
  CHECK(score_of(*paper_predictor(), nested({{500, 12288}}, 4096), 40).share() > 0.95);
  const Score nest = score_of(*paper_predictor(), nested({{100, 1 << 20}, {8, 8192}}, 4096), 100);
  CHECK(nest.share() > 0.9);
}

}  // namespace iosig
