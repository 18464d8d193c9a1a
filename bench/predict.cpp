// The time of a prediction: a read is observed, and the one 16 reads ahead asked for, as the prefetch engine does.
//
//   bench_predict
//
// Prints for each predictor and sequence nanoseconds a read, the share of reads that were expected just so, and the
// size of what the predictor knows at the end.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "iosig/decide/predictors.h"

namespace {

using namespace iosig;
using Reads = std::vector<FileRead>;

constexpr std::size_t reads_count = 200'000, ahead = 16;

Reads strided() {
  Reads reads;
  for (std::size_t n = 0; n < reads_count; ++n) reads.push_back({static_cast<std::int64_t>(n) * 262'144, 4096});
  return reads;
}

/// Three loops: blocks of rows of a plane.
Reads nested() {
  Reads reads;
  for (std::int64_t i = 0; reads.size() < reads_count; ++i)
    for (std::int64_t j = 0; j < 40; ++j)
      for (std::int64_t k = 0; k < 8; ++k) reads.push_back({i * (64 << 20) + j * (1 << 20) + k * 16'384, 4096});
  return reads;
}

Reads scattered() {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  Reads reads;
  for (std::size_t n = 0; n < reads_count; ++n)
    reads.push_back({static_cast<std::int64_t>(random() % (1 << 20)) * 4096, 4096});
  return reads;
}

void measure(const std::string& name, const std::string& sequence, const Reads& reads, ReadPredictor& predictor) {
  std::size_t right = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const FileRead& read : reads) {
    const auto next = predictor.expected(1);
    if (next && *next == read) ++right;
    (void)predictor.observe(read);
    (void)predictor.expected(ahead);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto count = static_cast<double>(reads.size());
  fmt::print("{:<12}{:<10}{:>8.0f} ns{:>8.1f} %{:>12} bytes\n", name, sequence, took.count() / count * 1e9,
             100 * static_cast<double>(right) / count, predictor.model_bytes());
}

}  // namespace

int main() {
  for (const auto& [sequence, reads] :
       {std::pair{"strided", strided()}, std::pair{"nested", nested()}, std::pair{"random", scattered()}}) {
    measure("pattern", sequence, reads, *pattern_predictor());
    measure("paper", sequence, reads, *paper_predictor());
    const auto model = std::make_shared<const BlockTransitions>(transitions_of(reads, default_markov_block_bytes));
    measure("markov", sequence, reads, *markov_predictor(model));
    measure("remembered", sequence, reads, *remembered_predictor(std::make_shared<const Reads>(reads)));
  }
  return 0;
}
