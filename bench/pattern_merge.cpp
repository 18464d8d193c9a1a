// What merging the descriptions of many processes costs, how small it makes them, and what of it had to be expanded.
// Baseline: one detector that sees all accesses in the order in which they happened.

#include <benchmark/benchmark.h>

#include <functional>
#include <random>
#include <string>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/merge.h"
#include "iosig/format/pattern_binary.h"

namespace {

using namespace iosig;

struct Access {
  std::int64_t logical, length;
};

/// What access `n` of `rank` is; sequence numbers say that the ranks take turns.
struct Case {
  std::string name;
  std::int64_t ranks, count;
  std::function<Access(std::int64_t rank, std::int64_t n)> access;
  bool has_sequence = false;
};

const std::vector<Case>& cases() {
  constexpr std::int64_t block = 4096;
  static const std::vector<Case> all = {
      {"strided/512x262144", 512, 262144,
       [](auto rank, auto n) {
         return Access{(n * 512 + rank) * block, block};
       }},
      {"strided/8192x64", 8192, 64,
       [](auto rank, auto n) {
         return Access{(n * 8192 + rank) * block, block};
       }},
      {"grid/64x64x256", 4096, 256,
       [](auto rank, auto n) {
         return Access{(rank / 64 * 256 + n) * 64 * 512 + rank % 64 * 512, 512};
       }},
      {"unlike_lengths/4096x8", 4096, 8,
       [](auto rank, auto n) {
         const std::int64_t length = 512 + (rank * 7919 + n * 104729) % 4096;  // of every rank its own
         return Access{rank * 65536 + n * 8192, length};
       }},
      {"ghost_cells/64x4096", 64, 4096,
       [](auto rank, auto n) {
         return Access{(n * 64 + rank) * block, block + 64};
       },
       true},
      {"random/64x4096", 64, 4096,
       [](auto rank, auto n) {
         std::mt19937_64 random(static_cast<std::uint64_t>(rank * 4096 + n));
         return Access{static_cast<std::int64_t>(random() >> 24), static_cast<std::int64_t>(random() >> 48)};
       },
       true},
  };
  return all;
}

std::vector<Pattern> locals_of(const Case& job) {
  std::vector<Pattern> patterns;
  DetectOptions options{.columns = job.has_sequence ? 4U : 3U};
  options.follows[2] = 1;
  for (std::int64_t rank = 0; rank < job.ranks; ++rank) {
    Detector detector(options);
    std::int64_t physical = 0;
    for (std::int64_t n = 0; n < job.count; ++n) {
      const Access access = job.access(rank, n);
      const std::array<std::int64_t, 4> vector{access.logical, access.length, physical, n * job.ranks + rank};
      detector.push(std::span(vector).first(options.columns));
      physical += access.length;
    }
    patterns.push_back(detector.finish());
  }
  return patterns;
}

benchmark::Counter per_rank(const Case& job) {  // seconds
  return {static_cast<double>(job.ranks), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
}

void merge(benchmark::State& state, const Case& job) {
  const std::vector<Pattern> patterns = locals_of(job);
  std::vector<LocalPattern> locals;
  std::size_t local_bytes = 0;
  for (std::size_t n = 0; n < patterns.size(); ++n) {
    locals.push_back({&patterns[n], static_cast<std::int64_t>(n)});
    local_bytes += pattern_bytes(patterns[n]).size();
  }
  MergedPattern merged;
  for (auto _ : state) merged = *merge_patterns(locals);
  state.counters["per_rank"] = per_rank(job);
  state.counters["local_B"] = static_cast<double>(local_bytes);
  state.counters["merged_B"] = static_cast<double>(pattern_bytes(merged.pattern).size());
  state.counters["expanded"] = static_cast<double>(merged.interleaved) / static_cast<double>(job.ranks * job.count);
}

void detect_all(benchmark::State& state, const Case& job) {
  Pattern pattern;
  for (auto _ : state) {
    Detector detector({.columns = 4});
    std::vector<std::int64_t> physical(static_cast<std::size_t>(job.ranks));
    for (std::int64_t n = 0; n < job.count; ++n)
      for (std::int64_t rank = 0; rank < job.ranks; ++rank) {
        const Access access = job.access(rank, n);
        std::int64_t& end = physical[static_cast<std::size_t>(rank)];
        detector.push(std::array{access.logical, access.length, end, rank});
        end += access.length;
      }
    pattern = detector.finish();
  }
  state.counters["per_rank"] = per_rank(job);
  state.counters["merged_B"] = static_cast<double>(pattern_bytes(pattern).size());
}

}  // namespace

int main(int argc, char** argv) {
  for (const Case& job : cases()) {
    benchmark::RegisterBenchmark(("merge/" + job.name).c_str(), [&](auto& state) { merge(state, job); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("detect_all/" + job.name).c_str(), [&](auto& state) { detect_all(state, job); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
