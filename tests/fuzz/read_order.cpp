// Fuzzes orders of reads. Every input is tried as it is and behind the line that an order begins with; what is read are
// reads that a file can have.
#include "iosig/format/read_order.h"

#include <string>

#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

void check(std::string_view text) {
  const auto known = parse_read_order(text, "file");
  if (!known) {
    const std::string& message = known.error().message;
    hold(known.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(message.starts_with("file:") && message.size() > 6 && message[5] > '0' && message[5] <= '9',
         "a refusal names the line", message);
    return;
  }
  for (const FileRead& read : known->reads)
    hold(read.offset >= 0 && read.length > 0 && read.offset <= INT64_MAX - read.length, "a file can have each read");
  std::size_t before = 0;
  for (const std::size_t end : known->ends) {
    hold(end > before && end < known->reads.size(), "each stream has a read");
    before = end;
  }
}

}  // namespace

void try_one(std::string_view text) {
  check(text);
  check("iosig.order/1\n" + std::string(text));
}
