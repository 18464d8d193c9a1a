// What the runtime tells people: on stderr without stdio, and by iosig_last_error.
#pragma once

#include <string_view>

namespace iosig::runtime {

/// Remembers which file stderr is. A program may close it and open its own data as descriptor 2, and those must not
/// get our messages: later only this same file is written to. Called once, when the library is loaded.
void remember_stderr();

/// "iosig: text" to stderr, in one write.
void say(std::string_view text);

/// This thread's answer to iosig_last_error; cut to what fits, newlines become blanks.
void set_last_error(std::string_view text);
[[nodiscard]] const char* last_error();

}  // namespace iosig::runtime
