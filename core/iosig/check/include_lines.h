// Where declarations of generated code go: behind the includes of a source.
#pragma once

#include <cstddef>
#include <string_view>

namespace iosig {

/// Returns the number of the last line with an `#include` before the first function or other text in braces, outside of
/// conditionals; 0 if there is none. Code that is inserted behind that line sees the program's feature macros
/// (`_GNU_SOURCE`), and is not inside a comment.
[[nodiscard]] std::size_t last_include_line(std::string_view text);

}  // namespace iosig
