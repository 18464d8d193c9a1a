// The id of a batch job, and the environment variables that hold it. Apart from enact/job.h, as every program with
// hints asks for its own.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace iosig {

/// Returns the job that the environment names, e.g. "slurm:4711": the batch system's (Slurm, PBS, LSF, Flux, Cobalt,
/// OAR, Grid Engine), else the process manager's (PMIx, PMI); empty: none.
[[nodiscard]] std::string job_in_environment();

/// Adds "SLURM_JOB_ID=4711" for "slurm:4711", and those of all systems for "4711".
void add_assignments(std::string_view job, std::set<std::string>& assignments);

}  // namespace iosig
