#include "iosig/observe/overview.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "iosig/observe/ended_access.h"
#include "iosig/observe/merged_accesses.h"
#include "iosig/observe/system_files.h"
#include "iosig/observe/text_numbers.h"

namespace iosig::observe {
namespace {

using trace::Moves;
using trace::Process;

constexpr std::size_t layers = std::size(trace::layer_names);
constexpr std::uint32_t raster_columns = 512, raster_rows = 256, least_raster_side = 16;

/// Sums the rows by file and layer up to one for each file.
std::vector<FileSummary> files_of(const std::vector<Row>& rows) {
  std::vector<FileSummary> files;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Row& row : rows) {
    if (row.file.empty()) continue;
    const auto [known, is_new] = places.try_emplace(row.file, files.size());
    if (is_new) files.emplace_back();
    FileSummary& file = files[known->second];
    // Higher layers come first.
    if (!is_new && row.read_bytes + row.written_bytes == 0 && file.read_bytes + file.written_bytes > 0) continue;
    file = {.path = row.file,
            .layer = row.layer,
            .calls = row.calls,
            .failed = row.failed,
            .read_bytes = row.read_bytes,
            .written_bytes = row.written_bytes,
            .time_ns = row.time_ns,
            .first_ns = row.last_ns < 0 ? 0 : row.first_ns,
            .last_ns = std::max(row.last_ns, std::int64_t{0}),
            .order = row.order};
  }
  std::ranges::sort(files, [](const FileSummary& a, const FileSummary& b) {
    return std::tuple(b.read_bytes + b.written_bytes, b.calls, a.path) <
           std::tuple(a.read_bytes + a.written_bytes, a.calls, b.path);
  });
  std::stable_partition(files.begin(), files.end(), [](const FileSummary& file) { return !is_of_system(file.path); });
  return files;
}

std::vector<const Process*> sorted_processes(std::span<const trace::Trace> traces) {
  std::vector<const Process*> processes;
  for (const trace::Trace& each : traces)
    for (const auto& [key, process] : each.processes()) processes.push_back(&process);
  std::ranges::sort(processes, {}, [](const Process* each) {
    return std::tuple(each->rank.value_or(INT64_MAX), std::string_view(each->host), each->pid, each->key);
  });
  return processes;
}

/// The number of the column, of as many equal ones from `from_ns` to `to_ns`, that has the time.
std::uint32_t column_in(std::int64_t from_ns, std::int64_t to_ns, std::int64_t time_ns, std::uint32_t columns) {
  if (to_ns <= from_ns) return 0;
  const double share = static_cast<double>(time_ns - from_ns) / static_cast<double>(to_ns - from_ns);
  return static_cast<std::uint32_t>(std::clamp(share * columns, 0.0, columns - 1.0));
}

/// Makes the rasters of a file from its accesses.
class Plotter {
 public:
  explicit Plotter(const OverviewLimits& limits) : limits_(limits) {
    file_.read = file_.written = Grid(raster_columns, raster_rows);
  }

  void add(const PlottedAccess& access, std::uint32_t column) {
    if (access.bytes > INT64_MAX - access.offset) return;
    const std::uint64_t end = access.offset + access.bytes;
    file_.end_bytes = std::max(file_.end_bytes, end);
    if (++file_.accesses <= limits_.accesses)
      file_.list.push_back(access);
    else if (!file_.list.empty())
      file_.list = {};
    while ((end - 1) / file_.bytes_per_row >= raster_rows) {
      file_.read.squeeze_rows();
      file_.written.squeeze_rows();
      file_.bytes_per_row *= 2;
    }
    Grid& grid = access.is_write ? file_.written : file_.read;
    for (std::uint64_t at = access.offset; at < end;) {
      const std::uint64_t row = at / file_.bytes_per_row;
      const std::uint64_t until = std::min(end, (row + 1) * file_.bytes_per_row);
      grid.add(column, static_cast<std::uint32_t>(row), until - at);
      at = until;
    }
  }

  PlottedFile finish() {
    if (!file_.list.empty()) {
      file_.read = file_.written = {};
      return std::move(file_);
    }
    const auto size = [&] { return file_.read.encoded().size() + file_.written.encoded().size(); };
    while (file_.read.columns() > least_raster_side && size() > limits_.raster_bytes) {
      const bool has_rows = file_.read.rows() > least_raster_side;
      if (has_rows) file_.bytes_per_row *= 2;
      for (Grid* grid : {&file_.read, &file_.written}) {
        grid->halve_columns();
        if (has_rows) grid->halve_rows();
      }
    }
    return std::move(file_);
  }

 private:
  const OverviewLimits& limits_;
  PlottedFile file_;
};

/// The pass that fills the grids.
class Painter {
 public:
  Painter(std::span<const trace::Trace> traces, const OverviewLimits& limits, Overview& overview)
      : limits_(limits), overview_(overview) {
    const std::size_t plotted = std::min(limits.files, overview.files.size());
    for (std::size_t n = 0; n < overview.files.size(); ++n)
      files_.push_back({overview.files[n].layer, n < plotted ? static_cast<std::uint32_t>(n) : not_plotted});
    for (const FileSummary& file : overview.files) (void)numbers_.of(file.path);  // 1 for the first, and so on
    add_lines(sorted_processes(traces));
    for (Heat* heat : {&overview.by_line, &overview.by_file}) {
      const std::size_t rows = heat == &overview.by_line ? overview.lines.size() : plotted;
      heat->read = heat->written = Grid(limits.columns, static_cast<std::uint32_t>(rows));
    }
    overview.busy = Grid(limits.columns, static_cast<std::uint32_t>(overview.lines.size() * layers));
    for (std::size_t n = 0; n < plotted; ++n) plotters_.emplace_back(limits);
    for (const Row& row : overview.layers)
      if (row.read_bytes + row.written_bytes > 0) lowest_ = row.layer;
  }

  void add(const trace::Access& access) {
    if (access.call == trace::Call::inherited) return;
    const Traced& process = processes_.at(access.process);
    ++overview_.lines[process.line].calls;
    if (!has_ended(access)) {
      ++overview_.unfinished;
      return;
    }
    if (access.end_ns < access.start_ns) return;
    add_busy(process, access);
    const std::uint64_t bytes = moved_bytes(access);
    if (bytes == 0) return;
    const std::uint64_t number = access.path.empty() ? 0 : numbers_.of(access.path);
    if (number > files_.size()) return;
    const File file = number == 0 ? File{lowest_, not_plotted} : files_[number - 1];
    if (trace::layer_of(access.call) != file.layer) return;
    add_transfer(process.line, file, access, bytes);
  }

  void finish() {
    for (Plotter& plotter : plotters_) overview_.plotted.push_back(plotter.finish());
    leave_out_idle_lines();
  }

 private:
  static constexpr std::uint32_t not_plotted = UINT32_MAX;
  struct File {
    trace::Layer layer;
    std::uint32_t plot;
  };
  struct Traced {
    std::uint32_t line;
    std::size_t busy_until;  ///< place of its first layer in busy_until_
  };

  /// Lines without a call, of processes that did not use the selected files.
  void leave_out_idle_lines() {
    std::vector<std::uint32_t> kept, places(overview_.lines.size());
    for (std::uint32_t line = 0; line < places.size(); ++line) {
      places[line] = static_cast<std::uint32_t>(kept.size());
      if (overview_.lines[line].calls > 0) kept.push_back(line);
    }
    overview_.busy.keep_rows(kept, layers);
    overview_.by_line.read.keep_rows(kept);
    overview_.by_line.written.keep_rows(kept);
    std::erase_if(overview_.lines, [](const ProcessLine& line) { return line.calls == 0; });
    for (PlottedFile& file : overview_.plotted)
      for (PlottedAccess& access : file.list) access.line = places[access.line];
  }

  void add_lines(const std::vector<const Process*>& processes) {
    const std::size_t lines = std::max<std::size_t>(1, limits_.lines);
    const std::size_t each = std::max<std::size_t>(1, (processes.size() + lines - 1) / lines);
    for (std::size_t n = 0; n < processes.size(); ++n) {
      if (n % each == 0) overview_.lines.push_back({.first = processes[n]});
      ProcessLine& line = overview_.lines.back();
      line.last = processes[n];
      ++line.processes;
      processes_[processes[n]] = {static_cast<std::uint32_t>(overview_.lines.size() - 1), n * layers};
    }
    overview_.processes = processes.size();
    busy_until_.assign(processes.size() * layers, 0);
  }

  [[nodiscard]] std::uint32_t column_of(std::int64_t time_ns, std::uint32_t columns) const {
    return column_in(0, overview_.span_ns, time_ns, columns);
  }

  /// Adds `amount`, divided evenly over the time from `from` to `to`, to the columns of a row.
  void spread(Grid& grid, std::uint32_t row, std::int64_t from, std::int64_t to, std::uint64_t amount) const {
    const std::uint32_t first = column_of(from, grid.columns()), last = column_of(to, grid.columns());
    std::uint64_t given = 0;
    for (std::uint32_t column = first; column < last; ++column) {
      const double until = static_cast<double>(overview_.span_ns) * (column + 1) / grid.columns();
      const double share = (until - static_cast<double>(from)) / static_cast<double>(to - from);
      const auto so_far = static_cast<std::uint64_t>(static_cast<double>(amount) * std::clamp(share, 0.0, 1.0));
      if (so_far <= given || so_far > amount) continue;
      grid.add(column, row, so_far - given);
      given = so_far;
    }
    grid.add(last, row, amount - given);
  }

  void add_busy(const Traced& process, const trace::Access& access) {
    const auto layer = static_cast<std::size_t>(trace::layer_of(access.call));
    std::int64_t& until = busy_until_[process.busy_until + layer];
    const std::int64_t from = std::max(access.start_ns, until);
    if (access.end_ns <= from) return;
    until = access.end_ns;
    overview_.lines[process.line].busy_ns[layer] += access.end_ns - from;
    spread(overview_.busy, static_cast<std::uint32_t>(process.line * layers + layer), from, access.end_ns,
           static_cast<std::uint64_t>(access.end_ns - from));
  }

  void add_transfer(std::uint32_t line, const File& file, const trace::Access& access, std::uint64_t bytes) {
    const bool is_write = trace::moves_of(access.call) == Moves::writes;
    ProcessLine& of = overview_.lines[line];
    (is_write ? of.written_bytes : of.read_bytes) += bytes;
    (is_write ? overview_.written_sizes : overview_.read_sizes)[static_cast<std::size_t>(std::bit_width(bytes) - 1)]++;
    (is_write ? overview_.written_counts : overview_.read_counts).add(bytes);
    const auto add_heat = [&](Heat& heat, std::uint32_t row) {
      spread(is_write ? heat.written : heat.read, row, access.start_ns, access.end_ns, bytes);
    };
    add_heat(overview_.by_line, line);
    if (access.offset < 0) ++overview_.without_offset;
    if (file.plot == not_plotted) return;
    add_heat(overview_.by_file, file.plot);
    if (access.offset >= 0)
      plotters_[file.plot].add(
          {access.start_ns, access.end_ns, static_cast<std::uint64_t>(access.offset), bytes, line, is_write},
          column_in(overview_.files[file.plot].first_ns, overview_.files[file.plot].last_ns, access.start_ns,
                    raster_columns));
  }

  const OverviewLimits& limits_;
  Overview& overview_;
  TextNumbers numbers_;
  std::vector<File> files_;
  std::unordered_map<const Process*, Traced> processes_;
  std::vector<std::int64_t> busy_until_;
  std::vector<Plotter> plotters_;
  trace::Layer lowest_ = trace::Layer::posix;
};

}  // namespace

Result<Overview> overview_of(std::span<const trace::Trace> traces, const std::string& files,
                             const OverviewLimits& limits) {
  Overview overview;
  const Filter filter{.files = files};
  auto by_layer = answer(traces, {.filter = filter, .by = {Key::layer}, .has_own_time = true});
  if (!by_layer) return pass_on(by_layer.error());
  auto by_call =
      answer(traces, {.filter = filter, .by = {Key::layer, Key::call}, .value = Value::duration, .has_own_time = true});
  if (!by_call) return pass_on(by_call.error());
  auto by_file = answer(traces, {.filter = filter, .by = {Key::file, Key::layer}, .has_order = true});
  if (!by_file) return pass_on(by_file.error());
  overview.started_ns = by_layer->started_ns;
  overview.compares_clocks = by_layer->compares_clocks;
  overview.impossible_calls = by_layer->impossible_calls;
  overview.layers = std::move(by_layer->rows);
  overview.calls = std::move(by_call->rows);
  overview.files = files_of(by_file->rows);
  for (const Row& row : overview.layers) overview.span_ns = std::max(overview.span_ns, row.last_ns);

  trace::Selection selection{.files = files};
  Painter painter(traces, limits, overview);
  MergedAccesses accesses(traces, selection, 0, overview.faults);
  while (const trace::Access* const access = accesses.next()) painter.add(*access);
  painter.finish();
  return overview;
}

}  // namespace iosig::observe
