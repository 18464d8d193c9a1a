// The model of what earlier runs read: made from a trace (`iosig pattern trace --model`).
#pragma once

#include <cstdint>
#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/trace/trace.h"

namespace iosig::cli {

struct ModelOptions {
  std::string file;         ///< empty: no model is made
  std::string block_bytes;  ///< empty: patterns; else a Markov model over blocks of this size
};

/// Returns the size of blocks, 0 for patterns. Fails as `usage`.
[[nodiscard]] Result<std::int64_t> checked(const ModelOptions& options);

/// Writes what the trace's reads of `selection` teach, and says the sizes. Notes what is left out.
[[nodiscard]] Result<void> write_model(const trace::Trace& trace, const trace::Selection& selection,
                                       const ModelOptions& options, const Console& console);

}  // namespace iosig::cli
