#include "query_columns.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using observe::Key;
using observe::Query;
using observe::Row;
using observe::Value;

AnswerColumn count_column(std::string name, std::string heading, std::function<std::uint64_t(const Row&)> number) {
  return {std::move(name), std::move(heading), [=](const Row& row) { return ordered_json(number(row)); },
          [=](const Row& row) { return fmt::format("{}", number(row)); }};
}
AnswerColumn bytes_column(std::string name, std::string heading, std::function<std::uint64_t(const Row&)> number) {
  return {std::move(name), std::move(heading), [=](const Row& row) { return ordered_json(number(row)); },
          [=](const Row& row) { return number(row) == 0 ? "" : about_bytes(static_cast<double>(number(row))); }};
}
/// NaN: there is no such number.
AnswerColumn number_column(std::string name, std::string heading, std::string (*shown)(double),
                           std::function<double(const Row&)> number) {
  return {std::move(name), std::move(heading),
          [=](const Row& row) { return std::isnan(number(row)) ? ordered_json(nullptr) : ordered_json(number(row)); },
          [=](const Row& row) { return std::isnan(number(row)) ? "" : shown(number(row)); }};
}
AnswerColumn text_column(std::string name, std::string heading, std::function<std::string(const Row&)> text) {
  return {std::move(name), std::move(heading),
          [=](const Row& row) { return text(row).empty() ? ordered_json(nullptr) : ordered_json(text(row)); },
          [=](const Row& row) { return printable(text(row)); }};
}
AnswerColumn rank_column() {
  return {"rank", "RANK", [](const Row& row) { return row.rank ? ordered_json(*row.rank) : ordered_json(nullptr); },
          [](const Row& row) { return row.rank ? fmt::format("{}", *row.rank) : "-"; }};
}

std::string plain_number(double number) { return fmt::format("{:.2f}", number); }

void add_key_columns(Key key, std::vector<AnswerColumn>& columns) {
  const auto host = [](const Row& row) { return row.process->host; };
  switch (key) {
    case Key::layer:
      columns.push_back(text_column("layer", "LAYER", [](const Row& row) {
        return std::string(trace::layer_names[static_cast<std::size_t>(row.layer)]);
      }));
      break;
    case Key::call:
      columns.push_back(
          text_column("call", "CALL", [](const Row& row) { return std::string(trace::name_of(row.call)); }));
      break;
    case Key::rank: columns.push_back(rank_column()); break;
    case Key::file:
      columns.push_back(text_column("file", "FILE", [](const Row& row) { return std::string(row.file); }));
      break;
    case Key::source:
      columns.push_back(text_column("opened_at", "OPENED AT", [](const Row& row) { return std::string(row.source); }));
      break;
    case Key::node: columns.push_back(text_column("host", "HOST", host)); break;
    case Key::process:
    case Key::thread:
      columns.push_back(text_column("host", "HOST", host));
      columns.push_back({"pid", "PID", [](const Row& row) { return ordered_json(row.process->pid); },
                         [](const Row& row) { return fmt::format("{}", row.process->pid); }});
      columns.push_back(rank_column());
      if (key == Key::thread)
        columns.push_back({"tid", "TID", [](const Row& row) { return ordered_json(row.tid); },
                           [](const Row& row) { return fmt::format("{}", row.tid); }});
      break;
    case Key::window:
      columns.push_back({"window_start_s", "FROM",
                         [](const Row& row) { return ordered_json(in_seconds(row.window_ns)); },
                         [](const Row& row) { return seconds_text(in_seconds(row.window_ns)); }});
      break;
  }
}

/// Returns the unit of a value in names, and how it is shown.
std::pair<std::string, std::string (*)(double)> unit_of(Value value) {
  switch (value) {
    case Value::bytes: return {"bytes", about_bytes};
    case Value::rate: return {"bytes_per_s", about_rate};
    case Value::energy: return {"j", about_joules};
    default: return {"s", about_seconds};
  }
}

double statistic_of(const Statistic& wanted, const Row& row, double scale) {
  const Distribution& values = row.values;
  if (values.count() == 0) return NAN;
  if (wanted.name == "min") return static_cast<double>(values.least()) * scale;
  if (wanted.name == "max") return static_cast<double>(values.greatest()) * scale;
  if (wanted.name == "mean") return values.mean() * scale;
  return values.percentile(wanted.percent) * scale;
}

/// Sums over the devices of a row; NaN: it has none.
double sum_of(const Row& row, double (*of)(const observe::DeviceEnergy&)) {
  double sum = row.devices.empty() ? NAN : 0;
  for (const observe::DeviceEnergy& device : row.devices) sum += of(device);
  return sum;
}

void add_energy_columns(std::vector<AnswerColumn>& columns) {
  const auto joules = [&](std::string name, std::string heading, double (*of)(const observe::DeviceEnergy&)) {
    AnswerColumn made = number_column(std::move(name), std::move(heading), about_joules,
                                      [of](const Row& row) { return sum_of(row, of); });
    made.text = [text = made.text](const Row& row) { return row.devices.empty() ? "unknown" : text(row); };
    columns.push_back(std::move(made));
  };
  joules("active_j", "ACTIVE", [](const observe::DeviceEnergy& device) { return device.active_j; });
  joules("idle_j", "IDLE", [](const observe::DeviceEnergy& device) { return device.idle_j; });
  joules("energy_j", "ENERGY", [](const observe::DeviceEnergy& device) { return device.active_j + device.idle_j; });
  columns.push_back(number_column("mean_w", "POWER", about_watts, [](const Row& row) {
    const double energy_j =
        sum_of(row, [](const observe::DeviceEnergy& device) { return device.active_j + device.idle_j; });
    return row.wall_ns() > 0 ? energy_j / in_seconds(row.wall_ns()) : NAN;
  }));
  const auto devices_json = [](const Row& row) {
    ordered_json devices = ordered_json::array();
    for (const observe::DeviceEnergy& device : row.devices)
      devices.push_back({{"devices", device.unit->devices},
                         {"host", device.host.empty() ? ordered_json(nullptr) : ordered_json(device.host)},
                         {"busy_s", in_seconds(device.busy_ns)},
                         {"active_j", device.active_j},
                         {"idle_j", device.idle_j}});
    return devices;
  };
  columns.push_back({"devices", "", devices_json, {}});
}

}  // namespace

std::string process_name(const trace::Process& process) {
  return process.rank ? fmt::format("{}", *process.rank) : fmt::format("{}:{}", printable(process.host), process.pid);
}

std::vector<AnswerColumn> columns_of(std::string_view question, const Query& query,
                                     const std::vector<Statistic>& statistics) {
  std::vector<AnswerColumn> columns;
  for (const Key key : query.by) {
    std::vector<AnswerColumn> of_key;
    add_key_columns(key, of_key);
    for (AnswerColumn& each : of_key)  // `process` and `thread` have columns of other keys
      if (std::ranges::find(columns, each.name, &AnswerColumn::name) == columns.end())
        columns.push_back(std::move(each));
  }
  columns.push_back(count_column("calls", "CALLS", [](const Row& row) { return row.calls; }));
  const bool is_calls = question == "calls";
  if (is_calls || question == "latency") {
    columns.push_back(count_column("failed", is_calls ? "FAILED" : "", [](const Row& row) { return row.failed; }));
    columns.push_back(
        count_column("unfinished", is_calls ? "UNFINISHED" : "", [](const Row& row) { return row.unfinished; }));
  }
  const auto add_statistics = [&] {
    const auto [unit, shown] = unit_of(query.value);
    const bool is_in_billionths =
        query.value == Value::duration || query.value == Value::own_time || query.value == Value::energy;
    const double scale = is_in_billionths ? 1e-9 : 1;
    for (const Statistic& each : statistics) {
      std::string heading = each.name;
      std::ranges::transform(heading, heading.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
      columns.push_back(number_column(fmt::format("{}_{}", each.name, unit), heading, shown,
                                      [=](const Row& row) { return statistic_of(each, row, scale); }));
    }
  };
  const auto rate_column = [&](std::string name, std::string heading, auto time_ns) {
    columns.push_back(number_column(std::move(name), std::move(heading), about_rate, [=](const Row& row) {
      const double time_s = in_seconds(time_ns(row));
      return time_s > 0 ? static_cast<double>(row.read_bytes + row.written_bytes) / time_s : NAN;
    }));
  };
  const auto busy_ns = [](const Row& row) { return row.in_flight.busy(); };
  const auto wall_ns = [](const Row& row) { return row.wall_ns(); };
  const auto add_times = [&] {
    columns.push_back(
        number_column("busy_s", "BUSY", about_seconds, [=](const Row& row) { return in_seconds(busy_ns(row)); }));
    columns.push_back(
        number_column("wall_s", "WALL", about_seconds, [=](const Row& row) { return in_seconds(wall_ns(row)); }));
  };
  if (question == "power") {
    columns.push_back(count_column("unknown_calls", "UNKNOWN", [](const Row& row) { return row.unknown_calls; }));
    add_statistics();
    add_times();
    add_energy_columns(columns);
    return columns;
  }
  if (question == "latency") {
    add_statistics();
    columns.push_back(
        number_column("inclusive_s", "TIME", about_seconds, [](const Row& row) { return in_seconds(row.time_ns); }));
    columns.push_back(
        number_column("exclusive_s", "OWN TIME", about_seconds, [](const Row& row) { return in_seconds(row.own_ns); }));
    return columns;
  }
  if (question == "pattern") {
    columns.push_back(count_column("first", "FIRST", [](const Row& row) { return row.order.first; }));
    columns.push_back(count_column("consecutive", "CONSECUTIVE", [](const Row& row) { return row.order.consecutive; }));
    columns.push_back(count_column("forward", "FORWARD", [](const Row& row) { return row.order.forward; }));
    columns.push_back(count_column("backward", "BACKWARD", [](const Row& row) { return row.order.backward; }));
    columns.push_back(count_column("unknown", "UNKNOWN", [](const Row& row) { return row.order.unknown; }));
  }
  if (question == "concurrency") {
    add_times();
    columns.push_back(number_column("mean_in_flight", "MEAN", plain_number, [](const Row& row) {
      return row.in_flight.busy() > 0
                 ? static_cast<double>(row.in_flight.total()) / static_cast<double>(row.in_flight.busy())
                 : NAN;
    }));
    columns.push_back(count_column("max_in_flight", "MOST", [](const Row& row) { return row.in_flight.most(); }));
    return columns;
  }
  columns.push_back(bytes_column("read_bytes", "READ", [](const Row& row) { return row.read_bytes; }));
  columns.push_back(bytes_column("written_bytes", "WRITTEN", [](const Row& row) { return row.written_bytes; }));
  if (question == "throughput") {
    columns.push_back(
        count_column("moved_bytes", "", [](const Row& row) { return row.read_bytes + row.written_bytes; }));
    add_times();
    rate_column("busy_bytes_per_s", "WHILE BUSY", busy_ns);
    rate_column("wall_bytes_per_s", "OVER WALL", wall_ns);
  }
  add_statistics();
  return columns;
}

}  // namespace iosig::cli
