#include "plan_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "iosig/base/text.h"
#include "iosig/trace/calls.h"

namespace iosig::cli {
namespace {

constexpr std::string_view field_names[] = {"path",    "offset", "length", "call", "kind",  "start_ns",
                                            "start_s", "rank",   "host",   "pid",  "layer", "result"};

constexpr double ns_per_s = 1e9;

/// Splits a line of CSV; "" in quotes is a quote. Nothing if a quote is not closed.
bool split_csv(std::string_view line, std::vector<std::string>& values) {
  values.assign(1, "");
  bool is_quoted = false;
  for (std::size_t n = 0; n < line.size(); ++n) {
    const bool is_double = is_quoted && line[n] == '"' && n + 1 < line.size() && line[n + 1] == '"';
    if (is_double)
      values.back() += line[n++];
    else if (line[n] == '"')
      is_quoted = !is_quoted;
    else if (line[n] == ',' && !is_quoted)
      values.emplace_back();
    else
      values.back() += line[n];
  }
  return !is_quoted;
}

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size();
}

}  // namespace

tl::unexpected<Error> RequestLines::wrong(std::string_view what) const {
  return fail(ErrorKind::bad_input, "{}:{}: {}", source_, line_, what);
}

std::string_view RequestLines::value(Field field) const {
  const std::size_t column = columns_[field];
  return column < values_.size() ? std::string_view(values_[column]) : std::string_view{};
}

Result<bool> RequestLines::read(std::string_view line, RequestLine& out) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // spreadsheets begin a file with it
  if (++line_ == 1 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return false;
  const bool is_first = columns_.empty() && !has_header_;
  if (is_first) {
    has_header_ = line.find(',') != std::string_view::npos;
    if (!has_header_) columns_.assign(fields, std::string::npos);
    if (has_header_) {
      if (auto read = read_header(line); !read) return pass_on(read.error());
      return false;
    }
  }
  return has_header_ ? read_fields(line, out) : read_numbers(line, out);
}

Result<void> RequestLines::read_header(std::string_view line) {
  if (!split_csv(line, values_)) return wrong("a quote is not closed");
  for (const std::string_view name : field_names) {
    const auto at = std::ranges::find(values_, name);
    columns_.push_back(at == values_.end() ? std::string::npos : static_cast<std::size_t>(at - values_.begin()));
  }
  for (const Field needed : {offset, length})
    if (columns_[needed] == std::string::npos)
      return wrong(fmt::format("expected a header with the column '{}'", field_names[needed]));
  if (columns_[call] == std::string::npos && columns_[kind] == std::string::npos)
    return wrong("expected a header with the column 'call' or 'kind'");
  return {};
}

Result<bool> RequestLines::read_numbers(std::string_view line, RequestLine& out) const {
  constexpr std::size_t process = 3;
  const auto words = words_of(line);
  if (words.size() < 2 || !parse_number(words[0], out.request.offset) || !parse_number(words[1], out.request.length))
    return wrong("expected offset and length as whole numbers from 0 on, or a header of CSV");
  out.request.is_write = is_write_;
  if (words.size() > process) out.process = words[process];
  return true;
}

Result<bool> RequestLines::read_fields(std::string_view line, RequestLine& out) {
  if (!split_csv(line, values_)) return wrong("a quote is not closed; names with line ends are not read");
  trace::Moves moves = trace::Moves::nothing;
  if (columns_[kind] != std::string::npos) {
    if (value(kind) != "read" && value(kind) != "write")
      return wrong(fmt::format("kind '{}': expected read or write", printable(value(kind))));
    moves = value(kind) == "read" ? trace::Moves::reads : trace::Moves::writes;
  } else if (const auto known = trace::call_of(value(call)); known != trace::Call::none) {
    moves = trace::moves_of(known);
  }
  std::int64_t moved = 0;
  if (columns_[result] != std::string::npos && (!parse_number(value(result), moved) || moved < 0)) return false;
  if (moves == trace::Moves::nothing || value(offset).empty()) return false;
  if (!parse_number(value(offset), out.request.offset))
    return wrong(fmt::format("offset '{}': expected a whole number from 0 to 2^64 - 1", printable(value(offset))));
  if (!parse_number(value(length), out.request.length))
    return wrong(fmt::format("length '{}': expected a whole number from 0 to 2^64 - 1", printable(value(length))));
  if (columns_[result] != std::string::npos) out.request.length = static_cast<std::uint64_t>(moved);
  out.request.is_write = moves == trace::Moves::writes;
  std::int64_t nanoseconds = 0;
  if (columns_[start_ns] != std::string::npos) {
    if (!parse_number(value(start_ns), nanoseconds))
      return wrong(fmt::format("start_ns '{}': expected a whole number", printable(value(start_ns))));
    out.request.start_s = static_cast<double>(nanoseconds) / ns_per_s;
  } else if (columns_[start_s] != std::string::npos && !parse_number(value(start_s), out.request.start_s)) {
    return wrong(fmt::format("start_s '{}': expected a number", printable(value(start_s))));
  }
  out.path = value(path);
  out.host = value(host);
  out.layer = value(layer);
  out.has_rank = !value(rank).empty();
  out.process = !out.has_rank ? fmt::format("{} {}", value(host), value(pid)) : std::string(value(rank));
  return true;
}

}  // namespace iosig::cli
