// iosig-lines PID LINES: prints which code of a running process comes from lines of source code (code_table.h).
// iosig-lines --places FILE ADDRESSES: prints the lines of addresses (places.h).
//
// libiosig-preload.so runs the former for `iosig trace --source` when it meets code that it does not know, because a
// program cannot read its own debug information without its memory, time and failures becoming the program's. LINES are
// separated by commas. Line tables come from elfutils' libdw, also from separate debug files of this machine.
//
//     int put(int n) { return write(1, "x", n); }   // util.h:10, inlined into
//     put(3);                                       // io.c:40
//
// The line table says that this code is util.h:10. It belongs to io.c:40, too: the places into which functions were
// inlined are in the debug information beside it.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/trace/source_lines.h"
#include "lines/code_table.h"
#include "lines/debug_files.h"
#include "lines/inlined.h"
#include "lines/places.h"

namespace iosig::lines {
namespace {

using trace::SourceLines;

constexpr std::size_t max_ranges = 1u << 20;
constexpr std::size_t shown_names = 5;
constexpr std::string_view deleted = " (deleted)";  ///< how the kernel calls a file that has no name any more

/// The part of one selection that is in one module (program or library).
struct Found {
  bool has_file = false;
  std::set<std::uint32_t> lines;  ///< selected lines with code, unordered
  std::uint64_t code_bytes = 0;
  std::uint32_t nearest_before = 0, nearest_after = 0;  ///< lines of the file with code; 0: none
};

struct Selection {
  SourceLines lines;
  bool is_found = false;
};

class Search {
 public:
  explicit Search(std::vector<Selection> selections) : selections_(std::move(selections)) {}

  /// `may_match`: the module's line tables name a wanted file; else only what a message needs is read.
  void add_module(Dwfl_Module& module, bool is_program, bool may_match) {
    const char* path = nullptr;
    Dwarf_Addr begin = 0, end = 0;
    const char* const name = dwfl_module_info(&module, nullptr, &begin, &end, nullptr, nullptr, &path, nullptr);
    std::string shown = path != nullptr ? path : name != nullptr ? name : "?";
    if (shown.ends_with(deleted)) shown.resize(shown.size() - deleted.size());
    Dwarf_Addr bias = 0;
    found_.assign(selections_.size(), {});
    unit_names_.clear();
    bool has_lines = false;
    if (dwfl_module_getdwarf(&module, &bias) != nullptr)
      for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(&module, unit, &bias)) != nullptr;)
        has_lines = add_unit(*unit, bias, may_match) || has_lines;
    for (std::size_t n = 0; n < selections_.size(); ++n) {
      if (found_[n].lines.empty()) continue;
      selections_[n].is_found = true;
      add_fact("source", fmt::format("{}\t{}\t{}\t{}", found_[n].lines.size(), found_[n].code_bytes,
                                     source_lines_text(selections_[n].lines), shown));
    }
    if (!is_program) return;
    program_ = shown;
    program_found_ = found_;
    program_names_ = unit_names_;
    has_program_lines_ = has_lines;
    if (!has_lines) add_fact("no-lines", shown);
  }

  /// A library whose file was replaced after it was loaded: what it was compiled from cannot be read any more.
  void add_replaced(std::string_view path) {
    path.remove_suffix(deleted.size());
    replaced_.emplace_back(path);
    add_fact("replaced", path);
  }

  /// Returns what to tell the user: selections that nothing has matched in this process.
  [[nodiscard]] std::string message() const {
    const bool is_ours = !program_.starts_with("/usr/") && !program_.starts_with("/bin/");
    if (program_.empty() || !is_ours) return {};  // sh, mpirun, python: it starts or loads what is meant
    std::vector<std::string> said;
    for (std::size_t n = 0; n < selections_.size(); ++n)
      if (!selections_[n].is_found) said.push_back(reason(selections_[n].lines, program_found_[n]));
    if (!said.empty() && !has_program_lines_)
      return fmt::format("'{}' has no line information: --source records nothing of it; compile it with -g",
                         printable(program_));
    if (!said.empty() && !replaced_.empty())
      said.push_back(fmt::format("'{}' could not be searched: another file was put in its place since it was loaded",
                                 printable(replaced_.front())));
    return fmt::format("{}", fmt::join(said, "; "));
  }

  /// Returns the selected ranges, merged.
  [[nodiscard]] std::vector<CodeRange> ranges() {
    std::ranges::sort(ranges_, {}, &CodeRange::begin);
    std::vector<CodeRange> merged;
    for (const CodeRange& each : ranges_)
      if (!merged.empty() && each.begin <= merged.back().end)
        merged.back().end = std::max(merged.back().end, each.end);
      else if (merged.size() < max_ranges)
        merged.push_back(each);
    return merged;
  }
  [[nodiscard]] const std::string& facts() const { return facts_; }

 private:
  void add_fact(std::string_view key, std::string_view value) {
    facts_ += fmt::format("{}={}", key, value);
    facts_ += '\0';
  }

  void add_code(std::size_t selection, std::uint32_t line, std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    Found& found = found_[selection];
    found.lines.insert(line);
    found.code_bytes += end - begin;
    ranges_.push_back({begin, end});
  }

  /// Adds what a compilation unit has; returns whether it has lines at all.
  bool add_unit(Dwarf_Die& unit, Dwarf_Addr bias, bool may_match) {
    if (const char* const name = dwarf_diename(&unit); name != nullptr && unit_names_.size() <= shown_names)
      unit_names_.emplace_back(name);
    if (!may_match) return true;
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrclines(&unit, &lines, &count) != 0) return false;
    bool has_file = false;
    // By the address of its name, which libdw keeps: the selections that the file is in.
    std::unordered_map<const char*, std::vector<std::size_t>> of_file;
    const auto selections_of = [&](const char* file) -> const std::vector<std::size_t>& {
      const auto [known, is_new] = of_file.try_emplace(file);
      for (std::size_t n = 0; is_new && n < selections_.size(); ++n)
        if (is_source_file(selections_[n].lines, file)) known->second.push_back(n);
      return known->second;
    };
    for (std::size_t n = 0; n + 1 < count; ++n) {
      Dwarf_Line* const row = dwarf_onesrcline(lines, n);
      const char* const file = dwarf_linesrc(row, nullptr, nullptr);
      Dwarf_Addr begin = 0, end = 0;
      bool is_end = false;
      int line = 0;
      if (file == nullptr || dwarf_lineendsequence(row, &is_end) != 0 || is_end || dwarf_lineno(row, &line) != 0 ||
          line <= 0 || dwarf_lineaddr(row, &begin) != 0 || dwarf_lineaddr(dwarf_onesrcline(lines, n + 1), &end) != 0)
        continue;
      for (const std::size_t each : selections_of(file)) {
        has_file = true;
        found_[each].has_file = true;
        add_line(each, static_cast<std::uint32_t>(line), begin + bias, end + bias);
      }
    }
    if (has_file) add_inlined(unit, bias, selections_of, unit);
    return count > 0;
  }

  void add_line(std::size_t selection, std::uint32_t line, std::uint64_t begin, std::uint64_t end) {
    const SourceLines& wanted = selections_[selection].lines;
    Found& found = found_[selection];
    if (line < wanted.first)
      found.nearest_before = std::max(found.nearest_before, line);
    else if (line > wanted.last)
      found.nearest_after = found.nearest_after == 0 ? line : std::min(found.nearest_after, line);
    else
      add_code(selection, line, begin, end);
  }

  /// Adds the functions below `parent` that were inlined at selected lines.
  template <class SelectionsOf>
  void add_inlined(Dwarf_Die& unit, Dwarf_Addr bias, const SelectionsOf& selections_of, Dwarf_Die& parent) {
    Dwarf_Die die{};
    if (dwarf_child(&parent, &die) != 0) return;
    do {
      switch (dwarf_tag(&die)) {
        case DW_TAG_inlined_subroutine: add_inlined_function(unit, bias, selections_of, die); [[fallthrough]];
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_try_block:
        case DW_TAG_catch_block: add_inlined(unit, bias, selections_of, die); break;
        default: break;
      }
    } while (dwarf_siblingof(&die, &die) == 0);
  }

  template <class SelectionsOf>
  void add_inlined_function(Dwarf_Die& unit, Dwarf_Addr bias, const SelectionsOf& selections_of, Dwarf_Die& die) {
    const auto place = inlined_at(unit, die);
    if (!place) return;
    for (const std::size_t each : selections_of(place->file)) {
      const SourceLines& wanted = selections_[each].lines;
      if (place->line < wanted.first || place->line > wanted.last) continue;
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
        add_code(each, static_cast<std::uint32_t>(place->line), begin + bias, end + bias);
    }
  }

  [[nodiscard]] std::string reason(const SourceLines& lines, const Found& found) const {
    if (!found.has_file) {
      const std::size_t shown = std::min(program_names_.size(), shown_names);
      return fmt::format(
          "no code of '{}' is from '{}', it is compiled from {}{}; libraries that it loads later count, too",
          printable(program_), printable(lines.file),
          fmt::join(program_names_.begin(), program_names_.begin() + static_cast<long>(shown), ", "),
          shown < program_names_.size() ? " and others" : "");
    }
    const std::string before = found.nearest_before > 0 ? fmt::format("{}", found.nearest_before) : "";
    const std::string after = found.nearest_after > 0 ? fmt::format("{}", found.nearest_after) : "";
    return fmt::format("no code of '{}' is from line{} {} of '{}'; the nearest lines with code: {}{}{}",
                       printable(program_), lines.first == lines.last ? "" : "s", line_range_text(lines),
                       printable(lines.file), before, before.empty() || after.empty() ? "" : ", ", after);
  }

  std::vector<Selection> selections_;
  std::vector<CodeRange> ranges_;
  std::string facts_;
  std::vector<Found> found_;             ///< of the module that is searched, by selection
  std::vector<std::string> unit_names_;  ///< of that module: the first ones
  std::string program_;
  std::vector<Found> program_found_;
  std::vector<std::string> program_names_;
  std::vector<std::string> replaced_;
  bool has_program_lines_ = false;
};

/// Returns the executable mappings of a process.
std::vector<CodeRange> mapped_code(const std::string& pid) {
  std::vector<CodeRange> ranges;
  std::ifstream maps("/proc/" + pid + "/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, rights) == 3 &&
        rights[2] == 'x')  // NOLINT(cert-err34-c)
      ranges.push_back({begin, end});
  }
  return ranges;
}

/// Base names of the wanted files. A line table that has none of them need not be read.
std::vector<std::string> wanted_names;

/// Whether the text has the name, ended by NUL. `has_only_names`: a slash or another name's end is before it.
bool has_name(std::string_view text, const std::string& name, bool has_only_names) {
  const std::string_view ended(name.c_str(), name.size() + 1);
  for (std::size_t at = text.find(ended); at != text.npos; at = text.find(ended, at + 1))
    if (!has_only_names || at == 0 || text[at - 1] == '/' || text[at - 1] == '\0') return true;
  return false;
}

/// Whether the names in an ELF file's line tables have one of the wanted ones.
bool names_wanted_file(Elf& elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(&elf, &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(&elf, section)) != nullptr;) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* const name = elf_strptr(&elf, names, header.sh_name);
    if (name == nullptr || !std::string_view(name).starts_with(".debug_line")) continue;
    if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0) return true;
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    if (data == nullptr) continue;
    const std::string_view text(static_cast<const char*>(data->d_buf), data->d_size);
    const bool has_only_names = std::string_view(name) == ".debug_line_str";
    if (std::ranges::any_of(wanted_names, [&](const auto& each) { return has_name(text, each, has_only_names); }))
      return true;
  }
  return false;
}

/// Whether the file itself has line tables: no separate file is asked for.
bool has_line_tables(Elf& elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(&elf, &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(&elf, section)) != nullptr;) {
    GElf_Shdr header{};
    const char* const name =
        gelf_getshdr(section, &header) == nullptr ? nullptr : elf_strptr(&elf, names, header.sh_name);
    if (name != nullptr && header.sh_type != SHT_NOBITS && std::string_view(name) == ".debug_line") return true;
  }
  return false;
}

/// The process whose modules are searched: its directory in /proc, and the path of its program.
struct Target {
  std::string proc, program;
};
Target target;

/// Opens a module's file. The program's own can be read also after it was replaced.
int find_elf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, char** found, Elf** elf) {
  if (name != target.program || !std::string_view(name).ends_with(deleted))
    return dwfl_linux_proc_find_elf(module, user, name, base, found, elf);
  *found = ::strdup(name);
  return ::open((target.proc + "/exe").c_str(), O_RDONLY | O_CLOEXEC);
}

/// Whether the module is a library, or a part of one, of which the file has gone; not memory that a program shares.
bool is_replaced_library(std::string_view name) {
  return name.ends_with(deleted) && name.find(".so") != name.npos && !name.starts_with("/memfd:") &&
         !name.starts_with("/dev/");
}

int take_module(Dwfl_Module* module, void** /*user*/, const char* name, Dwarf_Addr /*base*/, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const char* path = nullptr;
  if (std::string_view(name).ends_with("/libiosig-preload.so")) return DWARF_CB_OK;  // large, and nobody's program
  if (name != target.program && is_replaced_library(name)) {
    search.add_replaced(name);
    return DWARF_CB_OK;
  }
  // The path of the file is known when the module's ELF file has been found.
  GElf_Addr bias = 0;
  Elf* const elf = dwfl_module_getelf(module, &bias);
  (void)dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
  const bool is_program = path != nullptr && path == target.program;
  if (elf == nullptr) return DWARF_CB_OK;
  const bool may_match = !has_line_tables(*elf) || names_wanted_file(*elf);  // without: a separate file may have them
  if (is_program || may_match) search.add_module(*module, is_program, may_match);
  return DWARF_CB_OK;
}

int print_table(const std::string& pid, std::string_view texts) {
  std::vector<Selection> selections;
  for (const std::string_view text : split(texts, ',')) {
    const auto lines = trace::parse_source_lines(text);
    if (!lines) return 2;
    wanted_names.push_back(std::filesystem::path(lines->file).filename().string());
    selections.push_back({*lines});
  }
  Search search(std::move(selections));
  std::array<char, 4096> program{};
  const std::string link = "/proc/" + pid + "/exe";
  const ssize_t length = ::readlink(link.c_str(), program.data(), program.size() - 1);
  is_debug_file_wanted = names_wanted_file;
  target = {"/proc/" + pid, std::string(program.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)))};

  Dwfl_Callbacks callbacks{};
  callbacks.find_elf = find_elf;
  callbacks.find_debuginfo = find_debug_file;
  Dwfl* const session = dwfl_begin(&callbacks);
  const auto number = static_cast<pid_t>(parse_count<std::uint32_t>(pid).value_or(0));
  if (session == nullptr || dwfl_linux_proc_report(session, number) != 0 ||
      dwfl_report_end(session, nullptr, nullptr) != 0)
    return 4;
  (void)dwfl_getmodules(session, take_module, &search, 0);

  const std::vector<CodeRange> mapped = mapped_code(pid), selected = search.ranges();
  const std::string message = search.message();
  CodeTableHeader header{};
  header.magic = table_magic;
  header.mapped = static_cast<std::uint32_t>(mapped.size());
  header.selected = static_cast<std::uint32_t>(selected.size());
  header.facts_bytes = static_cast<std::uint32_t>(search.facts().size());
  header.message_bytes = static_cast<std::uint32_t>(message.size());
  std::string table(reinterpret_cast<const char*>(&header), sizeof header);
  for (const auto* ranges : {&mapped, &selected})
    table.append(reinterpret_cast<const char*>(ranges->data()), ranges->size() * sizeof(CodeRange));
  table += search.facts();
  table += message;
  return write_all(STDOUT_FILENO, table, "standard output") ? 0 : 4;
}

}  // namespace
}  // namespace iosig::lines

int main(int count, char** words) {
  sigset_t none;  // the library blocks all signals around it
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (count == 4 && std::string_view(words[1]) == "--places") return iosig::lines::print_places(words[2], words[3]);
  if (count != 3) {
    std::fputs(
        "usage: iosig-lines PID LINES (started by libiosig-preload.so; see iosig trace --source)\n"
        "       iosig-lines --places FILE ADDRESSES (started by iosig infer --pragmas)\n",
        stderr);
    return 2;
  }
  return iosig::lines::print_table(words[1], words[2]);
}
