// The source lines of addresses in a program or library, for `iosig infer --pragmas`.
#pragma once

#include <string>
#include <string_view>

namespace iosig::lines {

/// Prints a line for each address (hexadecimal in the file's own counting, separated by commas): the source lines that
/// it comes from, as "LINE FILE" separated by tabs, the innermost inlined function first; empty if that is not known.
/// Returns the exit status: 2 if an address is none, 3 if the file cannot be read, 4 if it cannot print.
int print_places(const std::string& path, std::string_view addresses);

}  // namespace iosig::lines
