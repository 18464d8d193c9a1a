// Messages of the runtime to the user: on stderr, without stdio, and through iosig_last_error().
#pragma once

#include <string_view>

namespace iosig::runtime {

/// Records which file stderr is. A program may close stderr and open a data file as descriptor 2. Messages must not
/// corrupt that file; therefore say() writes only to the recorded file. Called once, when the library is loaded.
void remember_stderr();

/// Prints "iosig: text" to stderr in one write.
void say(std::string_view text);

/// Sets the result of iosig_last_error() for this thread. Truncates long text and replaces newlines by blanks.
void set_last_error(std::string_view text);
[[nodiscard]] const char* last_error();

}  // namespace iosig::runtime
