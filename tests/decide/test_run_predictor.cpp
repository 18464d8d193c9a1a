#include <doctest/doctest.h>

#include <vector>

#include "iosig/decide/run_predictor.h"

using namespace iosig;

namespace {

/// Returns at which reads the predictor was wrong, or had nothing to say.
std::vector<std::size_t> unforeseen(const std::vector<FileRead>& reads) {
  RunPredictor predictor;
  std::vector<std::size_t> found;
  for (std::size_t n = 0; n < reads.size(); ++n) {
    const auto next = predictor.expected(1);
    if (!next || next->offset != reads[n].offset || next->length != reads[n].length) found.push_back(n);
    (void)predictor.observe(reads[n]);
  }
  return found;
}

}  // namespace

TEST_CASE("run predictor: a strided stream is known after three reads, and far ahead") {
  std::vector<FileRead> reads;
  for (std::int64_t n = 0; n < 100; ++n) reads.push_back({n * 100, 10});
  CHECK(unforeseen(reads) == std::vector<std::size_t>{0, 1, 2});
  RunPredictor predictor;
  for (int n = 0; n < 5; ++n) (void)predictor.observe(reads[n]);
  CHECK(predictor.expected(64)->offset == 6800);  // (4 + 64) * 100
  CHECK(predictor.observe(reads[5]));
  CHECK_FALSE(predictor.observe({7, 10}));  // another phase
}

TEST_CASE("run predictor: a nest is known when its outer loop has come round once") {
  std::vector<FileRead> reads;
  for (std::int64_t outer = 0; outer < 6; ++outer)
    for (std::int64_t inner = 0; inner < 7; ++inner) reads.push_back({outer * 1000 + inner * 50, 8});
  const auto wrong = unforeseen(reads);
  CHECK(wrong.back() < 16);  // two inner loops have 14 reads
}

TEST_CASE("run predictor: random reads give no confidence") {
  RunPredictor predictor;
  for (std::uint64_t n = 0, state = 1; n < 1000; ++n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    (void)predictor.observe({static_cast<std::int64_t>(state >> 40) * 4096, 4096});
  }
  CHECK(predictor.confidence() < 0.05);
}
