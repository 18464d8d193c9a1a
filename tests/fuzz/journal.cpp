// Fuzzes journal entries. Every input is tried as it is and with the checksum that it ought to have, else none would
// get past it.
#include "iosig/format/journal.h"

#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

void check(std::string_view text) {
  const auto entry = parse_journal_entry(text, "entry.json");
  if (!entry) {
    const std::string& message = entry.error().message;
    hold(entry.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(message.starts_with("entry.json:"), "a refusal names the file", message);
    return;
  }
  const std::string printed = journal_entry_text(*entry);
  const auto again = parse_journal_entry(printed, "printed");
  hold(again && *again == *entry, "a printed entry is read back", printed);
  hold(entry->path.starts_with('/') && entry->destination.starts_with('/'), "paths are absolute", printed);
}

}  // namespace

void try_one(std::string_view text) {
  check(text);
  const std::string_view body = text.substr(0, text.rfind(",\"checksum\":\""));
  check(fmt::format("{},\"checksum\":\"{:016x}\"}}\n", body, fnv1a(body)));
}
