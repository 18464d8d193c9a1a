#include "trace_summary.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "iosig/base/text.h"
#include "iosig/observe/overview.h"
#include "iosig/trace/notes.h"
#include "raise.h"
#include "trace_counters.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

using observe::Grid;
using observe::Overview;
using observe::Row;
using trace::Trace;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

/// Each pair: Python converts neither bytes that are not UTF-8 nor control characters.
nb::dict text_dict(std::string_view text) {
  nb::dict both;
  both["shown"] = printable(text);
  both["bytes"] = bytes_of(text);
  return both;
}

nb::dict grid_dict(const Grid& grid) {
  nb::dict made;
  made["columns"] = grid.columns();
  made["rows"] = grid.rows();
  made["cells"] = bytes_of(grid.encoded());
  return made;
}

nb::dict row_dict(const Row& row) {
  nb::dict made;
  made["layer"] = std::string(trace::layer_names[static_cast<std::size_t>(row.layer)]);
  made["call"] = std::string(trace::name_of(row.call));
  made["calls"] = row.calls;
  made["failed"] = row.failed;
  made["unfinished"] = row.unfinished;
  made["read_bytes"] = row.read_bytes;
  made["written_bytes"] = row.written_bytes;
  made["inclusive_s"] = seconds(row.time_ns);
  made["exclusive_s"] = seconds(row.own_ns);
  made["p50_s"] = row.values.percentile(50) / 1e9;
  made["p99_s"] = row.values.percentile(99) / 1e9;
  made["max_s"] = static_cast<double>(row.values.greatest()) / 1e9;
  return made;
}

nb::dict process_dict(const trace::Process& process) {
  nb::dict made;
  made["rank"] = process.rank ? nb::cast(*process.rank) : nb::none();
  made["host"] = printable(process.host);
  made["pid"] = process.pid;
  made["program"] = printable(process.program);
  return made;
}

nb::dict line_dict(const observe::ProcessLine& line) {
  nb::dict made;
  made["first"] = process_dict(*line.first);
  made["last"] = process_dict(*line.last);
  made["processes"] = line.processes;
  made["read_bytes"] = line.read_bytes;
  made["written_bytes"] = line.written_bytes;
  nb::list busy;
  for (const std::int64_t ns : line.busy_ns) busy.append(seconds(ns));
  made["busy_s"] = busy;
  return made;
}

nb::dict file_dict(const observe::FileSummary& file) {
  nb::dict made = text_dict(file.path);
  made["layer"] = std::string(trace::layer_names[static_cast<std::size_t>(file.layer)]);
  made["calls"] = file.calls;
  made["failed"] = file.failed;
  made["read_bytes"] = file.read_bytes;
  made["written_bytes"] = file.written_bytes;
  made["time_s"] = seconds(file.time_ns);
  made["first_s"] = seconds(file.first_ns);
  made["last_s"] = seconds(file.last_ns);
  made["consecutive"] = file.order.consecutive;
  made["forward"] = file.order.forward;
  made["backward"] = file.order.backward;
  return made;
}

/// The accesses as six columns of little-endian doubles, one column after the other: start and end in seconds, offset,
/// bytes, line, and 1 for a write.
nb::bytes columns_of(const std::vector<observe::PlottedAccess>& list) {
  std::vector<double> numbers;
  numbers.reserve(6 * list.size());
  const auto add = [&](auto&& number) {
    for (const observe::PlottedAccess& each : list) numbers.push_back(static_cast<double>(number(each)));
  };
  add([](const auto& each) { return seconds(each.start_ns); });
  add([](const auto& each) { return seconds(each.end_ns); });
  add([](const auto& each) { return each.offset; });
  add([](const auto& each) { return each.bytes; });
  add([](const auto& each) { return each.line; });
  add([](const auto& each) { return each.is_write ? 1 : 0; });
  return nb::bytes(numbers.data(), numbers.size() * sizeof(double));
}

nb::dict plotted_dict(const observe::PlottedFile& file) {
  nb::dict made;
  made["accesses"] = file.accesses;
  made["end_bytes"] = file.end_bytes;
  made["count"] = file.list.size();
  made["list"] = columns_of(file.list);
  made["read"] = grid_dict(file.read);
  made["written"] = grid_dict(file.written);
  made["bytes_per_row"] = file.bytes_per_row;
  return made;
}

nb::dict heat_dict(const observe::Heat& heat) {
  nb::dict made;
  made["read"] = grid_dict(heat.read);
  made["written"] = grid_dict(heat.written);
  return made;
}

template <class Values, class Convert>
nb::list list_of(const Values& values, const Convert& convert, std::size_t most = SIZE_MAX) {
  nb::list made;
  for (const auto& each : values) {
    if (nb::len(made) == most) break;
    made.append(convert(each));
  }
  return made;
}

nb::dict sizes_dict(const std::array<std::uint64_t, 64>& by_logarithm, const observe::SizeCounts& counts) {
  nb::dict made;
  made["counts"] = std::vector<std::uint64_t>(by_logarithm.begin(), by_logarithm.end());
  made["transfers"] = counts.count();
  made["typical_bytes"] = counts.most_frequent();
  made["typical_share"] = counts.share(counts.most_frequent(), counts.most_frequent());
  made["median_bytes"] = counts.quantile(0.5);
  return made;
}

nb::dict overview_dict(const Overview& overview, std::size_t most_files) {
  nb::dict made;
  made["started_ns"] = overview.started_ns;
  made["span_s"] = seconds(overview.span_ns);
  made["processes"] = overview.processes;
  made["layers"] = list_of(overview.layers, row_dict);
  made["calls"] = list_of(overview.calls, row_dict);
  made["file_count"] = overview.files.size();
  made["files"] = list_of(overview.files, file_dict, most_files);
  made["lines"] = list_of(overview.lines, line_dict);
  made["busy"] = grid_dict(overview.busy);
  made["by_line"] = heat_dict(overview.by_line);
  made["by_file"] = heat_dict(overview.by_file);
  made["plotted"] = list_of(overview.plotted, plotted_dict);
  made["read_sizes"] = sizes_dict(overview.read_sizes, overview.read_counts);
  made["written_sizes"] = sizes_dict(overview.written_sizes, overview.written_counts);
  made["without_offset"] = overview.without_offset;
  made["unfinished"] = overview.unfinished;
  made["impossible_calls"] = overview.impossible_calls;
  made["compares_clocks"] = overview.compares_clocks;
  return made;
}

/// What is missing in the traces, in sentences.
nb::list missing(const std::vector<Trace>& traces, const Overview& overview) {
  std::vector<std::string> notes;
  for (const Trace& each : traces)
    for (std::string& note : trace::notes_on(each)) notes.push_back(std::move(note));
  for (const Error& fault : overview.faults) notes.push_back(trace::note_on_fault(fault.message));
  return list_of(notes, [](const std::string& note) { return nb::cast(printable(note)); });
}

nb::dict summarize(const std::vector<nb::bytes>& directories, const nb::bytes& files, std::size_t plotted,
                   std::size_t most_files) {
  std::vector<std::string> names;
  for (const nb::bytes& each : directories) names.emplace_back(each.c_str(), each.size());
  const std::string glob(files.c_str(), files.size());
  std::vector<Trace> traces;
  Result<Overview> overview = [&]() -> Result<Overview> {
    const nb::gil_scoped_release others_may_run;
    auto opened = trace::open_traces(names);
    if (!opened) return pass_on(opened.error());
    traces = std::move(*opened);
    return observe::overview_of(traces, glob, {.files = plotted});
  }();
  const Overview found = value_or_raise(std::move(overview));
  nb::dict made = overview_dict(found, most_files);
  made["notes"] = missing(traces, found);
  nb::list manifests;
  for (const Trace& each : traces) manifests.append(bytes_of(each.manifest()));
  made["manifests"] = manifests;
  nb::list counters;
  for (const Trace& each : traces)
    for (const trace::FileCounters& file : each.counters())
      if (glob.empty() || trace::matches_file(glob, file.path)) {
        nb::dict row;
        add_counters(file, row);
        counters.append(row);
      }
  made["counters"] = counters;
  return made;
}

}  // namespace

void bind_trace_summary(nb::module_& module) {
  module.def("summarize_traces", summarize, "directories"_a, "files"_a = nb::bytes(""), "plotted"_a = 12,
             "most_files"_a = 50,
             nb::sig("def summarize_traces(directories: collections.abc.Sequence[bytes], files: bytes = b'', "
                     "plotted: int = 12, most_files: int = 50) -> dict[str, typing.Any]"),
             "What the traces have, for iosig.report; grids are encoded as core/iosig/observe/grid.h says.");
}

}  // namespace iosig::python
