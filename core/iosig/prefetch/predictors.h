// The predictors that can be chosen by name, by what earlier runs read, or by what a signature says, for the runtime
// and the command.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/decide/predictor.h"
#include "iosig/model/read_model.h"
#include "iosig/model/signature.h"

namespace iosig::prefetch {

/// The default first; the others of decide/predictors.h need a model.
inline constexpr std::array<std::string_view, 3> offered_predictors = {"pattern", "paper", "none"};

struct MadePredictor {
  std::unique_ptr<ReadPredictor> predictor = {};  ///< null: there is none
  std::string note = {};                          ///< why it is not the one that a signature declares; else empty
};

/// Returns the predictor of a stream of the file at `path`. Called by one thread of a process.
using PredictorMaker = std::function<MadePredictor(const std::string& path)>;

/// Sources of knowledge about the reads of files before the program makes them.
struct PredictorSources {
  ReadModel model = {};  ///< of earlier runs
  /// Returns what a signature says of the reads of the file at `path`. Called by one thread of a process. May be empty.
  std::function<std::optional<DeclaredReads>(const std::string& path)> declared = {};
};

/// Returns what makes the predictor of a stream: of a file whose signature says how it will be read, by that; of one
/// that the model knows, by what it knows (remembered, or Markov); of the others by `name`. An empty function for
/// "none" without sources. To the model a file is known by its whole path, or by the longest path of the model that
/// ends it: a mount shows files below another directory. Fails as `usage` if there is no such name.
[[nodiscard]] Result<PredictorMaker> predictor_maker(std::string_view name, PredictorSources sources = {});

/// Returns what `model` has of the file at `path`; null: nothing.
[[nodiscard]] const FileReads* find_file(const ReadModel& model, const std::string& path);

/// Reads the file of a model. Fails as `system`, or `bad_input` with its place, and what to do.
[[nodiscard]] Result<ReadModel> read_model_file(const std::string& path);

}  // namespace iosig::prefetch
