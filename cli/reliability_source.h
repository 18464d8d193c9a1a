// What `iosig reliability mttdl` and `simulate` are asked about: data of a size on a mount point, as a structure.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/cost/structure.h"
#include "iosig/model/storage.h"

namespace iosig::cli {

struct ReliabilityOptions {
  std::string storage, mount_point, size;
};

/// --storage, --mount-point and --size, which both verbs share. `options` must outlive the parsing.
void add_reliability_options(CLI::App& verb, ReliabilityOptions& options);

struct ReliabilitySubject {
  Storage storage;
  std::string file;  ///< of the description; empty: the machine was inspected
  MountPoint mount_point;
  Device device;
  std::uint64_t size_bytes = 0;
  Structure structure;
};

/// Fails as `usage` for a mount point that is not described and for what is no size above 0, `infeasible` for a device
/// that is not considered as reliable; otherwise as load_storage and structure_of do.
[[nodiscard]] Result<ReliabilitySubject> reliability_subject(const ReliabilityOptions& options, const Console& console);

}  // namespace iosig::cli
