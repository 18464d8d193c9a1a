// Sizes, times, rates and power in human-readable form: parsers and printers.
//
// Sizes are powers of 1024 (`KB` = `KiB` = 1024 B), times are ms s min h d y with y = 365 d, rates are a size over `s`,
// power is in mW W kW.
// Every exact printer writes text that the matching parser reads back to the same number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

namespace iosig {

inline constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB, TiB = 1024 * GiB;
inline constexpr std::uint64_t max_bytes = INT64_MAX;  ///< maximum off_t: larger sizes are refused
inline constexpr double year_s = 365.0 * 86400;

/// Parses "16MB", "1.5 GiB", "4096" (bytes) to bytes, rounded to a whole byte. `bad_input` if it is not a size or above
/// max_bytes.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

/// Parses "20y", "0.1ms", "2h" to seconds >= 0; accepts `us` and `ns`. Refuses a bare number, which has no unit.
[[nodiscard]] Result<double> parse_seconds(std::string_view text);

/// Parses "1.7GB/s" to bytes per second; `bad_input` unless > 0.
[[nodiscard]] Result<double> parse_bytes_per_s(std::string_view text);

/// Parses "6W", "350mW", "1.2kW" to watts >= 0. Refuses a bare number, which has no unit.
[[nodiscard]] Result<double> parse_watts(std::string_view text);

/// Parses "1e-6", "30%" to a number in [0, 1].
[[nodiscard]] Result<double> parse_share(std::string_view text);

/// Prints exactly: parse_bytes(bytes_text(n)) == n. Uses the largest unit that divides `bytes`: "16MB", "1000B".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

/// Prints exactly: parse_seconds(seconds_text(s)) == s. Uses the unit with the shortest text: "20y", "90s".
[[nodiscard]] std::string seconds_text(double seconds);

/// Prints exactly: parse_bytes_per_s(rate_text(r)) == r: "1.7GB/s".
[[nodiscard]] std::string rate_text(double bytes_per_s);

/// Prints exactly: parse_watts(watts_text(w)) == w: "6W".
[[nodiscard]] std::string watts_text(double watts);

/// Prints for users: three significant digits with a unit ("1.53 GB", "12.4 ms", "819 MB/s"); not meant to be read
/// back.
[[nodiscard]] std::string about_bytes(double bytes);
[[nodiscard]] std::string about_seconds(double seconds);
[[nodiscard]] std::string about_rate(double bytes_per_s);
[[nodiscard]] std::string about_joules(double joules);
[[nodiscard]] std::string about_watts(double watts);

}  // namespace iosig
