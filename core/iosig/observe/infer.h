// Infers the signature of each stream from traces of runs, for programs in which nobody declared any.
//
// Each word of a signature has a confidence, 0 to 1: how sure it is that the word will be right in the next run of the
// same program on similar input. It is an estimate by rules (infer.cpp gives each with its reason), not a statistic. It
// is lower if the trace is cut or has lost calls, if a file was mapped, if there are few accesses, or if runs differ.
//
// Source: docs/references.md#iosig sections 3 and 9 (signatures, and getting them from traces as future work). The
// rules are ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "iosig/observe/path_family.h"
#include "iosig/observe/stream_facts.h"

namespace iosig::observe {

/// The facts of one trace.
struct TracedRun {
  std::string name;                     ///< for messages: the trace's path
  std::vector<StreamFacts> facts = {};  ///< FactGatherer
  RunNumbers numbers = {};
  bool is_complete = true;    ///< no call is lost or damaged
  bool is_killed = false;     ///< a process did not end in an orderly way, or still runs
  bool has_all_calls = true;  ///< calls were not selected when it was recorded
};

/// One word of a signature, and why.
struct Finding {
  std::string word;  ///< as in a signature: "sequential", "size-per-IO(1MB)"
  double confidence = 0;
  std::string why;
};

struct InferredStream {
  std::string glob, glob_why;      ///< as PathFamily's
  std::vector<std::string> paths;  ///< ascending, each once
  std::vector<Finding> findings;   ///< in the order of a signature
  std::uint64_t reads = 0, writes = 0, read_bytes = 0, written_bytes = 0;
  std::string order;          ///< "sequential", "strided", "random"; empty: too few accesses, or mixed
  std::string sharing;        ///< "one process", "N-1" (a file has several), "N-N" (each process has files of its own)
  std::size_t processes = 0;  ///< that read or write
  /// Of accesses whose offset and size are multiples of 4096; from counters, whose offset is one of the alignment that
  /// `remarks` tell. Nothing: not known.
  std::optional<double> aligned_share = {};
  std::uint64_t least_size = 0, greatest_size = 0;  ///< of accesses: 10th and 90th percentile
  std::vector<std::string> remarks;                 ///< facts that no word expresses
  std::string link_refusal;  ///< why the program may fail at a link in the place of the file; empty: nothing says so

  /// The words that are at least this sure, as the text of a signature.
  [[nodiscard]] std::string signature_text(double least_confidence) const;
};

/// Streams that have accesses, in the order of rules: the first whose glob matches a path is its own. The paths of all
/// runs count as one set: differences between the names of two runs become wildcards, differences between their
/// accesses lower the confidence and are told in `why`.
[[nodiscard]] std::vector<InferredStream> infer(std::span<const TracedRun> runs);

}  // namespace iosig::observe
