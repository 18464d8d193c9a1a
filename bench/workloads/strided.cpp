// FS-TEST's three forms of a checkpoint, and the strided applications of PATTERN section 3.3.
//
// The paper says of these only which loops they have; sizes that it does not print are ours unless a parameter's
// meaning names a source.
#include <algorithm>

#include "families.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

const Parameter fs_test_size{"size", 4 * KiB, true, 1, "bytes of a write; section 3.1: 4 KB"};
const Parameter fs_test_count{"count", 16 * KiB, false, 1, "writes of a rank; Fig. 13: 16384 to 262144"};

Result<Plan> plan_n1_strided(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count"), ranks = told.ranks;
  Plan plan{.file_bytes = product({size, count, ranks})};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.offset_bytes = rank * size, .length_bytes = size, .loops = {{{}, {}, {count, ranks * size}}}}});
  };
  return plan;
}

Result<Plan> plan_n1_segmented(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count");
  Plan plan{.file_bytes = product({size, count, told.ranks})};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.offset_bytes = rank * count * size, .length_bytes = size, .loops = {{{}, {}, {count, size}}}}});
  };
  return plan;
}

Result<Plan> plan_n_n(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count");
  Plan plan{.file_bytes = product({size, count}), .is_one_file = false};
  plan.nests = [=](std::uint64_t) { return nests_of({{.length_bytes = size, .loops = {{{}, {}, {count, size}}}}}); };
  return plan;
}

// A stride of 0 stands for no gap between the rounds.
Result<Plan> plan_nersc(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count");
  const std::uint64_t round = product({size, told.ranks});
  const std::uint64_t stride = told.values.at("stride") > 0 ? told.values.at("stride") : round;
  if (stride < round)
    return fail(ErrorKind::bad_input, "--stride {}: the writes of {} ranks of {} each would overlap; at least {}",
                bytes_text(stride), told.ranks, bytes_text(size), bytes_text(round));
  Plan plan{.file_bytes = sum({product({stride, count - 1}), round})};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.offset_bytes = rank * size, .length_bytes = size, .loops = {{{}, {}, {count, stride}}}}});
  };
  return plan;
}

// Segments in turn, each written in several pieces: strides size and ranks * pieces * size.
Result<Plan> plan_lanl_1(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), pieces = told.values.at("pieces");
  const std::uint64_t segments = told.values.at("segments"), ranks = told.ranks;
  Plan plan{.file_bytes = product({size, pieces, segments, ranks})};
  plan.nests = [=](std::uint64_t rank) {
    const std::uint64_t segment = pieces * size;
    return nests_of({{.offset_bytes = rank * segment,
                      .length_bytes = size,
                      .loops = {{{}, {segments, ranks * segment}, {pieces, size}}}}});
  };
  return plan;
}

// Period p writes pieces of (p + 1) * size bytes, so that each period has a stride of its own.
Result<Plan> plan_lanl_2(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count");
  const std::uint64_t periods = told.values.at("periods"), ranks = told.ranks;
  // 1 + ... + periods; the even one of periods and periods + 1 is halved first
  const auto pieces = [](std::uint64_t p) { return p % 2 == 0 ? product({p / 2, p + 1}) : product({p, (p + 1) / 2}); };
  Plan plan{.file_bytes = product({size, count, ranks, pieces(periods)})};
  plan.nests = [=](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t period) -> std::optional<Nest> {
      if (period >= periods) return std::nullopt;
      const std::uint64_t piece = (period + 1) * size;
      return Nest{.offset_bytes = pieces(period) * size * count * ranks + rank * piece,
                  .length_bytes = piece,
                  .loops = {{{}, {}, {count, ranks * piece}}}};
    };
  };
  return plan;
}

// Variables one after the other, each strided and padded to the alignment.
Result<Plan> plan_lanl_3(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count"), ranks = told.ranks;
  const std::uint64_t variables = told.values.at("variables"), alignment = told.values.at("alignment");
  const std::uint64_t whole = product({size, count, ranks});
  const std::uint64_t units = whole / alignment + (whole % alignment > 0 ? 1 : 0);
  Plan plan{.file_bytes = sum({product({units, alignment, variables - 1}), whole})};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.offset_bytes = rank * size,
                      .length_bytes = size,
                      .loops = {{{}, {variables, units * alignment}, {count, ranks * size}}}}});
  };
  return plan;
}

// HPIO's regions of all ranks in turn, with spacing behind each but the last.
Result<Plan> plan_hpio(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count"), ranks = told.ranks;
  const std::uint64_t spacing = told.values.at("spacing"), step = size + spacing;
  const std::uint64_t whole = product({step, count, ranks});
  Plan plan{.file_bytes = whole == UINT64_MAX ? whole : whole - spacing};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.offset_bytes = rank * step, .length_bytes = size, .loops = {{{}, {}, {count, ranks * step}}}}});
  };
  return plan;
}

}  // namespace

std::vector<Workload> strided_workloads() {
  return {
      {"n1-strided",
       "one file, the ranks' writes in turn",
       "FS-TEST, strided: PATTERN section 3.1, Figs. 13 to 15",
       {fs_test_size, fs_test_count},
       plan_n1_strided},
      {"n1-segmented",
       "one file, a contiguous part for each rank",
       "FS-TEST, not strided: PATTERN section 3",
       {fs_test_size, fs_test_count},
       plan_n1_segmented},
      {"n-n",
       "a file for each rank, written from the front",
       "FS-TEST, N-N: PATTERN section 3",
       {fs_test_size, fs_test_count},
       plan_n_n},
      {"nersc",
       "one file, a fixed stride that can leave gaps",
       "NERSC Pattern I/O: PATTERN section 3.3, \"a single fixed-stride pattern\"",
       {{"size", 50000, true, 1, "bytes of a write; ours: no multiple of a page"},
        {"count", 1000, false, 1, "writes of a rank; ours"},
        {"stride", 0, true, 0, "from a write to the rank's next; 0: ranks * size, no gap"}},
       plan_nersc},
      {"lanl-1",
       "2-d: segments in turn, each in several pieces",
       "LANL App 1: PATTERN section 3.3, \"2-D strided pattern and global pattern was found\"",
       {{"size", 16864, true, 1, "bytes of a write; fs_test's model of a LANL N-1 job in plfs-core issue 49"},
        {"pieces", 2, false, 1, "of a segment; ours: pieces * segments = 934, as in that issue"},
        {"segments", 467, false, 1, "of a rank"}},
       plan_lanl_1},
      {"lanl-2",
       "different strides in different periods of time",
       "LANL App 2, MPI-IO: PATTERN section 3.3; through its own I/O library it is n1-strided",
       {{"size", 4 * KiB, true, 1, "bytes of a write in the first period, twice that in the second, ...; ours"},
        {"count", 256, false, 1, "writes of a rank in a period; ours"},
        {"periods", 4, false, 1, "ours"}},
       plan_lanl_2},
      {"lanl-3",
       "2-d: aligned variables, each strided; gaps between them",
       "LANL App 3: PATTERN section 3.3; section 2.1: 4 GB with 192 MB of index",
       {{"size", KiB, true, 1, "bytes of a write; 4 GB / 192 MB index entries of 48 bytes, as PLFS then had"},
        {"count", 1000, false, 1, "writes of a rank to a variable; ours"},
        {"variables", 8, false, 1, "ours"},
        {"alignment", MiB, true, 1, "where variables begin; ours"}},
       plan_lanl_3},
      {"hpio",
       "regions of all ranks in turn, with spacing between them",
       "HPIO: H2DP section 5.2.2, 40960 regions of 16 ranks",
       {{"size", 64 * KiB, true, 1, "bytes of a region; H2DP: 64 KB to 1 MB"},
        {"count", 2560, false, 1, "regions of a rank; H2DP: 40960 for 16 ranks"},
        {"spacing", 0, true, 0, "bytes between regions; H2DP: 0"}},
       plan_hpio},
  };
}

}  // namespace iosig::workloads
