#include "lines/places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "lines/debug_files.h"
#include "lines/inlined.h"

namespace iosig::lines {
namespace {

std::string place_text(std::uint64_t line, std::string_view file) { return fmt::format("{} {}", line, file); }

std::string places_of(Dwfl_Module& module, Dwarf_Addr address) {
  std::vector<std::string> places;
  int line = 0;
  Dwfl_Line* const row = dwfl_module_getsrc(&module, address);
  const char* const file = row == nullptr ? nullptr : dwfl_lineinfo(row, nullptr, &line, nullptr, nullptr, nullptr);
  if (file == nullptr || line <= 0) return {};
  places.push_back(place_text(static_cast<std::uint64_t>(line), file));
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(&module, address, &bias);
  if (unit == nullptr) return places.front();
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes(unit, address - bias, &scopes);
  for (int n = 0; n < count && dwarf_tag(&scopes[n]) != DW_TAG_subprogram; ++n)
    if (dwarf_tag(&scopes[n]) == DW_TAG_inlined_subroutine)
      if (const auto place = inlined_at(*unit, scopes[n])) places.push_back(place_text(place->line, place->file));
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
