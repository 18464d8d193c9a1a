// Words of a command line as a shell reads them.
#pragma once

#include <string>
#include <string_view>

namespace iosig {

/// Returns `word` in single quotes if a POSIX shell would not take it as it is.
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace iosig
