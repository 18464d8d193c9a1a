#include "iosig/decide/predictors.h"

#include <array>
#include <utility>

namespace iosig {
namespace {

constexpr std::array<std::pair<std::string_view, PredictorKind>, 7> names{{{"none", PredictorKind::none},
                                                                           {"kernel", PredictorKind::kernel},
                                                                           {"markov", PredictorKind::markov},
                                                                           {"paper", PredictorKind::paper},
                                                                           {"pattern", PredictorKind::pattern},
                                                                           {"remembered", PredictorKind::remembered},
                                                                           {"perfect", PredictorKind::perfect}}};

}  // namespace

std::optional<PredictorKind> predictor_kind_of(std::string_view name) {
  for (const auto& [known, kind] : names)
    if (known == name) return kind;
  return std::nullopt;
}

std::string_view name_of(PredictorKind kind) {
  for (const auto& [name, known] : names)
    if (known == kind) return name;
  return "";
}

}  // namespace iosig
