// Passes on the accesses of several traces in the order of their starts, with times from the earliest start of all.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/accesses.h"

namespace iosig::observe {

/// Fails with `usage` if two of the traces have a process in common.
[[nodiscard]] Result<void> check_distinct(std::span<const trace::Trace> traces);
/// When the earliest call of the traces began: nanoseconds since 1970; 0: they have none.
[[nodiscard]] std::int64_t started_ns_of(std::span<const trace::Trace> traces);

class MergedAccesses {
 public:
  /// As trace::Accesses; `ended_since_ns` counts from started_ns(), and replaces that of `selection`.
  MergedAccesses(std::span<const trace::Trace> traces, const trace::Selection& selection, std::int64_t ended_since_ns,
                 std::vector<Error>& faults);

  /// When the earliest call began: nanoseconds since 1970; 0: there is none.
  [[nodiscard]] std::int64_t started_ns() const { return started_ns_; }
  /// Returns the next access, valid until the next call; null: there is none.
  [[nodiscard]] const trace::Access* next();
  /// The number of the trace that has it.
  [[nodiscard]] std::size_t trace() const { return current_; }

 private:
  struct Source {
    trace::Selection selection;
    std::int64_t shift_ns = 0;  ///< from the trace's start to the earliest one
    std::unique_ptr<trace::Accesses> accesses = {};
    bool has_ended = false;
    trace::Access access = {};
  };
  void advance(Source& source);

  std::vector<Source> sources_;
  std::size_t current_ = 0;
  bool has_begun_ = false;
  std::int64_t started_ns_ = 0;
};

}  // namespace iosig::observe
