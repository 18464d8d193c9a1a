// The interface of all predictors of reads, as the prefetch engine (core/iosig/prefetch) uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iosig/model/known_reads.h"

namespace iosig {

/// Expects which reads of one stream (one file as one process or thread reads it) follow. Not thread-safe.
class ReadPredictor {
 public:
  static constexpr double knows_beforehand = 0.9;
  virtual ~ReadPredictor() = default;
  /// Takes the program's next read. Returns false if what `expected` said before no longer holds (a new phase): the
  /// engine then cancels what it has not begun.
  virtual bool observe(FileRead read) = 0;
  /// The read expected `ahead` reads from now (1: the next). Nothing where it does not know. Takes constant time, or
  /// the time of a nest's depth, in the steady state: the engine then asks only for the one new read at its depth.
  [[nodiscard]] virtual std::optional<FileRead> expected(std::size_t ahead) = 0;
  /// Share of the last reads (at least the last 16, ageing) that were expected just so: 0 to 1. Before the first read
  /// it is at least `knows_beforehand` if the reads of the whole stream are known.
  [[nodiscard]] virtual double confidence() const = 0;
  /// Size of what it knows, in bytes as it would be saved.
  [[nodiscard]] virtual std::size_t model_bytes() const = 0;
};

}  // namespace iosig
