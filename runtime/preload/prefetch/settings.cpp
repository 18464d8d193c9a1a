// Whether and how this process prefetches, as `iosig run --prefetch` says in the environment:
//
//   IOSIG_PREFETCH         the predictor's name; without it nothing is prefetched
//   IOSIG_PREFETCH_MODEL   an absolute path: what earlier runs read; a file that it has is predicted by it
//   IOSIG_RULES            an absolute path: rules whose signatures may say how files will be read (host/binding.h)
//   IOSIG_PREFETCH_BYTES   limit of what is requested and not read yet
//   IOSIG_PREFETCH_REPORT  an absolute path: each process that read more than a little appends what was prefetched;
//   "-":
//                          to stderr
//   IOSIG_PREFETCH_COMMAND the process number of the command, which always has a report
//
// The environment, and so prefetching, goes on to the programs that the process starts.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <string>

#include "host/binding.h"
#include "host/diagnostics.h"
#include "host/process.h"
#include "host/run_isolated.h"
#include "host/table_section.h"
#include "iosig/base/text.h"
#include "iosig/prefetch/predictors.h"
#include "iosig/prefetch/report.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/process_files.h"
#include "preload/hooks/real.h"
#include "preload/prefetch/announced.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/recorder.h"

namespace iosig::preload::prefetch {

constinit bool is_on = false;
IOSIG_TABLE constinit Observer observer;

namespace {

std::string_view report_file;
constinit std::atomic<bool> is_reported{false};

/// Whether this process is the one that `iosig run` became.
bool is_command() {
  return parse_count<std::uint64_t>(runtime::setting("IOSIG_PREFETCH_COMMAND")) ==
         static_cast<std::uint64_t>(::getpid());
}

/// Before the recorder's (103), which overwrites what is used for calls that it records.
__attribute__((constructor(102))) void load() {
  const std::string_view name = runtime::kept_setting("IOSIG_PREFETCH");
  if (name.empty()) return;
  const runtime::ErrnoKept kept;
  report_file = runtime::kept_setting("IOSIG_PREFETCH_REPORT");
  const EngineGuard inside;
  const int failure = run_isolated_step([name] {
    alignas(iosig::prefetch::Settings) static std::byte room[sizeof(iosig::prefetch::Settings)];
    auto* const settings = new (room) iosig::prefetch::Settings;
    ReadModel model;
    if (const std::string file(runtime::setting("IOSIG_PREFETCH_MODEL")); !file.empty()) {
      auto read = iosig::prefetch::read_model_file(file);
      if (read)
        model = std::move(*read);
      else
        runtime::say(read.error().message + "; prefetching without this model");
    }
    iosig::prefetch::PredictorSources sources{.model = std::move(model)};
    const bool has_rules = runtime::has_declared_reads();
    settings->begins_at_first_read = !sources.model.files.empty() || has_rules;
    if (settings->begins_at_first_read || name != "none")
      sources.declared = [](const std::string& path) {
        auto announced = announced_reads_of(path);
        return announced ? announced : runtime::declared_reads_of(path);
      };
    auto make = iosig::prefetch::predictor_maker(name, std::move(sources));
    if (!make) {
      runtime::say(make.error().message);
      return EINVAL;
    }
    if (!*make) return EINVAL;  // "none"
    settings->make_predictor = std::move(*make);
    if (const auto bytes = parse_count<std::uint64_t>(runtime::setting("IOSIG_PREFETCH_BYTES")); bytes && *bytes > 0)
      settings->max_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(*bytes, INT64_MAX));
    settings->hears_of_sequential = !report_file.empty();
    settings->thread_started = [] { has_own_descriptors = true; };
    observer.start(*settings);
    return 0;
  });
  if (failure != 0) return;
  is_on = true;
  for (std::uint16_t number = 1; number < iosig::trace::call_limit; ++number)
    if (is_observed(static_cast<iosig::trace::Call>(number)) && trace::uses[number] == trace::Use::none)
      trace::uses[number] = trace::Use::pass;
}

/// When process_of_now is there.
__attribute__((constructor(103))) void watch_streams() {
  if (!is_on) return;
  const runtime::ErrnoKept kept;
  const EngineGuard inside;
  (void)run_isolated_step([] {
    const std::lock_guard lock(process().lock);
    stand_in_for_streams();
    return 0;
  });
}

__attribute__((destructor)) void unload() { say_report(); }

}  // namespace

void say_report() {
  if (!is_on || report_file.empty() || is_reported.exchange(true)) return;
  const runtime::ErrnoKept kept;
  std::string_view text = observer.report();
  // A script starts many processes that read next to nothing: only the command itself always has a report.
  if (!observer.is_report_of_note() && !is_command()) return;
  std::array<char, 512> room;
  if (text.empty()) text = iosig::prefetch::empty_report(room);
  if (report_file == "-")
    return iosig::prefetch::for_each_line(text, [](std::string_view line) { runtime::say(line); });
  const int file = ::open(report_file.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
  if (file < 0) return;
  (void)!::write(file, text.data(), text.size());
  (void)::close(file);
}

}  // namespace iosig::preload::prefetch
