// Numbers worked by hand: 4 ranks, each with a block of 8 x 8 of 16 x 16 doubles.
#include <doctest/doctest.h>

#include <vector>

#include "iosig/cost/collective.h"

using namespace iosig;

namespace {

/// Blocks: each rank has 8 pieces of 64 bytes, which span 7 rows of 128 bytes and one piece. Ghost cells: 8 pieces of
/// memory, too. Slabs: each rank has 4 whole rows, and memory without ghost cells.
constexpr SharedTransfer blocks{
    .ranks = 4, .memory_pieces = 32, .file_pieces = 32, .bytes = 2048, .spanned_bytes = 4 * 960};
constexpr SharedTransfer slabs{.ranks = 4, .memory_pieces = 4, .file_pieces = 4, .bytes = 2048, .spanned_bytes = 2048};
constexpr TransferTerms costs{
    .outputs = 0.5, .calls = 0.25, .memory_pieces = 1, .file_pieces = 2, .interleaved_bytes = 1e-2, .bytes = 1e-3};

double seconds(TransferMethod method, std::vector<SharedTransfer> data_sets) {
  return predicted_seconds(work_of(method, data_sets), costs);
}

}  // namespace

TEST_CASE("collective: a nonblocking output synchronises once, a two-phase one for each data set") {
  CHECK(seconds(TransferMethod::two_phase, {slabs, slabs}) == doctest::Approx(0.5 + 2 + 8 + 16 + 4.096));
  CHECK(seconds(TransferMethod::nonblocking, {slabs, slabs}) == doctest::Approx(0.5 + 1 + 8 + 16 + 4.096));
}

TEST_CASE("collective: sieving moves the gaps twice, but only where a rank has several pieces of the file") {
  CHECK(work_of(TransferMethod::sieving, std::vector{blocks}).bytes == 2 * 3840);
  CHECK(work_of(TransferMethod::requests, std::vector{blocks}).bytes == 2048);
  CHECK(work_of(TransferMethod::sieving, std::vector{slabs}) == work_of(TransferMethod::requests, std::vector{slabs}));
}

TEST_CASE("collective: bytes are interleaved where a rank has several pieces of the file") {
  CHECK(work_of(TransferMethod::requests, std::vector{blocks, slabs}).interleaved_bytes == 2048);
  CHECK(work_of(TransferMethod::sieving, std::vector{blocks}).interleaved_bytes == 2048);
}

TEST_CASE("collective: costs are found again from times that they predict") {
  std::vector<MeasuredTransfer> measured;
  for (const std::vector<SharedTransfer>& each :
       {std::vector{slabs}, {slabs, slabs}, {blocks}, {slabs, blocks}, {slabs, slabs, slabs}}) {
    for (const double pieces : {1.0, 3.0}) {
      std::vector<SharedTransfer> data_sets = each;
      data_sets[0].memory_pieces *= pieces;
      data_sets[0].bytes *= 100 * pieces * pieces;
      data_sets.back().file_pieces *= 4 * pieces;
      const TransferTerms work = work_of(TransferMethod::requests, data_sets);
      measured.push_back({work, predicted_seconds(work, costs)});
    }
  }
  const auto found = fitted_costs(measured);
  REQUIRE(found);
  CHECK(found->outputs == doctest::Approx(0.5));
  CHECK(found->calls == doctest::Approx(0.25));
  CHECK(found->memory_pieces == doctest::Approx(1));
  CHECK(found->file_pieces == doctest::Approx(2));
  CHECK(found->interleaved_bytes == doctest::Approx(1e-2));
  CHECK(found->bytes == doctest::Approx(1e-3));
}

TEST_CASE("collective: no cost is negative, though times fall with the pieces") {
  const TransferTerms few{.outputs = 1, .file_pieces = 1}, many{.outputs = 1, .file_pieces = 10};
  const auto found = fitted_costs(std::vector<MeasuredTransfer>{{few, 2}, {many, 1}});
  REQUIRE(found);
  CHECK(found->file_pieces == 0);
  CHECK(found->outputs == doctest::Approx(1.2));  // the minimum of (x / 2 - 1)^2 + (x - 1)^2
}

TEST_CASE("collective: a fit needs times") {
  CHECK(fitted_costs({}).error().kind == ErrorKind::bad_input);
  CHECK(fitted_costs(std::vector<MeasuredTransfer>{{{.outputs = 1}, 0}}).error().kind == ErrorKind::bad_input);
}
