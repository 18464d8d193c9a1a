// The source lines that open files, from the addresses in a trace and the line tables of its programs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "iosig/trace/trace.h"
#include "verb.h"

namespace iosig::cli {

/// "FILE:LINE" of an open, and of the calls that led to it, innermost first; at most 4.
using OpenLine = std::vector<std::string>;
/// By path: where the traced programs opened it.
using OpenLines = std::map<std::string, std::set<OpenLine>>;

/// Returns "FILE:LINE, called at FILE:LINE".
[[nodiscard]] std::string open_line_text(const OpenLine& line);

/// Adds the places of a trace. Of a program without line tables, or one that was built again since, nothing is added;
/// a note says so.
void add_open_lines(const trace::Trace& trace, OpenLines& lines, const Console& console);

/// Returns where these files were opened, ascending.
[[nodiscard]] std::set<OpenLine> open_lines_of(const std::vector<std::string>& paths, const OpenLines& lines);

}  // namespace iosig::cli
