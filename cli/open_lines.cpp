#include "open_lines.h"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "compiler.h"
#include "iosig/base/text.h"
#include "parts.h"

namespace iosig::cli {
namespace {

constexpr std::size_t addresses_of_run = 4000;  ///< their text fits an argument of a program

/// A program or library, and the line places of its addresses, as iosig-lines prints them.
struct LineTable {
  std::map<std::uint64_t, std::string> places;
  bool is_same = true;  ///< the file is the one that ran
};

/// Whether a line is of the user's source: code of the C++ library and of installed headers is inlined into it.
bool is_own_source(std::string_view file) {
  return std::ranges::none_of(std::array<std::string_view, 2>{"/usr/include/", "/usr/lib/"},
                              [&](std::string_view directory) { return file.starts_with(directory); });
}

/// Adds "FILE:LINE" of the places in the user's own source. `places`: a line of iosig-lines.
void add_own_lines(std::string_view places, OpenLine& lines) {
  constexpr std::size_t max_lines = 4;
  for (const std::string_view place : split(places, '\t')) {
    const std::size_t space = place.find(' ');
    if (space == place.npos || lines.size() >= max_lines || !is_own_source(place.substr(space + 1))) continue;
    lines.push_back(fmt::format("{}:{}", place.substr(space + 1), place.substr(0, space)));
  }
}

bool is_unchanged(const std::string& path, const trace::CodeFile& file) {
  struct stat now {};
  return ::stat(path.c_str(), &now) == 0 && S_ISREG(now.st_mode) &&
         static_cast<std::uint64_t>(now.st_size) == file.bytes &&
         static_cast<std::uint64_t>(now.st_mtim.tv_sec) * 1'000'000'000 +
                 static_cast<std::uint64_t>(now.st_mtim.tv_nsec) ==
             file.modified_ns;
}

std::string path_of(const trace::Process& process, const trace::CodeFile& file) {
  return file.path.empty() ? process.program : file.path;
}

/// Asks for all addresses of a file.
Result<void> read_lines(const std::string& reader, const std::string& path, LineTable& table) {
  std::vector<std::uint64_t> all;
  for (const auto& [address, text] : table.places) all.push_back(address);
  for (std::size_t first = 0; first < all.size(); first += addresses_of_run) {
    const std::span some = std::span(all).subspan(first, std::min(addresses_of_run, all.size() - first));
    const auto answer = output_of({reader, "--places", path, fmt::format("{:x}", fmt::join(some, ","))});
    if (!answer) return pass_on(answer.error());
    const std::vector<std::string_view> texts = split(*answer, '\n');
    for (std::size_t n = 0; n < some.size() && n < texts.size(); ++n) table.places[some[n]] = texts[n];
  }
  return {};
}

/// All addresses in the trace, by the file that has them.
std::map<std::string, LineTable> tables_of(const trace::Trace& trace) {
  std::map<std::string, LineTable> tables;
  for (const auto& [key, process] : trace.processes()) {
    const trace::OpenPlaces& opens = process.open_places;
    for (const trace::OpenPlace& place : opens.places)
      for (const trace::CodeAddress& caller : place.callers)
        tables[path_of(process, opens.files[caller.file])].places.try_emplace(caller.address);
    for (const trace::CodeFile& file : opens.files)
      if (const auto known = tables.find(path_of(process, file)); known != tables.end())
        known->second.is_same = known->second.is_same && is_unchanged(known->first, file);
  }
  return tables;
}

}  // namespace

std::string open_line_text(const OpenLine& line) { return fmt::format("{}", fmt::join(line, ", called at ")); }

std::set<OpenLine> open_lines_of(const std::vector<std::string>& paths, const OpenLines& lines) {
  std::set<OpenLine> all;
  for (const std::string& path : paths)
    if (const auto known = lines.find(path); known != lines.end())
      all.insert(known->second.begin(), known->second.end());
  return all;
}

void add_open_lines(const trace::Trace& trace, OpenLines& lines, const Console& console) {
  std::map<std::string, LineTable> tables = tables_of(trace);
  if (tables.empty()) return;
  const auto reader = find_line_reader();
  if (!reader) return console.note(fmt::format("the lines that open files are not known: {}", reader.error().message));
  for (auto& [path, table] : tables) {
    if (!table.is_same)
      console.note(fmt::format("'{}' is not the file that ran: the lines at which it opened files are not known",
                               printable(path)));
    else if (const auto read = read_lines(*reader, path, table); !read)
      console.note(fmt::format("the lines of '{}' cannot be read: {}", printable(path), read.error().message));
  }
  for (const auto& [key, process] : trace.processes())
    for (const trace::OpenPlace& place : process.open_places.places) {
      const auto name = process.names.find(place.path);
      if (name == process.names.end()) continue;
      OpenLine found;
      for (const trace::CodeAddress& caller : place.callers)
        add_own_lines(tables[path_of(process, process.open_places.files[caller.file])].places[caller.address], found);
      if (!found.empty()) lines[name->second].insert(std::move(found));
    }
}

}  // namespace iosig::cli
