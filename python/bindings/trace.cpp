// The accesses of traces as Arrow streams: record batches that are filled while the consumer asks for them.

#include "trace.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "access_columns.h"
#include "arrow.h"
#include "iosig/base/text.h"
#include "iosig/observe/merged_accesses.h"
#include "iosig/trace/accesses.h"
#include "iosig/trace/notes.h"
#include "raise.h"
#include "trace_counters.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

using trace::Trace;

/// Ids of accesses are 64-bit integers with a sign in Arrow, so that SQL can subtract them.
constexpr std::size_t max_parts = std::size_t{1} << (63 - trace::call_id_bits);
constexpr std::uint32_t max_batch_rows = 1 << 24;
constexpr std::size_t entries_at_once = 512;  ///< stay in the cache while the columns take them

/// Traces that are read together. They do not change, so that several streams can read them at the same time.
struct Traces {
  std::vector<Trace> traces;
  std::vector<std::string> directories, names;
  std::mutex mutex;
  std::set<std::string> faults;  ///< of blocks, as far as streams have come; by `mutex`

  void add_faults(const std::vector<Error>& found) {
    const std::scoped_lock alone(mutex);
    for (const Error& each : found) faults.insert(each.message);
  }
};
using Shared = std::shared_ptr<Traces>;

/// Returns the directory's last component, as text.
std::string name_of_trace(const std::string& directory) {
  return printable(std::filesystem::path(without_trailing_slashes(directory)).filename().string());
}

Result<Shared> opened(const std::vector<std::string>& directories) {
  auto shared = std::make_shared<Traces>();
  shared->directories = directories;
  auto traces = trace::open_traces(directories);
  if (!traces) return pass_on(traces.error());
  shared->traces = std::move(*traces);
  for (std::size_t n = 0; n < directories.size(); ++n) {
    const std::size_t parts = shared->traces[n].parts().size();
    if (parts > max_parts)
      return fail(ErrorKind::bad_input, "{}: has {} parts; expected at most {}", printable(directories[n]), parts,
                  max_parts);
    shared->names.push_back(name_of_trace(directories[n]));
  }
  if (auto distinct = observe::check_distinct(shared->traces); !distinct) return pass_on(distinct.error());
  if (std::set(shared->names.begin(), shared->names.end()).size() < shared->names.size())
    for (std::size_t n = 0; n < directories.size(); ++n) shared->names[n] = printable(directories[n]);
  return shared;
}

std::int64_t started_ns(const Traces& of) {
  std::int64_t earliest = 0;
  for (const Trace& each : of.traces)
    if (each.started_ns() != 0) earliest = earliest == 0 ? each.started_ns() : std::min(earliest, each.started_ns());
  return earliest;
}

// ---- one pass -----------------------------------------------------------------------------------------------------

struct PassOptions {
  trace::Selection selection;
  std::vector<std::string> columns;
  std::uint32_t rows = 0;  ///< of a batch
};

/// One pass over the accesses, as an Arrow stream. Its functions run without the GIL, in any thread, one at a time.
class Pass {
 public:
  Pass(Shared traces, PassOptions options) : traces_(std::move(traces)), options_(std::move(options)) {
    for (const std::string& each : options_.columns) columns_.push_back(make_column(each));
  }

  void set_schema(ArrowSchema& schema) const {
    SchemaParts parts{
        .format = "+s", .name = "", .metadata = {}, .is_nullable = false, .children = {}, .dictionary = {}};
    parts.metadata = arrow_metadata(
        {{"iosig.schema", "iosig.accesses/1"}, {"iosig.started_ns", std::to_string(started_ns(*traces_))}});
    for (const auto& each : columns_) parts.children.push_back(each->schema());
    fill_schema(schema, std::move(parts));
  }

  /// Leaves `array` released at the end.
  void set_next(ArrowArray& array) {
    if (!accesses_) accesses_.emplace(traces_->traces, options_.selection, 0, faults_);
    std::int64_t rows = 0;
    for (bool has_more = true; has_more && rows < options_.rows;) {
      entries_.clear();
      const std::size_t wanted = std::min<std::size_t>(entries_at_once, options_.rows - static_cast<std::size_t>(rows));
      while (entries_.size() < wanted && has_more) {
        const trace::Access* const access = accesses_->next();
        has_more = access != nullptr;
        if (has_more) entries_.push_back({*access, traces_->names[accesses_->trace()]});
      }
      for (const auto& each : columns_) each->append(entries_);
      rows += static_cast<std::int64_t>(entries_.size());
    }
    array.release = nullptr;
    if (rows == 0) {
      traces_->add_faults(faults_);
      return;
    }
    ArrayParts parts{.length = rows, .nulls = 0, .data = {}, .buffers = {nullptr}, .children = {}, .dictionary = {}};
    for (const auto& each : columns_) parts.children.push_back(each->take());
    fill_array(array, std::move(parts));
  }

 private:
  Shared traces_;
  PassOptions options_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<Error> faults_;
  std::optional<observe::MergedAccesses> accesses_;
  std::vector<Entry> entries_;
};

Pass& pass_of(ArrowArrayStream* stream) { return *static_cast<Pass*>(stream->private_data); }

/// Returns 0, or the errno for the consumer.
template <class Step>
int status_of(Step step) {
  try {
    step();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void fill_stream(ArrowArrayStream& stream, std::unique_ptr<Pass> pass) {
  stream.get_schema = [](ArrowArrayStream* from, ArrowSchema* schema) {
    return status_of([&] { pass_of(from).set_schema(*schema); });
  };
  stream.get_next = [](ArrowArrayStream* from, ArrowArray* array) {
    return status_of([&] { pass_of(from).set_next(*array); });
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return "out of memory"; };
  stream.release = [](ArrowArrayStream* from) {
    delete &pass_of(from);
    from->release = nullptr;
  };
  stream.private_data = pass.release();
}

// ---- Python -------------------------------------------------------------------------------------------------------

/// What `__arrow_c_stream__` makes a pass of, each time.
struct AccessStream {
  Shared traces;
  PassOptions options;

  [[nodiscard]] nb::object capsule() const {
    auto stream = std::make_unique<ArrowArrayStream>();
    fill_stream(*stream, std::make_unique<Pass>(traces, options));
    PyObject* const made = PyCapsule_New(stream.get(), "arrow_array_stream", [](PyObject* of) {
      auto* const kept = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(of, "arrow_array_stream"));
      if (kept->release != nullptr) kept->release(kept);
      delete kept;
    });
    if (made == nullptr) {
      stream->release(stream.get());
      throw nb::python_error();
    }
    stream.release();
    return nb::steal(made);
  }
};

std::string string_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// As os.fsdecode().
nb::str path_text(const std::string& path) {
  return nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

AccessStream stream_of(const Shared& traces, const std::optional<std::size_t>& trace,
                       const std::optional<std::string>& layer, std::string files,
                       const std::optional<std::vector<std::string>>& columns, std::int64_t rows) {
  AccessStream stream{.traces = traces, .options = {}};
  if (layer) {
    const auto* const found = std::ranges::find(trace::layer_names, *layer);
    if (found == std::end(trace::layer_names))
      raise_python(PyExc_ValueError,
                   fmt::format("layer: '{}': expected one of {}", *layer, fmt::join(trace::layer_names, ", ")));
    stream.options.selection.layer = static_cast<trace::Layer>(found - std::begin(trace::layer_names));
  }
  stream.options.selection.files = std::move(files);
  if (trace) {
    if (*trace >= traces->traces.size())
      raise_python(PyExc_ValueError, fmt::format("trace: expected 0 to {}, got {}", traces->traces.size() - 1, *trace));
    stream.options.selection.processes = [traces, n = *trace](const trace::Process& process) {
      return traces->traces[n].processes().contains(process.key);
    };
  }
  if (rows < 1 || rows > max_batch_rows)
    raise_python(PyExc_ValueError, fmt::format("rows: expected 1 to {}, got {}", max_batch_rows, rows));
  stream.options.rows = static_cast<std::uint32_t>(rows);
  const std::vector<std::string>& known = column_names();
  stream.options.columns = columns.value_or(known);
  if (!columns && traces->traces.size() == 1) stream.options.columns.pop_back();  // `trace`
  for (const std::string& each : stream.options.columns)
    if (std::ranges::find(known, each) == known.end())
      raise_python(PyExc_ValueError, fmt::format("columns: '{}': expected some of {}", each, fmt::join(known, ", ")));
  return stream;
}

nb::dict process_dict(const trace::Process& process, const std::string& trace) {
  const auto text = [](const std::string& of) { return nb::str(printable(of).c_str()); };
  nb::dict dict;
  dict["trace"] = text(trace);
  dict["host"] = text(process.host);
  dict["pid"] = process.pid;
  dict["parent_pid"] = process.parent_pid;
  dict["rank"] = process.rank;
  dict["ranks"] = process.ranks;
  dict["program"] = text(process.program);
  dict["directory"] = text(process.directory);
  nb::list arguments;
  for (const std::string& each : process.arguments) arguments.append(text(each));
  dict["arguments"] = arguments;
  return dict;
}

nb::list processes_of(const Traces& of) {
  nb::list listed;
  for (std::size_t n = 0; n < of.traces.size(); ++n) {
    std::vector<const trace::Process*> processes;
    for (const auto& [key, process] : of.traces[n].processes()) processes.push_back(&process);
    std::ranges::sort(processes, {}, [](const trace::Process* p) { return std::tuple(p->host, p->pid, p->key); });
    for (const trace::Process* each : processes) listed.append(process_dict(*each, of.names[n]));
  }
  return listed;
}

nb::list counters_of(const Traces& of) {
  nb::list listed;
  for (std::size_t n = 0; n < of.traces.size(); ++n)
    for (const trace::FileCounters& each : of.traces[n].counters()) {
      nb::dict row;
      row["trace"] = nb::str(printable(of.names[n]).c_str());
      add_counters(each, row);
      listed.append(row);
    }
  return listed;
}

std::vector<std::string> notes_on(Traces& of) {
  std::vector<std::string> notes;
  for (const Trace& each : of.traces)
    for (std::string& note : trace::notes_on(each)) notes.push_back(std::move(note));
  const std::scoped_lock alone(of.mutex);
  for (const std::string& fault : of.faults) notes.push_back(trace::note_on_fault(fault));
  return notes;
}

/// Name, layer and direction (None: it moves no bytes) of each call that a trace can have.
nb::list calls_known() {
  nb::list listed;
  for (std::uint16_t number = 0; number < trace::call_limit; ++number) {
    const auto call = static_cast<trace::Call>(number);
    const std::string_view name = trace::name_of(call);
    if (name.empty()) continue;
    const trace::Moves moves = trace::moves_of(call);
    listed.append(nb::make_tuple(std::string(name),
                                 std::string(trace::layer_names[static_cast<std::size_t>(trace::layer_of(call))]),
                                 moves == trace::Moves::nothing ? nb::object(nb::none())
                                 : moves == trace::Moves::reads ? nb::object(nb::str("reads"))
                                                                : nb::object(nb::str("writes"))));
  }
  return listed;
}

/// Python's class: a Shared that streams take part in.
struct OpenTraces {
  Shared shared;
};

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<AccessStream>(module, "AccessStream", "Accesses as an Arrow stream, anew for each consumer.")
      .def(
          "__arrow_c_stream__", [](const AccessStream& of, const nb::object&) { return of.capsule(); },
          "requested_schema"_a.none() = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"));
  nb::class_<OpenTraces>(module, "Traces", "Traces that are read together.")
      .def(
          "__init__",
          [](OpenTraces* at, const std::vector<nb::bytes>& directories) {
            std::vector<std::string> paths;
            for (const nb::bytes& each : directories) paths.push_back(string_of(each));
            Result<Shared> shared = [&] {
              const nb::gil_scoped_release others_may_run;
              return opened(paths);
            }();
            new (at) OpenTraces{value_or_raise(std::move(shared))};
          },
          "directories"_a)
      .def_prop_ro(
          "directories",
          [](const OpenTraces& of) {
            nb::list paths;
            for (const std::string& each : of.shared->directories) paths.append(path_text(each));
            return paths;
          },
          nb::sig("def directories(self) -> list[str]"))
      .def_prop_ro("names", [](const OpenTraces& of) { return of.shared->names; })
      .def_prop_ro("started_ns", [](const OpenTraces& of) { return started_ns(*of.shared); })
      .def_prop_ro("notes", [](const OpenTraces& of) { return notes_on(*of.shared); })
      .def_prop_ro(
          "processes", [](const OpenTraces& of) { return processes_of(*of.shared); },
          nb::sig("def processes(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro(
          "counters", [](const OpenTraces& of) { return counters_of(*of.shared); },
          nb::sig("def counters(self) -> list[dict[str, typing.Any]]"))
      .def(
          "stream",
          [](const OpenTraces& of, const std::optional<std::size_t>& trace, const std::optional<std::string>& layer,
             const std::optional<nb::bytes>& files, const std::optional<std::vector<std::string>>& columns,
             std::int64_t rows) {
            return stream_of(of.shared, trace, layer, files ? string_of(*files) : std::string(), columns, rows);
          },
          "trace"_a = nb::none(), "layer"_a = nb::none(), "files"_a = nb::none(), "columns"_a = nb::none(),
          "rows"_a = 65536);
  module.attr("ACCESS_COLUMNS") = nb::cast(column_names());
  module.attr("CALLS") = calls_known();
}

}  // namespace iosig::python
