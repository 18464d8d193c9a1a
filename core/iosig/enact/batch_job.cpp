#include "iosig/enact/batch_job.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::size_t max_id_bytes = 200;

/// A variable that names the job. `beside`: it counts only if this variable exists too, because its name is common.
struct Sign {
  std::string_view system;
  const char *variable, *beside;
};
constexpr std::array signs{
    Sign{"slurm", "SLURM_JOB_ID", nullptr}, Sign{"pbs", "PBS_JOBID", nullptr},       Sign{"lsf", "LSB_JOBID", nullptr},
    Sign{"flux", "FLUX_JOB_ID", nullptr},   Sign{"cobalt", "COBALT_JOBID", nullptr}, Sign{"oar", "OAR_JOB_ID", nullptr},
    Sign{"sge", "JOB_ID", "SGE_O_HOST"},    Sign{"pmix", "PMIX_NAMESPACE", nullptr}, Sign{"pmi", "PMI_JOBID", nullptr}};

}  // namespace

std::string job_in_environment() {
  for (const Sign& sign : signs) {
    const char* const id = std::getenv(sign.variable);
    if (id == nullptr || *id == '\0' || (sign.beside != nullptr && std::getenv(sign.beside) == nullptr)) continue;
    if (const std::string_view text(id); text.size() <= max_id_bytes) return fmt::format("{}:{}", sign.system, text);
  }
  return {};
}

void add_assignments(std::string_view job, std::set<std::string>& assignments) {
  if (job.empty()) return;
  const std::size_t colon = job.find(':');
  const bool names_system = colon != std::string_view::npos;
  const std::string_view number = names_system ? job.substr(colon + 1) : job;
  for (const Sign& sign : signs)
    if (!names_system || job.substr(0, colon) == sign.system)
      assignments.insert(fmt::format("{}={}", sign.variable, number));
}

}  // namespace iosig
