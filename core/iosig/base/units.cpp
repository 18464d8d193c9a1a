#include "iosig/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "iosig/base/text.h"

namespace iosig {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kilo = 1024;
// Ascending within each spelling; the first spelling of a factor is the one that is printed.
constexpr std::array<Unit, 14> size_units{{{"B", 1},
                                           {"KB", kilo},
                                           {"KiB", kilo},
                                           {"K", kilo},
                                           {"MB", kilo* kilo},
                                           {"MiB", kilo* kilo},
                                           {"M", kilo* kilo},
                                           {"GB", kilo* kilo* kilo},
                                           {"GiB", kilo* kilo* kilo},
                                           {"G", kilo* kilo* kilo},
                                           {"TB", kilo* kilo* kilo* kilo},
                                           {"TiB", kilo* kilo* kilo* kilo},
                                           {"PB", kilo* kilo* kilo* kilo* kilo},
                                           {"EB", kilo* kilo* kilo* kilo* kilo* kilo}}};
constexpr std::array<Unit, 8> time_units{
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"y", year_s}}};

struct Quantity {
  double number;
  std::string_view unit;
};

/// Splits "1.5 GiB" into 1.5 and "GiB". The number is unsigned decimal; "inf", "nan" and hexadecimal are no numbers
/// here.
Result<Quantity> split(std::string_view text, std::string_view what, std::string_view example) {
  const std::string_view body = trimmed(text);
  double number = 0;
  const bool digit_first = !body.empty() && (body.front() == '.' || (body.front() >= '0' && body.front() <= '9'));
  if (!digit_first) {
    if (!body.empty() && body.front() == '-')
      return fail(ErrorKind::bad_input, "'{}' is negative; a {} is at least 0, e.g. {}", text, what, example);
    return fail(ErrorKind::bad_input, "'{}' is not a {}; expected e.g. {}", text, what, example);
  }
  const auto [end, failure] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (failure == std::errc::result_out_of_range || !std::isfinite(number))
    return fail(ErrorKind::bad_input, "'{}' is beyond what a number can hold", text);
  if (failure != std::errc{})
    return fail(ErrorKind::bad_input, "'{}' is not a {}; expected e.g. {}", text, what, example);
  return Quantity{number, trimmed(body.substr(static_cast<std::size_t>(end - body.data())))};
}

Result<double> scaled(std::string_view text, const Quantity& quantity, std::span<const Unit> units,
                      std::string_view what) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) {
    if (quantity.unit == unit.name) return quantity.number * unit.factor;
    names.push_back(unit.name);
  }
  if (quantity.unit.empty())
    return fail(ErrorKind::bad_input, "'{}' has no unit; expected one of {}", text, fmt::join(names, " "));
  const std::string_view near = nearest_name(quantity.unit, names);
  return fail(ErrorKind::bad_input, "'{}' is not a unit of {}{}; expected one of {}", quantity.unit, what,
              near.empty() ? "" : fmt::format("; did you mean '{}'?", near), fmt::join(names, " "));
}

std::string about(double value, std::span<const Unit> units, double step, std::string_view suffix) {
  const Unit* best = &units.front();
  double last_factor = 0;
  for (const Unit& unit : units) {
    if (unit.factor == last_factor) continue;  // another spelling of the same unit
    last_factor = unit.factor;
    if (value >= unit.factor * step) best = &unit;
  }
  const double shown = value / best->factor;
  const int decimals = shown >= 99.95 || shown == std::floor(shown) ? 0 : shown >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", shown, decimals, best->name, suffix);
}

/// The shortest "<number><unit>" that `parse` reads back to exactly `value`.
template <class Parse>
std::string shortest(double value, std::span<const Unit> units, std::string_view fallback, Parse parse) {
  std::string best;
  for (const Unit& unit : units) {
    std::string text = fmt::format("{}{}", value / unit.factor, unit.name);
    const auto back = parse(text);
    if (back && *back == value && (best.empty() || text.size() <= best.size())) best = std::move(text);
  }
  return best.empty() ? fmt::format("{}{}", value, fallback) : best;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  auto quantity = split(text, "size", "16MB");
  if (!quantity) return pass_on(quantity.error());
  if (quantity->unit.empty()) quantity->unit = "B";
  // Whole numbers stay exact beyond 2^53, where a double would round.
  const std::string_view body = trimmed(text);
  std::uint64_t whole = 0;
  const auto [end, failure] = std::from_chars(body.data(), body.data() + body.size(), whole);
  const bool is_whole = failure == std::errc{} && trimmed({end, body.data() + body.size()}) == quantity->unit;
  const auto bytes = scaled(text, *quantity, size_units, "size");
  if (!bytes) return pass_on(bytes.error());
  if (*bytes >= 0x1p63) return fail(ErrorKind::bad_input, "'{}' is more than a file can hold (2^63 - 1 bytes)", text);
  if (is_whole && quantity->number > 0)
    return whole * static_cast<std::uint64_t>(std::llround(*bytes / quantity->number));
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

Result<double> parse_seconds(std::string_view text) {
  const auto quantity = split(text, "time", "20y");
  if (!quantity) return pass_on(quantity.error());
  const auto seconds = scaled(text, *quantity, time_units, "time");
  if (seconds && !std::isfinite(*seconds))
    return fail(ErrorKind::bad_input, "'{}' is beyond what a number can hold", text);
  return seconds;
}

Result<double> parse_bytes_per_s(std::string_view text) {
  const std::string_view body = trimmed(text);
  if (!body.ends_with("/s"))
    return fail(ErrorKind::bad_input, "'{}' is not a rate; expected a size per second, e.g. 1.7GB/s", text);
  const auto quantity = split(body.substr(0, body.size() - 2), "rate", "1.7GB/s");
  if (!quantity) return pass_on(quantity.error());
  const auto rate = scaled(text, *quantity, size_units, "size in a rate");
  if (!rate) return rate;
  if (!(*rate > 0)) return fail(ErrorKind::bad_input, "'{}' is not a rate above 0", text);
  return rate;
}

Result<double> parse_share(std::string_view text) {
  auto quantity = split(text, "share", "0.3 or 30%");
  if (!quantity) return pass_on(quantity.error());
  if (quantity->unit == "%")
    quantity->number /= 100;
  else if (!quantity->unit.empty())
    return fail(ErrorKind::bad_input, "'{}' is not a share; expected a number from 0 to 1, or a percentage", text);
  if (quantity->number > 1)
    return fail(ErrorKind::bad_input, "'{}' is above 1; expected a number from 0 to 1, or a percentage", text);
  return quantity->number;
}

std::string bytes_text(std::uint64_t bytes) {
  std::string_view name = "B";
  std::uint64_t factor = 1;
  for (const Unit& unit : size_units) {
    const auto candidate = static_cast<std::uint64_t>(unit.factor);
    if (bytes == 0 || bytes % candidate != 0) break;
    if (candidate > factor) {
      factor = candidate;
      name = unit.name;
    }
  }
  return fmt::format("{}{}", bytes / factor, name);
}

std::string seconds_text(double seconds) {
  if (seconds == 0) return "0s";
  return shortest(seconds, time_units, "s", parse_seconds);
}

std::string rate_text(double bytes_per_s) {
  std::array<Unit, size_units.size()> units = size_units;
  const auto parse = [](const std::string& text) { return parse_bytes_per_s(text + "/s"); };
  return shortest(bytes_per_s, units, "B", parse) + "/s";
}

std::string about_bytes(double bytes) { return about(bytes, size_units, 1, ""); }
std::string about_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  return about(seconds, time_units, 1, "");
}
std::string about_rate(double bytes_per_s) { return about(bytes_per_s, size_units, 1, "/s"); }

}  // namespace iosig
