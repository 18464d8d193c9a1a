// The predictors that can be chosen by name, for the runtime and the command.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/decide/predictor.h"

namespace iosig::prefetch {

/// The default first; the others of decide/predictors.h need the reads of an earlier run.
inline constexpr std::array<std::string_view, 3> offered_predictors = {"pattern", "paper", "none"};

using PredictorMaker = std::function<std::unique_ptr<ReadPredictor>(const std::string& path)>;

/// Returns what makes the predictor of a stream; an empty function for "none". Fails as `usage` if there is no such
/// name.
[[nodiscard]] Result<PredictorMaker> predictor_maker(std::string_view name);

}  // namespace iosig::prefetch
