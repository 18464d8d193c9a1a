// The predictors that can be chosen by name or by what earlier runs read, for the runtime and the command.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/decide/predictor.h"
#include "iosig/model/read_model.h"

namespace iosig::prefetch {

/// The default first; the others of decide/predictors.h need a model.
inline constexpr std::array<std::string_view, 3> offered_predictors = {"pattern", "paper", "none"};

/// Returns the predictor of a stream of the file at `path`; null: there is none. Called by one thread of a process.
using PredictorMaker = std::function<std::unique_ptr<ReadPredictor>(const std::string& path)>;

/// Returns what makes the predictor of a stream: of a file that `model` knows by what it knows (remembered, or Markov),
/// of the others by `name`. An empty function for "none" without a model. A file is known by its whole path, or by the
/// longest path of the model that ends it: a mount shows files below another directory. Fails as `usage` if there is no
/// such name.
[[nodiscard]] Result<PredictorMaker> predictor_maker(std::string_view name, ReadModel model = {});

/// Reads the file of a model. Fails as `system`, or `bad_input` with its place, and what to do.
[[nodiscard]] Result<ReadModel> read_model_file(const std::string& path);

}  // namespace iosig::prefetch
