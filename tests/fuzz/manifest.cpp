// Fuzzes checksum manifests. Every input is tried as it is and with the checksum that it ought to have.
#include "iosig/format/manifest.h"

#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

void check(std::string_view text) {
  const auto manifest = parse_manifest(text, "m.sha256");
  if (!manifest) {
    const std::string& message = manifest.error().message;
    hold(manifest.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(fuzz::names_a_line(message, "m.sha256"), "a refusal names its place", message);
    return;
  }
  const std::string printed = manifest_text(*manifest);
  const auto again = parse_manifest(printed, "printed");
  hold(again && *again == *manifest, "a printed manifest is read back", printed);
}

}  // namespace

void try_one(std::string_view text) {
  check(text);
  const std::string_view body = text.substr(0, text.rfind("# checksum "));
  check(fmt::format("{}# checksum {:016x}\n", body, fnv1a(body)));
}
