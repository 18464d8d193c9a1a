#include "iosig/trace/import/strace.h"

#include <queue>
#include <utility>
#include <vector>

#include "iosig/base/text.h"
#include "iosig/trace/import/strace_line.h"
#include "iosig/trace/import/strace_processes.h"

namespace iosig::trace {
namespace {

/// One file and its next line.
struct Source {
  StraceFile file;
  StraceLine line;
  std::int32_t tid = 0;
};

/// Reads the next line that is one. false: there is none.
Result<bool> advance(Source& source, ImportNotes& notes) {
  LineInput& input = source.file.input;
  for (;;) {
    std::string_view text;
    auto is_there = input.next(text);
    if (!is_there || !*is_there) return is_there;
    if (text.ends_with('\r')) text.remove_suffix(1);
    const auto line = strace_line(text);
    if (line) {
      source.line = *line;
      source.tid = line->pid.value_or(source.file.pid.value_or(0));
      return true;
    }
    if (text.empty() || text.starts_with("strace: ")) continue;
    const std::string place = fmt::format("{}:{}", input.shown(), input.line_number());
    if (input.line_number() == 1)
      return fail(ErrorKind::bad_input,
                  "{}: expected 'PID SECONDS.FRACTION call(...) = ...', as strace -f -ttt -T -y -o FILE writes; got "
                  "'{}'",
                  place, printable(cut_to(text, 80)));
    notes.remark(fmt::format("{}: {} line of strace -ttt; left out", place, input.is_unended() ? "cut, or no" : "no"));
  }
}

}  // namespace

Result<void> import_strace(std::vector<StraceFile> files, TraceWriter& writer, ImportNotes& notes) {
  StraceProcesses import(writer, notes);
  std::vector<Source> sources;
  for (StraceFile& file : files) sources.push_back({.file = std::move(file), .line = {}, .tid = 0});
  const auto is_later = [&](std::size_t a, std::size_t b) {
    return std::pair(sources[a].line.time_ns, a) > std::pair(sources[b].line.time_ns, b);
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(is_later)> next(is_later);
  for (std::size_t n = 0; n < sources.size(); ++n) {
    const auto is_there = advance(sources[n], notes);
    if (!is_there) return pass_on(is_there.error());
    if (*is_there) next.push(n);
  }
  while (!next.empty()) {
    const std::size_t n = next.top();
    next.pop();
    Source& source = sources[n];
    const std::string place = fmt::format("{}:{}", source.file.input.shown(), source.file.input.line_number());
    if (auto done = import.take(source.tid, source.line, place); !done) return done;
    const auto is_there = advance(source, notes);
    if (!is_there) return pass_on(is_there.error());
    if (*is_there) next.push(n);
  }
  return import.finish();
}

}  // namespace iosig::trace
