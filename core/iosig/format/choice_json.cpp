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
                          {"total_s", number_or_null(candidate.total_s)}});
  }
  return {{"chosen", choice.chosen ? ordered_json(*choice.chosen) : ordered_json()},
          {"assumptions", choice.assumptions},
          {"candidates", std::move(candidates)}};
}

}  // namespace iosig
