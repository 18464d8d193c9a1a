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
  verb.add_option("--prefetch-model", options.model,
                  "what an earlier run read (iosig pattern trace --model) is expected again; --prefetch is for files "
                  "that it does not have")
      .type_name("FILE");
  verb.add_option("--prefetch-memory", options.memory,
                  "limit of what is prefetched and not read yet, in each process (default 64MiB)")
      .type_name("SIZE");
  verb.add_option("--prefetch-report", options.report,
                  "append what was prefetched, and why other files were left alone, to this file; -: to stderr, "
                  "of a mount to the system's log")
      .type_name("FILE");
}

Result<PrefetchOptions> checked(const PrefetchOptions& options, const Console& console) {
  PrefetchOptions found = options;
  if (!options.model.empty()) {
    if (found.predictor.empty()) found.predictor = prefetch::offered_predictors.front();
    found.model = std::filesystem::absolute(options.model).lexically_normal().string();
    if (const auto model = prefetch::read_model_file(found.model); !model) {
      console.note(fmt::format("{}; running without this model", model.error().message));
      found.model.clear();
    }
  }
  if (found.predictor.empty()) {
    for (const auto& [name, value] :
         {std::pair{"--prefetch-memory", &options.memory}, std::pair{"--prefetch-report", &options.report}})
      if (!value->empty()) return fail(ErrorKind::usage, "{} needs --prefetch or --prefetch-model", name);
    return found;
  }
  if (std::ranges::find(prefetch::offered_predictors, found.predictor) == prefetch::offered_predictors.end())
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

Result<void> add_prefetch_settings(const PrefetchOptions& options, std::vector<Setting>& settings,
                                   const Console& console) {
  const auto plain = checked(options, console);
  if (!plain) return pass_on(plain.error());
  for (const auto& [name, value] : {std::pair{"IOSIG_PREFETCH", &plain->predictor},
                                    {"IOSIG_PREFETCH_MODEL", &plain->model},
                                    {"IOSIG_PREFETCH_BYTES", &plain->memory},
                                    {"IOSIG_PREFETCH_REPORT", &plain->report}})
    if (!value->empty()) settings.push_back({name, *value});
  if (!plain->report.empty()) settings.push_back({"IOSIG_PREFETCH_COMMAND", std::to_string(::getpid())});
  return {};
}

}  // namespace iosig::cli
