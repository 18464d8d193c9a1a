// Fuzzes imports. The first byte says what the rest is: 'c' CSV, 'd' DFTracer's log, 'D' Darshan's, 'r' the file
// recorder.dat of Recorder, else strace's output.
#include <fcntl.h>
#include <unistd.h>

#include "iosig/trace/import/csv.h"
#include "iosig/trace/import/darshan.h"
#include "iosig/trace/import/dftracer.h"
#include "iosig/trace/import/recorder.h"
#include "iosig/trace/import/strace.h"
#include "iosig/trace/trace.h"
#include "property.h"

using namespace iosig;
using namespace iosig::trace;
using fuzz::hold;

namespace {

/// Gives the text to a reader; a trace that it made can be read and has as many calls as it said.
void try_import(std::string_view text, char format) {
  static const std::string path = [] {
    std::string made = "/tmp/fuzz-import-XXXXXX";
    hold(::mkdtemp(made.data()) != nullptr, "there is a directory");
    return made;
  }();
  const std::string source = path + (format == 'r' ? "/recorder.dat" : "/source"), output = path + "/trace";
  {
    const Fd file(::open(source.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    hold(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "the text is written");
  }
  remove_tree(output);
  const bool is_binary = format == 'D' || format == 'r';
  auto input = LineInput::open(is_binary ? "/dev/null" : source);
  auto writer = TraceWriter::make(output);
  hold(input && writer, "the files are there");
  ImportNotes notes;
  Result<void> done;
  if (format == 'c') {
    done = import_csv(*input, *writer, notes);
  } else if (format == 'D') {
    done = import_darshan(source, *writer, notes);
  } else if (format == 'r') {
    done = import_recorder(path, *writer, notes);
  } else if (format == 'd') {
    done = DftracerImport(*writer, notes).read(*input);
  } else {
    std::vector<StraceFile> files;
    files.push_back({std::move(*input), 7});
    done = import_strace(std::move(files), *writer, notes);
  }
  if (!done && is_binary)
    return hold(done.error().message.starts_with(path), "a refusal names a file", done.error().message);
  if (!done)
    return hold(fuzz::names_a_line(done.error().message, source), "a refusal names a line", done.error().message);
  const auto totals = writer->finish("fuzz");
  hold(totals.has_value(), "what was read can be written");
  const auto trace = Trace::open(output);
  hold(trace.has_value(), "what was written can be read");
  std::uint64_t calls = 0;
  std::vector<Error> faults;
  hold(trace->for_each([&](const Access&) { return ++calls, Result<void>{}; }, {}, faults) && faults.empty(),
       "all blocks can be read");
  hold(calls == totals->calls, "every call is there");
  hold(trace->counters().size() == totals->counters, "all counters are there");
}

}  // namespace

void try_one(std::string_view text) {
  if (!text.empty()) try_import(text.substr(1), text.front());
}
