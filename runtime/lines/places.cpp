#include "lines/places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "lines/debug_files.h"

namespace iosig::lines {
namespace {

std::string place_text(int line, std::string_view file) { return fmt::format("{} {}", line, file); }

/// Returns the place into which a function was inlined; "": not known.
std::string inlined_at(Dwarf_Die& unit, Dwarf_Die& function) {
  Dwarf_Attribute attribute{};
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(&function, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(&function, DW_AT_call_line, &attribute), &line) != 0 ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count)
    return {};
  const char* const path = dwarf_filesrc(files, file, nullptr, nullptr);
  return path == nullptr ? "" : place_text(static_cast<int>(line), path);
}

std::string places_of(Dwfl_Module& module, Dwarf_Addr address) {
  std::vector<std::string> places;
  int line = 0;
  Dwfl_Line* const row = dwfl_module_getsrc(&module, address);
  const char* const file = row == nullptr ? nullptr : dwfl_lineinfo(row, nullptr, &line, nullptr, nullptr, nullptr);
  if (file == nullptr || line <= 0) return {};
  places.push_back(place_text(line, file));
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(&module, address, &bias);
  if (unit == nullptr) return places.front();
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes(unit, address - bias, &scopes);
  for (int n = 0; n < count && dwarf_tag(&scopes[n]) != DW_TAG_subprogram; ++n)
    if (dwarf_tag(&scopes[n]) == DW_TAG_inlined_subroutine)
      if (std::string place = inlined_at(*unit, scopes[n]); !place.empty()) places.push_back(std::move(place));
  std::free(scopes);
  return fmt::format("{}", fmt::join(places, "\t"));
}

}  // namespace

int print_places(const std::string& path, std::string_view addresses) {
  Dwfl_Callbacks callbacks{};
  callbacks.section_address = dwfl_offline_section_address;
  callbacks.find_debuginfo = find_debug_file;
  Dwfl* const session = dwfl_begin(&callbacks);
  Dwfl_Module* const module =
      session == nullptr ? nullptr : dwfl_report_offline(session, path.c_str(), path.c_str(), -1);
  GElf_Addr bias = 0;
  if (module == nullptr || dwfl_report_end(session, nullptr, nullptr) != 0 ||
      dwfl_module_getelf(module, &bias) == nullptr)
    return 3;
  std::string text;
  for (const std::string_view each : split(addresses, ',')) {
    std::uint64_t address = 0;
    if (std::from_chars(each.data(), each.data() + each.size(), address, 16).ptr != each.data() + each.size()) return 2;
    text += places_of(*module, address + bias) + "\n";
  }
  return write_all(STDOUT_FILENO, text, "standard output") ? 0 : 4;
}

}  // namespace iosig::lines
