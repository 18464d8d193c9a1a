#include "iosig/format/choice_json.h"

namespace iosig {

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
                          {"total_s", candidate.total_s ? ordered_json(*candidate.total_s) : ordered_json()}});
  }
  return {{"chosen", choice.chosen ? ordered_json(*choice.chosen) : ordered_json()},
          {"assumptions", choice.assumptions},
          {"candidates", std::move(candidates)}};
}

}  // namespace iosig
