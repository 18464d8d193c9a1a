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

// Powers of 1024, ascending. Used for printing; `KiB` and `K` are read as `KB`.
constexpr std::array<Unit, 7> size_units{
    {{"B", 1}, {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"TB", 0x1p40}, {"PB", 0x1p50}, {"EB", 0x1p60}}};
constexpr std::array<Unit, 8> time_units{
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"y", year_s}}};

constexpr std::array<Unit, 3> power_units{{{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}}};
constexpr std::array<Unit, 5> shown_power_units{{{"nW", 1e-9}, {"uW", 1e-6}, {"mW", 1e-3}, {"W", 1}, {"kW", 1e3}}};
constexpr std::array<Unit, 6> energy_units{
    {{"nJ", 1e-9}, {"uJ", 1e-6}, {"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}}};

/// Normalises "KiB" and "K" to "KB".
std::string canonical_size_unit(std::string_view unit) {
  const bool with_i = unit.size() == 3 && unit[1] == 'i' && unit[2] == 'B';
  const bool letter_alone = unit.size() == 1 && unit != "B";
  return with_i || letter_alone ? fmt::format("{}B", unit[0]) : std::string(unit);
}

struct Quantity {
  double number;
  std::string_view unit;
};

/// Splits "1.5 GiB" into 1.5 and "GiB". The number is unsigned decimal; "inf", "nan" and hexadecimal are refused.
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

std::string about(double value, std::span<const Unit> units, std::string_view suffix) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (value >= unit.factor) best = &unit;
  const double shown = value / best->factor;
  if (shown >= 1e7) return fmt::format("{:.3g} {}{}", shown, best->name, suffix);
  const int decimals = shown >= 99.95 || shown == std::floor(shown) ? 0 : shown >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", shown, decimals, best->name, suffix);
}

/// Returns the shortest "<number><unit>" without "e-" that `parse` reads back to exactly `value`. Tries 15 digits too,
/// since the division may have left a wrong last digit.
template <class Parse>
std::string shortest(double value, std::span<const Unit> units, std::string_view fallback, Parse parse) {
  std::string best;
  const auto consider = [&](std::string text) {
    if (text.find("e-") != std::string::npos) return;
    const auto back = parse(text);
    if (back && *back == value && (best.empty() || text.size() <= best.size())) best = std::move(text);
  };
  for (const Unit& unit : units) {
    consider(fmt::format("{}{}", value / unit.factor, unit.name));
    consider(fmt::format("{:.15g}{}", value / unit.factor, unit.name));
  }
  return best.empty() ? fmt::format("{}{}", value, fallback) : best;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  auto quantity = split(text, "size", "16MB");
  if (!quantity) return pass_on(quantity.error());
  const std::string unit = quantity->unit.empty() ? "B" : canonical_size_unit(quantity->unit);
  const auto factor = scaled(text, {1, unit}, size_units, "size");
  if (!factor) return pass_on(factor.error());
  const auto too_large = [&] {
    return fail(ErrorKind::bad_input, "'{}' is more than a file can hold (2^63 - 1 bytes)", text);
  };
  // Whole numbers stay exact beyond 2^53, where a double would round.
  const std::string_view body = trimmed(text);
  std::uint64_t whole = 0;
  const auto [end, failure] = std::from_chars(body.data(), body.data() + body.size(), whole);
  if (failure == std::errc{} && trimmed({end, body.data() + body.size()}) == quantity->unit) {
    if (whole > max_bytes / static_cast<std::uint64_t>(*factor)) return too_large();
    return whole * static_cast<std::uint64_t>(*factor);
  }
  const double bytes = quantity->number * *factor;
  if (bytes >= 0x1p63) return too_large();
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Result<double> parse_seconds(std::string_view text) {
  const auto quantity = split(text, "time", "20y");
  if (!quantity) return pass_on(quantity.error());
  auto seconds = scaled(text, *quantity, time_units, "time");
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
  const std::string unit = canonical_size_unit(quantity->unit);
  auto rate = scaled(text, {quantity->number, unit}, size_units, "size in a rate");
  if (!rate) return rate;
  if (!(*rate > 0)) return fail(ErrorKind::bad_input, "'{}' is not a rate above 0", text);
  return rate;
}

Result<double> parse_watts(std::string_view text) {
  const auto quantity = split(text, "power", "6W");
  if (!quantity) return pass_on(quantity.error());
  auto watts = scaled(text, *quantity, power_units, "power");
  if (watts && !std::isfinite(*watts)) return fail(ErrorKind::bad_input, "'{}' is beyond what a number can hold", text);
  return watts;
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
    factor = candidate;
    name = unit.name;
  }
  return fmt::format("{}{}", bytes / factor, name);
}

std::string seconds_text(double seconds) {
  if (seconds == 0) return "0s";
  return shortest(seconds, time_units, "s", parse_seconds);
}

std::string rate_text(double bytes_per_s) {
  const auto parse = [](const std::string& text) { return parse_bytes_per_s(text + "/s"); };
  return shortest(bytes_per_s, size_units, "B", parse) + "/s";
}

std::string watts_text(double watts) {
  if (watts == 0) return "0W";
  return shortest(watts, power_units, "W", parse_watts);
}

std::string about_bytes(double bytes) { return about(bytes, size_units, ""); }
std::string about_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  return about(seconds, time_units, "");
}
std::string about_rate(double bytes_per_s) { return about(bytes_per_s, size_units, "/s"); }
std::string about_joules(double joules) {
  if (joules == 0) return "0 J";
  return about(joules, energy_units, "");
}
std::string about_watts(double watts) {
  if (watts == 0) return "0 W";
  return about(watts, shown_power_units, "");
}

}  // namespace iosig
