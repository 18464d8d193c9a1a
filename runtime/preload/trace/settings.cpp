// Whether and what this process records, as `iosig trace` says in the environment:
//
//   IOSIG_TRACE         the trace's directory, an absolute path; without it nothing is recorded
//   IOSIG_TRACE_OPS     calls, or layers, separated by commas (core/iosig/trace/calls.inc); without it all
//   IOSIG_TRACE_FILES   globs of the files, separated by colons; without it all
//   IOSIG_TRACE_CLOCK   "tsc": the time stamp counter is a clock on this machine
//   IOSIG_TRACE_TIMES   "us": times are kept as whole microseconds; without it exactly
//   IOSIG_TRACE_SOURCES source lines of the calls, separated by commas; without it calls from everywhere
//   IOSIG_TRACE_LINES   path of iosig-lines, which finds their code
//   IOSIG_TRACE_PLACES  "no": the stack is not walked at opens
//   IOSIG_TRACE_PAUSED  nothing is recorded until the program calls iosig_trace_start()
//
// The environment, and so the trace, goes on to the programs that the process starts.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>

#include "host/process.h"
#include "iosig/base/signals.h"
#include "preload/files/process_files.h"
#include "preload/hooks/hook.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/names.h"
#include "preload/trace/open_places.h"
#include "preload/trace/process_facts.h"
#include "preload/trace/thread_part.h"
#include "preload/trace/uring.h"

namespace iosig::preload::trace {
namespace {

using iosig::trace::call_kind_of;
using iosig::trace::call_limit;
using iosig::trace::call_manner_of;
using iosig::trace::call_of;
using iosig::trace::CallKind;
using iosig::trace::CallManner;
using iosig::trace::layer_names;
using iosig::trace::layer_of;
using iosig::trace::name_of;
using iosig::trace::source_of;

/// Calls that open, close or move descriptors by exception: some of them only.
constexpr Call also_followed[] = {Call::chdir,
                                  Call::preadv,
                                  Call::pwritev,
                                  Call::sendfile,
                                  Call::copy_file_range,
                                  Call::splice,
                                  Call::io_submit,
                                  Call::lio_listio,
                                  Call::io_uring_read,
                                  Call::sendfile_source,
                                  Call::copy_file_range_source,
                                  Call::splice_source};

/// Whether the recorder follows a call for the sake of descriptors, recorded or not.
bool is_followed(Call call) {
  const CallKind kind = call_kind_of(call);
  return kind == CallKind::open || kind == CallKind::close || kind == CallKind::duplicate || kind == CallKind::seek ||
         call_manner_of(call) == CallManner::at_file_offset ||
         std::ranges::find(also_followed, call) != std::end(also_followed);
}

bool is_named(std::string_view names, Call call) {
  if (names.empty() || call == Call::inherited) return true;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, end);
    if (name == name_of(call) || source_of(call_of(name)) == call ||
        name == layer_names[static_cast<std::size_t>(layer_of(call))])
      return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

/// Sets what happens at each call. While the recorder is paused it follows descriptors only.
void choose_calls(std::string_view names, bool is_paused) {
  for (std::uint16_t number = 1; number < call_limit; ++number) {
    const auto call = static_cast<Call>(number);
    const bool is_recorded = !name_of(call).empty() && is_named(names, call);
    uses[number] = is_recorded && (!is_paused || call == Call::inherited) ? Use::record
                   : is_followed(call)                                    ? Use::follow
                   : prefetch::is_on && prefetch::is_observed(call)       ? Use::pass
                                                                          : Use::none;
  }
}

/// glibc passes a library's constructors what it passes main().
__attribute__((constructor(103))) void load(int argument_count, char** given, char** /*environment*/) {
  const std::string_view directory = runtime::kept_setting("IOSIG_TRACE");
  if (!directory.starts_with('/')) return;
  const runtime::ErrnoKept kept;
  has_tsc_clock = runtime::setting("IOSIG_TRACE_CLOCK") == "tsc";
  remember_machine(argument_count, given);
  set_traced_globs(runtime::kept_setting("IOSIG_TRACE_FILES"));
  if (!start_parts(directory, runtime::setting("IOSIG_TRACE_TIMES") == "us")) return;
  set_open_places(runtime::setting("IOSIG_TRACE_PLACES") != "no");
  set_sources(runtime::kept_setting("IOSIG_TRACE_LINES"), runtime::kept_setting("IOSIG_TRACE_SOURCES"));
  {
    const SignalsLater later;  // other libraries may have begun: a handler of theirs that opens a file takes the lock
    const std::lock_guard lock(process().lock);
    stand_in_for_streams();
  }
  choose_calls(runtime::setting("IOSIG_TRACE_OPS"), !runtime::setting("IOSIG_TRACE_PAUSED").empty());
  is_tracing = true;
}

__attribute__((destructor)) void unload() {
  if (is_tracing) end_rings();
  mark_parts(true);
}

}  // namespace
}  // namespace iosig::preload::trace

void iosig::preload::hook::iosig_trace_switch(int is_on) {
  using namespace iosig::preload::trace;  // NOLINT(google-build-using-namespace)
  if (!is_tracing) return;
  choose_calls(iosig::runtime::setting("IOSIG_TRACE_OPS"), is_on == 0);
}
