#include "prefetch_options.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/prefetch/predictors.h"

namespace iosig::cli {

void add_prefetch_options(const Verb& verb, PrefetchOptions& options) {
  verb.add_option("--prefetch", options.predictor,
                  "bring what is expected to be read next into memory; PREDICTOR: pattern (default), paper (its Algorithm 1) or none")
      .type_name("[PREDICTOR]")
      .takes(0, 1);
  verb.add_option("--prefetch-memory", options.memory,
                  "limit of what is prefetched and not read yet, in each process (default 64MiB)")
      .type_name("SIZE");
  verb.add_option("--prefetch-report", options.report,
                  "append what was prefetched, and why other files were left alone, to this file; -: to stderr")
      .type_name("FILE");
}

Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings) {
  if (!options.predictor) {
    for (const auto& [name, value] :
         {std::pair{"--prefetch-memory", &options.memory}, std::pair{"--prefetch-report", &options.report}})
      if (!value->empty()) return fail(ErrorKind::usage, "{} needs --prefetch", name);
    return {};
  }
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  const std::string name =
      options.predictor->empty() ? std::string(prefetch::predictor_names.front()) : *options.predictor;
  if (std::ranges::find(prefetch::predictor_names, name) == prefetch::predictor_names.end())
    return fail(ErrorKind::usage, "--prefetch '{}': expected one of {}; a program goes after --", printable(name),
                fmt::join(prefetch::predictor_names, ", "));
  settings.push_back({"IOSIG_PREFETCH", name});
  if (!options.memory.empty()) {
    const auto bytes = parse_bytes(options.memory);
    if (!bytes) return fail(ErrorKind::usage, "--prefetch-memory: {}", bytes.error().message);
    if (*bytes == 0) return fail(ErrorKind::usage, "--prefetch-memory 0: expected a size above 0, e.g. 64MiB");
    settings.push_back({"IOSIG_PREFETCH_BYTES", std::to_string(*bytes)});
  }
  if (!options.report.empty())
    settings.push_back({"IOSIG_PREFETCH_REPORT", options.report == "-" ? options.report : absolute(options.report)});
  return {};
}

}  // namespace iosig::cli
