// What a lookup costs on patterns as they are: one byte at random, all pieces in order, and making the lookup.
// Targets: one nest 50 ns, 10^4 nests 200 ns; `unlike_strides` is the worst interleaving, for which there is no index.

#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "iosig/analyze/lookup.h"
#include "iosig/model/pattern_builder.h"

namespace {

using namespace iosig;

constexpr std::int64_t block = 4096, turns = 1 << 18;
constexpr std::array<std::int8_t, max_columns> follows_none = {-1, -1, -1, -1, -1, -1, -1, -1};
constexpr std::array<std::int8_t, max_columns> physical_follows = {-1, -1, 1, -1, -1, -1, -1, -1};

/// for i < trips { (first + i stride, length, i length, id) }
void add_strided(PatternBuilder& builder, std::int64_t first, std::int64_t stride, std::int64_t trips,
                 std::int64_t length, std::int64_t id) {
  const std::array<Node, 2> nodes = {Node{true, 2, 0}, Node{false, 2, 1}};
  const std::array<std::int64_t, 9> numbers = {trips, first, stride, length, 0, 0, length, id, 0};
  builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(trips));
}

/// for i < rows { for j < columns + slope i { (first + i row + j stride, block, block (i columns + j), id) } }
void add_tiled(PatternBuilder& builder, std::int64_t first, std::int64_t rows, std::int64_t row, std::int64_t columns,
               std::int64_t slope, std::int64_t stride, std::int64_t id) {
  const std::array<Node, 3> nodes = {Node{true, 3, 0}, Node{true, 3, 1}, Node{false, 3, 3}};
  const std::array<std::int64_t, 15> numbers = {rows, columns, slope,           first, row, stride, block, 0,
                                                0,    0,       block * columns, block, id,  0,      0};
  builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(rows * columns + slope * rows * (rows - 1) / 2));
}

Pattern one_nest() {
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, 2 * block, turns, block, 0);
  return builder.finish();
}

Pattern one_nest_of_3_loops() {  // time steps, blocks, ranks: all of an N-1 strided file folded
  PatternBuilder builder(4, follows_none);
  const std::array<Node, 4> nodes = {Node{true, 4, 0}, Node{true, 4, 1}, Node{true, 4, 3}, Node{false, 4, 6}};
  const std::array<std::int64_t, 22> numbers = {100,
                                                1024,
                                                0,
                                                512,
                                                0,
                                                0,
                                                0,
                                                (block + 64) * 1024 * 512,
                                                (block + 64) * 512,
                                                block + 64,
                                                block,
                                                0,
                                                0,
                                                0,
                                                0,
                                                block * 1024,
                                                block,
                                                0,
                                                0,
                                                0,
                                                0,
                                                1};
  builder.add_nest(nodes, numbers, 100 * 1024 * 512);
  return builder.finish();
}

Pattern one_triangular_nest() {
  PatternBuilder builder(4, follows_none);
  add_tiled(builder, 0, 1000, 2000 * block, 1, 1, block, 0);
  return builder.finish();
}

Pattern one_nest_with_exceptions() {  // one in a hundred
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, 2 * block, turns, block, 0);
  for (std::uint64_t n = 0; n < turns; n += 100) {
    const std::array<std::int64_t, 4> vector = {static_cast<std::int64_t>(n) * 2 * block, block / 2, 0, 0};
    builder.add_exception(n, vector.data());
  }
  return builder.finish();
}

Pattern one_nest_over_itself() {  // elements of two strides
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, block / 2, turns, block, 0);
  return builder.finish();
}

Pattern one_log_of_varying_lengths() {  // physical offsets by the sums of PatternIndex
  PatternBuilder builder(4, physical_follows);
  const std::array<Node, 2> nodes = {Node{true, 2, 0}, Node{false, 2, 1}};
  const std::array<std::int64_t, 9> numbers = {turns, 0, 1 << 18, 64, 1, 0, 0, 0, 0};
  builder.add_nest(nodes, numbers, turns);
  return builder.finish();
}

Pattern strided_by_10000_ranks() {
  PatternBuilder builder(4, follows_none);
  for (std::int64_t r = 0; r < 10000; ++r) add_strided(builder, r * block, 10000 * block, turns, block, r);
  return builder.finish();
}

Pattern strided_by_100_ranks_in_100_phases() {
  PatternBuilder builder(4, follows_none);
  for (std::int64_t phase = 0; phase < 100; ++phase)
    for (std::int64_t r = 0; r < 100; ++r)
      add_strided(builder, phase * 900 * 100 * block + r * block, 100 * block, 1000, block, r);
  return builder.finish();
}

Pattern tiled_by_10000_ranks() {  // 100 by 100 ranks in a matrix of blocks that they share cyclically
  PatternBuilder builder(4, follows_none);
  constexpr std::int64_t columns = 64, row = columns * 100 * block;
  for (std::int64_t r = 0; r < 10000; ++r)
    add_tiled(builder, r / 100 * row + r % 100 * block, 64, 100 * row, columns, 0, 100 * block, r);
  return builder.finish();
}

Pattern segments_of_10000_ranks() {
  PatternBuilder builder(4, follows_none);
  for (std::int64_t r = 0; r < 10000; ++r) add_strided(builder, r * turns * block, block, turns, block, r);
  return builder.finish();
}

Pattern overwritten_10000_times() {  // the same blocks again and again
  PatternBuilder builder(4, follows_none);
  for (std::int64_t r = 0; r < 10000; ++r) add_strided(builder, 0, 2 * block, turns, block, r);
  return builder.finish();
}

Pattern unlike_strides_of_10000_ranks() {  // each from the beginning to the end, none like another
  PatternBuilder builder(4, follows_none);
  for (std::int64_t r = 0; r < 10000; ++r) add_strided(builder, r, (1 << 24) + 2 * r + 1, turns, 8, r);
  return builder.finish();
}

Pattern strided_by_100_ranks_of_100_kinds() {  // each kind with a stride of its own, all over each other
  PatternBuilder builder(4, follows_none);
  for (std::int64_t kind = 0; kind < 100; ++kind)
    for (std::int64_t r = 0; r < 100; ++r) add_strided(builder, r * block, 100 * block + 8 * kind, turns, block, r);
  return builder.finish();
}

Pattern million_literals() {
  std::mt19937_64 random(1);
  PatternBuilder builder(4, follows_none);
  for (std::int64_t n = 0; n < 1000000; ++n) {
    const std::array<std::int64_t, 4> vector = {static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40)), block,
                                                n * block, 0};
    builder.add_literal(vector.data());
  }
  return builder.finish();
}

void find_one(benchmark::State& state, const Pattern& pattern) {
  const auto lookup = PatternLookup::of(pattern);
  if (!lookup) return state.SkipWithError(lookup.error().message.c_str());
  std::mt19937_64 random(7);
  std::vector<std::int64_t> offsets(1 << 14);
  for (std::int64_t& offset : offsets)
    offset = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(lookup->size()));
  std::size_t n = 0, holes = 0;
  for (auto _ : state)
    lookup->find(offsets[n++ % offsets.size()], 1, [&](const Piece& piece) { holes += piece.is_hole; });
  state.counters["holes"] = static_cast<double>(holes) / static_cast<double>(n);
  state.counters["B/term"] = static_cast<double>(lookup->memory_bytes()) / static_cast<double>(pattern.terms.size());
  state.counters["groups"] = static_cast<double>(lookup->groups());
}

void iterate(benchmark::State& state, const Pattern& pattern) {
  const auto lookup = PatternLookup::of(pattern);
  if (!lookup) return state.SkipWithError(lookup.error().message.c_str());
  PieceCursor cursor(*lookup);
  Piece piece;
  for (auto _ : state)
    if (!cursor.next(piece)) cursor = PieceCursor(*lookup);
}

void make(benchmark::State& state, const Pattern& pattern) {
  for (auto _ : state) benchmark::DoNotOptimize(PatternLookup::of(pattern));
  state.counters["terms"] = static_cast<double>(pattern.terms.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::pair<std::string, Pattern>> patterns = {
      {"one_nest", one_nest()},
      {"one_nest_of_3_loops", one_nest_of_3_loops()},
      {"one_nest_over_itself", one_nest_over_itself()},
      {"one_triangular_nest", one_triangular_nest()},
      {"one_nest_with_exceptions", one_nest_with_exceptions()},
      {"one_log_of_varying_lengths", one_log_of_varying_lengths()},
      {"segments_of_10000_ranks", segments_of_10000_ranks()},
      {"strided_by_10000_ranks", strided_by_10000_ranks()},
      {"strided_by_100_ranks_in_100_phases", strided_by_100_ranks_in_100_phases()},
      {"tiled_by_10000_ranks", tiled_by_10000_ranks()},
      {"overwritten_10000_times", overwritten_10000_times()},
      {"strided_by_100_ranks_of_100_kinds", strided_by_100_ranks_of_100_kinds()},
      {"unlike_strides_of_10000_ranks", unlike_strides_of_10000_ranks()},
      {"million_literals", million_literals()},
  };
  for (const auto& [name, pattern] : patterns) {
    const Pattern& it = pattern;
    benchmark::RegisterBenchmark(("find/" + name).c_str(), [&it](benchmark::State& state) { find_one(state, it); });
    benchmark::RegisterBenchmark(("iterate/" + name).c_str(), [&it](benchmark::State& state) { iterate(state, it); });
    benchmark::RegisterBenchmark(("make/" + name).c_str(), [&it](benchmark::State& state) {
      make(state, it);
    })->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
