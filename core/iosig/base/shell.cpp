#include "iosig/base/shell.h"

#include <algorithm>
#include <cctype>

namespace iosig {

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "_-./,:=@+";
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || plain.find(c) != std::string_view::npos;
  });
  if (is_plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

}  // namespace iosig
