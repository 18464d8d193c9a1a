// The parts of a line of strace's output:
//
//     9110  1795690879.257052 openat(AT_FDCWD</tmp>, "a,b", O_RDONLY) = 3</tmp/a,b> <0.000012>
//     pid   time              name   arguments                          result      duration (-T)
//
// With -f, a call during which another thread does something has two lines, "name(args <unfinished ...>" and
// "<... name resumed>args) = result".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iosig::trace {

enum class StraceEvent : std::uint8_t { call, unfinished, resumed, exit, other };

struct StraceLine {
  std::optional<std::int32_t> pid;
  std::int64_t time_ns = 0;  ///< since 1970
  StraceEvent event = StraceEvent::other;
  std::string_view name;  ///< of the call
  std::string_view rest;  ///< what follows "name(" or "resumed>", without "<unfinished ...>"
};
/// Nothing: it is no line of strace -ttt.
[[nodiscard]] std::optional<StraceLine> strace_line(std::string_view line);

struct StraceCall {
  std::vector<std::string_view> arguments;  ///< as they are printed
  std::optional<std::int64_t> result;       ///< -errno if it failed; none: "?", the call did not return
  std::optional<std::int64_t> duration_ns;
  std::string_view result_path;  ///< of -y; escaped
};
/// Takes apart "arguments) = result <duration>". Nothing: it is malformed.
[[nodiscard]] std::optional<StraceCall> strace_call(std::string_view rest);

/// A number in decimal or, with 0x, hexadecimal digits.
[[nodiscard]] std::optional<std::int64_t> strace_number(std::string_view text);
/// "a\n\"" with its quotes, to the bytes that it stands for; nothing if it is no quoted text, or one that is cut.
[[nodiscard]] std::optional<std::string> strace_string(std::string_view quoted);
/// The bytes that escaped text without quotes stands for.
[[nodiscard]] std::string strace_unescaped(std::string_view text);

/// A descriptor "3", "3</tmp/a>", "3</tmp/a>(deleted)" or "AT_FDCWD</tmp>" (number -100).
struct StraceDescriptor {
  std::int32_t number = -1;
  std::string path;  ///< of -y; empty: not told, or no file
};
[[nodiscard]] std::optional<StraceDescriptor> strace_descriptor(std::string_view text);

/// Returns the elements of "[a, b]", as they are printed; nothing if it is no list.
[[nodiscard]] std::optional<std::vector<std::string_view>> strace_list(std::string_view text);
/// Returns the value of "field=" in a structure "{a=1, b=2}"; empty: there is none.
[[nodiscard]] std::string_view strace_field(std::string_view structure, std::string_view field);

}  // namespace iosig::trace
