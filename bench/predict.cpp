// Measures the cost of a predictor for each read of a program: observe(), and the expected reads that the engine asks
// for.
//
//   build/bin/bench_predict [DEPTH]
//
// DEPTH (default 16): the engine asks for the read that many ahead, after each read; after a surprise for all of them.
// Prints processor time per read in ns (the target is at most 200), the share of the reads that were expected just so
// as the next one, and the bytes of the model. "remembered" and "markov" know the reads beforehand.

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "iosig/decide/predictors.h"

namespace {

using namespace iosig;
using Reads = std::vector<FileRead>;

constexpr std::int64_t block = 8192;
constexpr std::size_t count = 200'000;

Reads sequential() {
  Reads reads;
  for (std::size_t n = 0; n < count; ++n) reads.push_back({static_cast<std::int64_t>(n) * block, block});
  return reads;
}

/// for i { for j < 20 { for k < 50 { (i plane + j row + k stride, block) } } }
Reads nested() {
  Reads reads;
  for (std::int64_t i = 0; reads.size() < count; ++i)
    for (std::int64_t j = 0; j < 20; ++j)
      for (std::int64_t k = 0; k < 50; ++k)
        reads.push_back({i * 1000 * block * 40 + j * 70 * block + k * block, block});
  return reads;
}

/// Another stride every 500 reads.
Reads changing() {
  Reads reads;
  std::mt19937_64 random(1);
  while (reads.size() < count) {
    const auto stride = static_cast<std::int64_t>(1 + random() % 1000) * block;
    const auto first = static_cast<std::int64_t>(random() % 1'000'000) * block;
    for (std::int64_t n = 0; n < 500; ++n) reads.push_back({first + n * stride, block});
  }
  return reads;
}

/// A nest, and one read in a hundred anywhere.
Reads noisy() {
  Reads reads;
  std::mt19937_64 random(2);
  for (const FileRead& read : nested()) {
    if (random() % 100 == 0) reads.push_back({static_cast<std::int64_t>(random() % 10'000'000) * block, block});
    reads.push_back(read);
  }
  return reads;
}

Reads at_random() {
  Reads reads;
  std::mt19937_64 random(3);
  for (std::size_t n = 0; n < count; ++n)
    reads.push_back({static_cast<std::int64_t>(random() % 10'000'000) * block, block});
  return reads;
}

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(std::string_view trace, PredictorKind kind, ReadPredictor& predictor, const Reads& reads,
             std::size_t depth) {
  std::size_t right = 0;
  std::int64_t asked = 0;  // keeps the compiler from leaving out the questions
  const double begin_s = cpu_s();
  for (const FileRead& read : reads) {
    right += predictor.expected(1) == read ? 1 : 0;
    if (!predictor.observe(read))
      for (std::size_t ahead = 1; ahead < depth; ++ahead)
        if (const auto next = predictor.expected(ahead)) asked += next->offset;
    if (const auto next = predictor.expected(depth)) asked += next->offset;
  }
  const double each_ns = 1e9 * (cpu_s() - begin_s) / static_cast<double>(reads.size());
  fmt::print("{:<11} {:<11} {:>8.0f} {:>8.1f}% {:>12}{}\n", trace, name_of(kind), each_ns,
             100.0 * static_cast<double>(right) / static_cast<double>(reads.size()), predictor.model_bytes(),
             asked == -1 ? " " : "");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t depth = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16;
  if (depth == 0) {
    fmt::print(stderr, "bench_predict: DEPTH '{}': expected a number above 0\n", argv[1]);
    return 2;
  }
  fmt::print("{:<11} {:<11} {:>8} {:>9} {:>12}\n", "reads", "predictor", "ns/read", "expected", "model bytes");
  const std::pair<std::string_view, Reads> traces[] = {{"sequential", sequential()},
                                                       {"nested", nested()},
                                                       {"changing", changing()},
                                                       {"noisy", noisy()},
                                                       {"random", at_random()}};
  for (const auto& [name, reads] : traces) {
    const auto known = std::make_shared<const KnownReads>(KnownReads{reads});
    const auto model = std::make_shared<const BlockTransitions>(transitions_of({reads}, default_markov_block_bytes));
    measure(name, PredictorKind::pattern, *pattern_predictor(), reads, depth);
    measure(name, PredictorKind::paper, *paper_predictor(), reads, depth);
    measure(name, PredictorKind::markov, *markov_predictor(model), reads, depth);
    measure(name, PredictorKind::remembered, *remembered_predictor(known), reads, depth);
  }
}
