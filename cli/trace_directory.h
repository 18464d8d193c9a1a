// The directory of a new trace, with its manifest (docs/formats/trace.md).
#pragma once

#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig::cli {

inline constexpr const char* trace_manifest_name = "manifest.json";

struct TraceDirectory {
  std::string path;  ///< absolute
  Fd fd;
  bool is_new = false;  ///< false: another trace has begun there
};

/// Content of the manifest.
struct TraceManifest {
  std::vector<std::string> command;
  std::string calls = {}, mount = {};  ///< `mount`: the mount point whose requests are traced
  std::vector<std::string> files = {}, sources = {};
  bool has_tsc_clock = false;  ///< ticks are of the time stamp counter
};
/// Makes `directory` and in it the manifest of a trace; keeps what exists.
[[nodiscard]] Result<TraceDirectory> make_trace_directory(const std::string& directory, const TraceManifest& manifest);

/// The error that the directory has a trace already; `option` names another.
[[nodiscard]] tl::unexpected<Error> another_trace(const std::string& directory, std::string_view option);

/// Returns the name that the launcher or the batch system gave to the parallel job that this process is a part of.
[[nodiscard]] std::string job_name();

}  // namespace iosig::cli
