#include "lines/inlined.h"

#include <dwarf.h>

namespace iosig::lines {

std::optional<SourcePlace> inlined_at(Dwarf_Die& unit, Dwarf_Die& function) {
  Dwarf_Attribute attribute{};
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(&function, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(&function, DW_AT_call_line, &attribute), &line) != 0 ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count)
    return std::nullopt;
  const char* const path = dwarf_filesrc(files, file, nullptr, nullptr);
  if (path == nullptr) return std::nullopt;
  return SourcePlace{path, line};
}

}  // namespace iosig::lines
