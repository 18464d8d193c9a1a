// Traces of other tools become traces of ours: recognises the format, calls its reader.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/import/trace_writer.h"

namespace iosig::trace {

enum class ImportFormat : std::uint8_t { csv, strace, dftracer, darshan, recorder };
inline constexpr std::string_view import_formats[] = {"csv", "strace", "dftracer", "darshan", "recorder"};

/// Input that a reader left out.
struct ImportNotes {
  /// Calls that were left out, by reason.
  std::map<std::string, std::uint64_t, std::less<>> left_out;
  /// Sentences: what is missing, damaged or not known, with file and line.
  std::vector<std::string> remarks;
  std::uint64_t further_remarks = 0;  ///< beyond the first hundred

  void leave_out(std::string_view reason, std::uint64_t calls = 1);
  void remark(std::string text);
};

struct Imported {
  TraceWriter::Totals totals;
  std::vector<std::string_view> formats;  ///< that were found, without repetition
  ImportNotes notes;
};

/// Reads `inputs` (files; "-": standard input; directories: those of Recorder; else their files, whatever is
/// no trace is left out) and makes
/// the trace `output` of them (TraceWriter::make). `format`: of all inputs; empty: found by their content.
/// `is_interrupted` is asked before each call is added: true ends the import with `system`.
/// Fails with `bad_input` if an input has no known format or is malformed; nothing is left at `output` then.
[[nodiscard]] Result<Imported> import_traces(const std::vector<std::string>& inputs, std::string_view format,
                                             const std::string& output, std::function<bool()> is_interrupted = {});

}  // namespace iosig::trace
