#include "prefetch_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/prefetch/predictors.h"

namespace iosig::cli {

void add_prefetch_options(const Verb& verb, PrefetchOptions& options) {
  verb.add_flag_with_value(
      "--prefetch", options.predictor, std::string(prefetch::offered_predictors.front()),
      "bring what is expected to be read next into memory; by pattern, by the paper's way (paper), or none");
  verb.add_option("--prefetch-memory", options.memory,
                  "limit of what is prefetched and not read yet, in each process (default 64MiB)")
      .type_name("SIZE");
  verb.add_option("--prefetch-report", options.report,
                  "append what was prefetched, and why other files were left alone, to this file; -: to stderr")
      .type_name("FILE");
}

Result<PrefetchOptions> checked(const PrefetchOptions& options) {
  PrefetchOptions found = options;
  if (options.predictor.empty()) {
    for (const auto& [name, value] :
         {std::pair{"--prefetch-memory", &options.memory}, std::pair{"--prefetch-report", &options.report}})
      if (!value->empty()) return fail(ErrorKind::usage, "{} needs --prefetch", name);
    return found;
  }
  if (std::ranges::find(prefetch::offered_predictors, options.predictor) == prefetch::offered_predictors.end())
    return fail(ErrorKind::usage, "--prefetch={}: expected one of {}", printable(options.predictor),
                fmt::join(prefetch::offered_predictors, ", "));
  if (!options.memory.empty()) {
    const auto bytes = parse_bytes(options.memory);
    if (!bytes) return fail(ErrorKind::usage, "--prefetch-memory: {}", bytes.error().message);
    if (*bytes == 0) return fail(ErrorKind::usage, "--prefetch-memory 0: expected a size above 0, e.g. 64MiB");
    found.memory = std::to_string(*bytes);
  }
  if (options.report.empty() || options.report == "-") return found;
  // Programs append to it when they end: then it is too late to say that they cannot.
  const std::filesystem::path report = std::filesystem::absolute(options.report).lexically_normal();
  const bool is_there = ::access(report.c_str(), F_OK) == 0;
  if (::access(is_there ? report.c_str() : report.parent_path().c_str(), W_OK) != 0)
    return system_failure("write", "--prefetch-report " + printable(options.report));
  found.report = report.string();
  return found;
}

Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings) {
  const auto plain = checked(options);
  if (!plain) return pass_on(plain.error());
  for (const auto& [name, value] : {std::pair{"IOSIG_PREFETCH", &plain->predictor},
                                    {"IOSIG_PREFETCH_BYTES", &plain->memory},
                                    {"IOSIG_PREFETCH_REPORT", &plain->report}})
    if (!value->empty()) settings.push_back({name, *value});
  return {};
}

}  // namespace iosig::cli
