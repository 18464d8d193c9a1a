// The predictors of reads that the command line names, and how each is made.
//
// Sources: docs/references.md#pattern section 4.2 (paper), 4.3 (Markov, after Oly and Reed), section 5 (perfect). Ours:
// pattern, remembered. None is thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/decide/predictor.h"
#include "iosig/model/block_transitions.h"
#include "iosig/model/known_reads.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// none: reads are not prefetched, not even by the kernel. kernel: by its readahead alone.
enum class PredictorKind : std::uint8_t { none, kernel, markov, paper, pattern, remembered, perfect };

/// By kind.
inline constexpr std::array<std::string_view, 7> predictor_names = {"none",    "kernel",     "markov", "paper",
                                                                    "pattern", "remembered", "perfect"};

/// Returns nothing for another name.
[[nodiscard]] constexpr std::optional<PredictorKind> predictor_kind_of(std::string_view name) {
  for (std::size_t n = 0; n < predictor_names.size(); ++n)
    if (predictor_names[n] == name) return static_cast<PredictorKind>(n);
  return std::nullopt;
}
[[nodiscard]] constexpr std::string_view name_of(PredictorKind kind) {
  return predictor_names[static_cast<std::size_t>(kind)];
}

/// Ours: the nest of loops that runs, and before its outer loops are known, the period of runs of equal steps. Takes
/// 100 to 150 ns a read in loops, 250 ns where reads have no pattern (bench/predict.cpp). Memory: a few hundred KB.
[[nodiscard]] std::unique_ptr<ReadPredictor> pattern_predictor();

struct PaperPredictorOptions {
  std::uint32_t history = 256;  ///< the last reads in which patterns are sought, at least 4
  std::uint32_t period = 16;    ///< reads after which they are sought again
};

/// The paper's: Algorithm 1 over the recent reads, and over the patterns that it found (the pattern tree, Fig. 18), of
/// which the last is expected to go on.
[[nodiscard]] std::unique_ptr<ReadPredictor> paper_predictor(const PaperPredictorOptions& options = {});

/// Expects the block that followed most often; `model` is what earlier runs taught. It learns nothing in this run.
[[nodiscard]] std::unique_ptr<ReadPredictor> markov_predictor(std::shared_ptr<const BlockTransitions> model);

/// Expects the reads of an earlier run, or an order that the application gave, or the coming reads (perfect). After a
/// read that does not follow, it goes on behind the next place where that read occurs, in any of the streams. It
/// expects nothing beyond the end of a stream.
[[nodiscard]] std::unique_ptr<ReadPredictor> remembered_predictor(std::shared_ptr<const KnownReads> known);

/// Expects records in the order that the application gave. Unlike `remembered`, a read of a part of a record is one of
/// the record, and a thread may leave out records that others read.
[[nodiscard]] std::unique_ptr<ReadPredictor> records_predictor(std::shared_ptr<const KnownReads> known);

/// Returns the reads of a pattern with the columns logical and length; with the column id, too, a stream ends where the
/// id changes. Fails with `bad_input` if it lacks one of the first two, has more than max_known_reads, or a negative
/// number.
[[nodiscard]] Result<KnownReads> reads_of(const Pattern& pattern);

/// Returns which blocks of `block_bytes` > 0 the streams touch one after the other.
[[nodiscard]] BlockTransitions transitions_of(const KnownReads& known, std::int64_t block_bytes);

}  // namespace iosig
