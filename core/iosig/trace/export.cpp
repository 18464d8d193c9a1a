#include "iosig/trace/export.h"

#include <fmt/format.h>

namespace iosig::trace {
namespace {

template <class Number>
void append_number(Number number, std::string& text) {
  const fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
}

void append_quoted(std::string_view field, std::string& text) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += field;
    return;
  }
  text += '"';
  for (const char each : field) {
    if (each == '"') text += '"';
    text += each;
  }
  text += '"';
}

}  // namespace

void append_csv(const Access& access, std::string& text) {
  append_number(access.id, text);
  text += ',';
  append_number(access.parent, text);
  text += ',';
  append_quoted(access.process->host, text);
  text += ',';
  append_number(access.process->pid, text);
  text += ',';
  append_number(access.tid, text);
  text += ',';
  if (access.process->rank) append_number(*access.process->rank, text);
  text += ',';
  text += layer_names[static_cast<std::size_t>(layer_of(access.call))];
  text += ',';
  text += name_of(access.call);
  text += ',';
  append_quoted(access.path, text);
  text += ',';
  if (access.fd >= 0) append_number(access.fd, text);
  text += ',';
  if (access.offset != no_offset) append_number(access.offset, text);
  text += ',';
  if (access.length != no_length) append_number(access.length, text);
  text += ',';
  append_number(access.start_ns, text);
  text += ',';
  if (!access.is_in_flight) append_number(access.end_ns, text);
  text += ',';
  if (!access.is_in_flight) append_number(access.result, text);
  text += ',';
  append_quoted(access.second_path, text);
  text += '\n';
}

}  // namespace iosig::trace
