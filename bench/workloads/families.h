// The workloads by family; workloads.cpp makes the catalogue of them.
#pragma once

#include <vector>

#include "workloads.h"

namespace iosig::workloads {

[[nodiscard]] std::vector<Workload> strided_workloads();    ///< FS-TEST, NERSC, LANL: strided.cpp
[[nodiscard]] std::vector<Workload> milc_workloads();       ///< milc.cpp
[[nodiscard]] std::vector<Workload> grid_workloads();       ///< BTIO, FLASH, Pagoda: grids.cpp
[[nodiscard]] std::vector<Workload> scattered_workloads();  ///< Zipf, random: scattered.cpp

/// One nest after the other as they stand in the list.
[[nodiscard]] Nests nests_of(std::vector<Nest> list);

}  // namespace iosig::workloads
