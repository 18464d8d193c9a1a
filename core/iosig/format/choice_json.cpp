#include "iosig/format/choice_json.h"

namespace iosig {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

}  // namespace

nlohmann::ordered_json choice_json(const Choice& choice) {
  using nlohmann::ordered_json;
  ordered_json candidates = ordered_json::array();
  for (const Candidate& candidate : choice.candidates) {
    candidates.push_back({{"mount_point", candidate.mount_point},
                          {"admissible", candidate.admissible},
                          {"reasons", candidate.reasons},
                          {"throughput_bytes_per_s", candidate.throughput_bytes_per_s},
                          {"operation_s", candidate.operation_s},
                          {"limit", name_of(candidate.limit)},
                          {"mttdl_s", number_or_null(candidate.mttdl_s)},
                          {"total_s", number_or_null(candidate.total_s)},
                          {"is_home", candidate.is_home},
                          {"job",
                           {{"total_s", candidate.job.total_s()},
                            {"redirect_s", candidate.job.redirect_s},
                            {"stage_in_s", candidate.job.stage_in_s},
                            {"transfer_s", candidate.job.transfer_s},
                            {"flush_s", candidate.job.flush_s},
                            {"stage_out_s", candidate.job.stage_out_s}}}});
  }
  ordered_json break_even = ordered_json::array();
  for (const BreakEven& each : choice.break_even)
    break_even.push_back({{"mount_point", each.mount_point},
                          {"passes", each.passes ? ordered_json(*each.passes) : ordered_json()},
                          {"as_temp", each.as_temp}});
  return {{"policy", name_of(choice.policy)},
          {"chosen", choice.chosen ? ordered_json(*choice.chosen) : ordered_json()},
          {"break_even", std::move(break_even)},
          {"assumptions", choice.assumptions},
          {"candidates", std::move(candidates)}};
}

}  // namespace iosig
