// MILC, lattice quantum chromodynamics: one gauge configuration saved in the three ways of PATTERN Fig. 16.
//
// From MILC's sources: a site holds 4 links, each a 3 x 3 matrix of single-precision complex numbers (288 bytes); x
// runs fastest in the file, then y, z, t; the lattice is divided among ranks by layout_hyper_prime; w_parallel gives
// each rank a contiguous share, written in buffers of 4096 sites, behind a header of 88 bytes and a checksum of 8.
#include <algorithm>

#include "families.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

using Extents = std::array<std::uint64_t, 4>;  ///< in sites: x, y, z, t

struct Layout {
  Extents lattice, part;      ///< all / one rank's
  Extents parts{1, 1, 1, 1};  ///< in each direction
};

/// As layout_hyper_prime: by the primes of `ranks`, largest first, each time the longest side that the prime divides;
/// of equal ones the first that is divided already, else the first.
Result<Layout> layout_of(const Parameters& told) {
  const Extents lattice{told.values.at("nx"), told.values.at("ny"), told.values.at("nz"), told.values.at("nt")};
  Layout layout{lattice, lattice};
  std::vector<std::uint64_t> primes;
  std::uint64_t rest = told.ranks;
  for (std::uint64_t prime = 2; prime * prime <= rest; ++prime)
    for (; rest % prime == 0; rest /= prime) primes.push_back(prime);
  if (rest > 1) primes.push_back(rest);
  std::ranges::reverse(primes);
  for (const std::uint64_t prime : primes) {
    std::size_t best = lattice.size();
    for (std::size_t side = 0; side < lattice.size(); ++side) {
      if (layout.part[side] % prime != 0) continue;
      const bool is_longer = best == lattice.size() || layout.part[side] > layout.part[best];
      const bool is_divided =
          !is_longer && layout.part[side] == layout.part[best] && layout.parts[side] > 1 && layout.parts[best] == 1;
      if (is_longer || is_divided) best = side;
    }
    if (best == lattice.size())
      return fail(ErrorKind::bad_input,
                  "{} ranks cannot share a lattice of {} x {} x {} x {}: no side is left that {} "
                  "divides; choose other --ranks, --nx, --ny, --nz or --nt",
                  told.ranks, lattice[0], lattice[1], lattice[2], lattice[3], prime);
    layout.part[best] /= prime;
    layout.parts[best] *= prime;
  }
  return layout;
}

std::uint64_t bytes_of(const Parameters& told) {
  return product(
      {told.values.at("nx"), told.values.at("ny"), told.values.at("nz"), told.values.at("nt"), told.values.at("site")});
}

// A rank writes its own sites where they belong, a row in x at a time.
Result<Plan> plan_milc_a(const Parameters& told) {
  const auto layout = layout_of(told);
  if (!layout) return pass_on(layout.error());
  Plan plan{.file_bytes = bytes_of(told)};
  plan.nests = [layout = *layout, site = told.values.at("site")](std::uint64_t rank) {
    Extents stride{site}, begin{};
    for (std::size_t side = 1; side < stride.size(); ++side) stride[side] = stride[side - 1] * layout.lattice[side - 1];
    std::uint64_t offset = 0, left = rank;
    for (std::size_t side = 0; side < begin.size(); ++side) {
      offset += left % layout.parts[side] * layout.part[side] * stride[side];
      left /= layout.parts[side];
    }
    return nests_of(
        {{.offset_bytes = offset,
          .length_bytes = layout.part[0] * site,
          .loops = {{{layout.part[3], stride[3]}, {layout.part[2], stride[2]}, {layout.part[1], stride[1]}}}}});
  };
  return plan;
}

// Sites are exchanged first, so that each rank writes a contiguous share in buffers; `header_bytes` > 0: every rank
// writes the header before.
Result<Plan> plan_shares(const Parameters& told, std::uint64_t header_bytes) {
  const auto layout = layout_of(told);
  if (!layout) return pass_on(layout.error());
  const std::uint64_t site = told.values.at("site"), buffer = told.values.at("buffer");
  const std::uint64_t sites = product({layout->part[0], layout->part[1], layout->part[2], layout->part[3]});
  Plan plan{.file_bytes = sum({header_bytes, bytes_of(told)})};
  plan.nests = [=](std::uint64_t rank) {
    const std::uint64_t share = header_bytes + rank * sites * site, full = sites / buffer;
    return nests_of(
        {{.length_bytes = header_bytes, .loops = {{{}, {}, {header_bytes > 0 ? 1U : 0U, 0}}}, .is_shared = true},
         {.offset_bytes = share,
          .length_bytes = std::min(buffer, sites) * site,
          .loops = {{{}, {}, {full, std::min(buffer, sites) * site}}}},
         {.offset_bytes = share + (sites - sites % buffer) * site,
          .length_bytes = sites % buffer * site,
          .loops = {{{}, {}, {sites % buffer > 0 ? 1U : 0U, 0}}}}});
  };
  return plan;
}

Result<Plan> plan_milc_b(const Parameters& told) { return plan_shares(told, 0); }
Result<Plan> plan_milc_c(const Parameters& told) { return plan_shares(told, told.values.at("header")); }

}  // namespace

std::vector<Workload> milc_workloads() {
  const std::vector<Parameter> lattice{
      {"nx", 16, false, 1, "sites in x; ours, so that 16 ranks give the 2-d strides of Fig. 16 (A)"},
      {"ny", 16, false, 1, "sites in y; ours"},
      {"nz", 16, false, 1, "sites in z; ours"},
      {"nt", 32, false, 1, "sites in t; ours"},
      {"site", 288, true, 1, "bytes of a site; MILC: 4 links of 9 complex floats"}};
  std::vector<Parameter> shares = lattice;
  shares.push_back({"buffer", 4096, false, 1, "sites of a write; MILC: MAX_BUF_LENGTH"});
  std::vector<Parameter> headed = shares;
  headed.push_back({"header", 96, true, 1, "bytes; MILC: 88 and a checksum of 8"});
  return {
      {"milc-a", "small pieces with 2-d strides: rows of the ranks' own sites",
       "MILC: PATTERN section 3.2.1, Fig. 16 (A)", lattice, plan_milc_a},
      {"milc-b", "one contiguous part for each rank, in buffers", "MILC: PATTERN section 3.2.1, Fig. 16 (B)", shares,
       plan_milc_b},
      {"milc-c", "the same behind a header that every rank writes", "MILC: PATTERN section 3.2.1, Fig. 16 (C)", headed,
       plan_milc_c},
  };
}

}  // namespace iosig::workloads
