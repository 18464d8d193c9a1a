// A composition in one line, for tests: "raid1(sda,sdb)", "mds2+1(a,b,c)", "replica1+2()".
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "iosig/format/storage_toml.h"
#include "iosig/storage/composite.h"
#include "iosig/storage/composite_readers.h"

namespace iosig::test {

inline std::string code_text(RedundancyScheme scheme, std::uint32_t data, std::uint32_t parity) {
  return scheme_text(scheme) + (data + parity != 0 ? fmt::format("{}+{}", data, parity) : "");
}

/// "-" for nothing.
inline std::string text_of(const std::optional<Part>& part) {
  if (!part) return "-";
  if (part->kind != Part::Kind::composite) return part->name;
  std::string members;
  for (const Part& each : part->parts) members += (members.empty() ? "" : ",") + text_of(each);
  return fmt::format("{}({})", code_text(part->scheme, part->data, part->parity), members);
}

inline std::string text_of(const Device& device, const std::vector<Device>& all) {
  if (!device.redundancy) return device.name;
  std::string members;
  for (const std::string& name : device.redundancy->members) {
    const auto member = std::ranges::find(all, name, &Device::name);
    members += (members.empty() ? "" : ",") + (member == all.end() ? "?" + name : text_of(*member, all));
  }
  const Redundancy& code = *device.redundancy;
  return fmt::format("{}({})", code_text(code.scheme, code.data, code.parity), members);
}
inline std::string text_of(const Composed& composed) { return text_of(composed.whole.device, composed.members); }

/// Calls `check(text)` with `text` cut off after each of its bytes, and with each byte changed.
template <class Check>
void for_each_damage(const std::string& text, Check check) {
  for (std::size_t length = 0; length < text.size(); ++length) check(text.substr(0, length));
  std::string changed = text;
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char byte : {'\0', ' ', '\n', '9', '(', '\xff'}) {
      changed[i] = byte;
      check(changed);
      changed[i] = text[i];
    }
}

}  // namespace iosig::test
