// A record of the reads of earlier runs, file by file: the saved model of the predictors `remembered` and `markov`.
//
// Plain data; format/read_model has its file. Made from a trace by `iosig pattern trace --model`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "iosig/model/block_transitions.h"
#include "iosig/model/pattern.h"

namespace iosig {

struct FileReads {
  std::string path;  ///< not empty; absolute, without symbolic links where the file was found
  /// A pattern has the columns logical and length, and id if several streams read the file, one after the other.
  std::variant<Pattern, BlockTransitions> model;

  bool operator==(const FileReads&) const = default;
};

struct ReadModel {
  std::vector<FileReads> files;  ///< by path; each once

  bool operator==(const ReadModel&) const = default;
};

}  // namespace iosig
