// The predictors of files whose signature says how they will be read: `pattern(FILE)`, `order(FILE)`.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "iosig/base/result.h"
#include "iosig/decide/predictors.h"
#include "iosig/model/read_model.h"
#include "iosig/model/signature.h"
#include "iosig/prefetch/per_process.h"

namespace iosig::prefetch {

/// The content of a declared file: the reads of one file, or a model of several.
using DeclaredContent = std::variant<KnownReads, ReadModel>;

/// Reads a declared file: an order, or a pattern (binary or JSON), or a model. Fails as `system`, or `bad_input` with
/// its place.
[[nodiscard]] Result<DeclaredContent> read_declared(const DeclaredReads& declared);

/// Makes predictors from declared files. A file is read when the first stream with it begins, and again if it has
/// changed since; the streams share it. One thread of a process calls this.
class DeclaredPredictors {
 public:
  /// Returns the predictor of a stream of the file at `path`. Of a model it takes what it has of this path, or of its
  /// only file. Fails as read_declared, and as `bad_input` if the model has other files.
  [[nodiscard]] Result<std::unique_ptr<ReadPredictor>> make(const DeclaredReads& declared, const std::string& path);

 private:
  /// By the file's path and status.
  using Contents = std::unordered_map<std::string, std::weak_ptr<const DeclaredContent>>;

  Result<std::shared_ptr<const DeclaredContent>> content_of(const DeclaredReads& declared);

  PerProcess<Contents> contents_;
};

}  // namespace iosig::prefetch
