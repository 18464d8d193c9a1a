// Programs on grids: BTIO, FLASH I/O and Pagoda.
#include <algorithm>
#include <array>

#include "families.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

/// The part of `length` cells that is the `at`-th of `parts`: the first ones are a cell larger, as in BT's make_set.
struct Part {
  std::uint64_t begin, size;
  Part(std::uint64_t length, std::uint64_t parts, std::uint64_t at)
      : begin(at * (length / parts) + std::min(at, length % parts)),
        size(length / parts + (at < length % parts ? 1 : 0)) {}
};

// BT's diagonal multi-partition: p^3 cells for p^2 ranks, of which each rank has one in every layer in z, one further
// in x and one back in y from layer to layer. A row in x of a cell is a write, in the order cell, z, y (subtype
// SIMPLE).
Result<Plan> plan_btio(const Parameters& told) {
  constexpr std::uint64_t smallest_cell = 3;  // BT's own bound
  const std::uint64_t grid = told.values.at("grid"), steps = told.values.at("steps");
  const std::uint64_t element = told.values.at("element");
  std::uint64_t p = 1;
  while ((p + 1) * (p + 1) <= told.ranks) ++p;
  if (p * p != told.ranks)
    return fail(ErrorKind::bad_input, "--ranks {}: BTIO needs a square number, for instance {}", told.ranks, p * p);
  if (grid / p < smallest_cell)
    return fail(ErrorKind::bad_input, "--grid {}: BTIO's cells must be {} wide at least, so {} ranks need {}", grid,
                smallest_cell, told.ranks, p * smallest_cell);
  Plan plan{.file_bytes = product({grid, grid, grid, element, steps})};
  plan.nests = [=](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t index) -> std::optional<Nest> {
      const std::uint64_t step = index / p, layer = index % p;
      if (step >= steps) return std::nullopt;
      const Part x(grid, p, (rank % p + layer) % p), y(grid, p, (rank / p + p - layer) % p), z(grid, p, layer);
      const std::uint64_t row = grid * element, plane = grid * row;
      return Nest{.offset_bytes = step * grid * plane + z.begin * plane + y.begin * row + x.begin * element,
                  .length_bytes = x.size * element,
                  .loops = {{{}, {z.size, plane}, {y.size, row}}}};
    };
  };
  return plan;
}

// A FLASH checkpoint: one data set for each variable, [all blocks][z][y][x], of which a rank writes its blocks at once.
Result<Plan> plan_flash(const Parameters& told) {
  const std::uint64_t blocks = told.values.at("blocks"), variables = told.values.at("variables");
  const std::uint64_t header = told.values.at("header"), zones = told.values.at("zones");
  const std::uint64_t block = product({zones, zones, zones, told.values.at("value")});
  // 80, 81 and 82 blocks in turn: the first blocks of a rank are those of the ranks before it.
  const auto blocks_before = [=](std::uint64_t rank) { return blocks * rank + rank / 3 * 3 + (rank % 3 == 2 ? 1 : 0); };
  const std::uint64_t all = product({blocks_before(told.ranks), block});
  Plan plan{.file_bytes = sum({header, product({all, variables})})};
  plan.nests = [=](std::uint64_t rank) {
    return nests_of({{.length_bytes = header, .loops = {{{}, {}, {rank == 0 && header > 0 ? 1U : 0U, 0}}}},
                     {.offset_bytes = header + blocks_before(rank) * block,
                      .length_bytes = (blocks + rank % 3) * block,
                      .loops = {{{}, {}, {variables, all}}}}});
  };
  return plan;
}

Result<Plan> plan_flash_fuse(const Parameters& told) {
  const std::uint64_t request = told.values.at("request");
  if (request % (4 * KiB) != 0)
    return fail(ErrorKind::bad_input, "--request {}: FUSE's requests are multiples of 4KB", bytes_text(request));
  auto plan = plan_flash(told);
  if (plan) plan->request_bytes = request;
  return plan;
}

// Netcdf variables (time, cells, values) on a geodesic grid of 10 * 4^level + 2 cells. Blocks of cells go to the ranks
// in turn; the two poles are the first rank's.
Result<Plan> plan_pagoda(const Parameters& told) {
  constexpr std::uint64_t max_levels = 15, value_bytes = 4, poles = 2;
  const std::uint64_t level = told.values.at("level"), records = told.values.at("records");
  const std::uint64_t block = told.values.at("block"), header = told.values.at("header"), ranks = told.ranks;
  if (level > max_levels) return fail(ErrorKind::bad_input, "--level {}: expected at most {}", level, max_levels);
  const std::uint64_t faces = 10ULL << 2 * level, cells = faces + poles;
  if (faces % block != 0)
    return fail(ErrorKind::bad_input, "--block {}: expected a divisor of the {} cells of --level {}", block, faces,
                level);
  // Bytes of a cell: its area, its corners, a value in every layer, a value between layers.
  const std::uint64_t layers = told.values.at("layers");
  const std::array<std::uint64_t, 4> cell_bytes{value_bytes, 6 * value_bytes, product({layers, value_bytes}),
                                                product({sum({layers, 1}), value_bytes})};
  Plan plan{.file_bytes = header};
  std::array<std::uint64_t, 4> begin{};
  for (std::size_t i = 0; i < begin.size(); ++i) {
    begin[i] = plan.file_bytes;
    plan.file_bytes = sum({plan.file_bytes, product({cell_bytes[i], cells, records})});
  }
  plan.nests = [=](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t index) -> std::optional<Nest> {
      const bool is_first = rank == 0;
      if (index == 0) return Nest{.length_bytes = header, .loops = {{{}, {}, {is_first && header > 0 ? 1U : 0U, 0}}}};
      const std::uint64_t record = (index - 1) / 2 % records, variable = (index - 1) / 2 / records;
      if (variable >= begin.size()) return std::nullopt;
      const std::uint64_t cell = cell_bytes[variable], at = begin[variable] + record * cells * cell;
      if (index % 2 == 0)
        return Nest{.offset_bytes = at + faces * cell,
                    .length_bytes = poles * cell,
                    .loops = {{{}, {}, {is_first ? 1U : 0U, 0}}}};
      const std::uint64_t blocks = faces / block, own = rank < blocks ? (blocks - rank + ranks - 1) / ranks : 0;
      return Nest{.offset_bytes = at + rank * block * cell,
                  .length_bytes = block * cell,
                  .loops = {{{}, {}, {own, ranks * block * cell}}}};
    };
  };
  return plan;
}

}  // namespace

std::vector<Workload> grid_workloads() {
  const std::vector<Parameter> flash{
      {"zones", 8, false, 1, "of a block in x, y and z, without guard cells; FLASH I/O's README: typically 8"},
      {"blocks", 80, false, 1, "of ranks 0, 3, ...; one and two more for the others, as in FLASH I/O"},
      {"variables", 24, false, 1, "FLASH I/O's README: 24"},
      {"value", 8, true, 1, "bytes; FLASH I/O: double precision"},
      {"header", 2 * KiB, true, 0, "written by rank 0; HDF5's default metadata block"}};
  std::vector<Parameter> fuse = flash;
  fuse.push_back({"request", 128 * KiB, true, 4 * KiB, "largest; FUSE: 128KB with big_writes, 4KB without"});
  return {
      {"btio",
       "diagonal multi-partition of a cube, rows of cells",
       "NAS BT-IO, subtype SIMPLE: PATTERN section 3.3, NPB 3.4 make_set and simple_mpiio",
       {{"grid", 64, false, 1, "points in x, y and z; NPB class A: 64, B: 102, C: 162"},
        {"steps", 40, false, 1, "written; NPB: every 5th of 200"},
        {"element", 40, true, 1, "bytes of a point; NPB: 5 doubles"}},
       plan_btio},
      {"flash", "a variable after the other, a contiguous part for each rank, uneven",
       "FLASH I/O checkpoint: PATTERN section 3.3, the benchmark's README", flash, plan_flash},
      {"flash-fuse", "the same, cut into FUSE's requests",
       "FLASH under PLFS's FUSE: PATTERN section 3.3, \"may split large requests\"", fuse, plan_flash_fuse},
      {"pagoda",
       "variables of different kinds, blocks of cells in turn, a stride for each kind",
       "Pagoda on GCRM data: PATTERN sections 3.2.2, 4 and 5.2 (250 MB), Fig. 20; how it cuts the cells is ours",
       {{"level", 6, false, 1, "of the geodesic grid: 10 * 4^level + 2 cells; ours"},
        {"records", 26, false, 1, "in time; ours, so that the file has 250 MB"},
        {"layers", 25, false, 1, "ours"},
        {"block", 256, false, 1, "cells that are together; ours"},
        {"header", 4 * KiB, true, 0, "written by rank 0; ours"}},
       plan_pagoda},
  };
}

}  // namespace iosig::workloads
