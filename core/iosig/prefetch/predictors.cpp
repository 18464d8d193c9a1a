#include "iosig/prefetch/predictors.h"

#include "iosig/base/text.h"
#include "iosig/decide/predictors.h"

namespace iosig::prefetch {

Result<PredictorMaker> predictor_maker(std::string_view name) {
  if (name == "pattern") return PredictorMaker([](const std::string&) { return pattern_predictor(); });
  if (name == "paper") return PredictorMaker([](const std::string&) { return paper_predictor(); });
  if (name == "none") return PredictorMaker();
  return fail(ErrorKind::usage, "predictor '{}': expected one of {}", printable(name),
              fmt::join(offered_predictors, ", "));
}

}  // namespace iosig::prefetch
