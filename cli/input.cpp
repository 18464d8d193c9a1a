#include "input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"

namespace iosig::cli {

std::string shown_name(const std::string& file) { return file == "-" ? "standard input" : printable(file); }

Result<void> for_each_part(const std::string& file, const TakePart& take) {
  Fd opened;
  if (file != "-") {
    opened = Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return system_failure("open", file);
  }
  std::string part(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(file == "-" ? STDIN_FILENO : opened.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", file == "-" ? "standard input" : file);
    if (auto taken = take(std::string_view(part).substr(0, static_cast<std::size_t>(got))); !taken || got == 0)
      return taken;
  }
}

Result<void> LineCutter::operator()(std::string_view part) {
  if (part.empty()) return begun_.empty() ? Result<void>{} : take_(begun_);
  for (std::size_t end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
    const std::string_view rest = part.substr(0, end);
    auto taken = begun_.empty() ? take_(rest) : take_(begun_.append(rest));
    if (!taken) return taken;
    begun_.clear();
    part.remove_prefix(end + 1);
  }
  begun_.append(part);
  return {};
}

Result<std::string> whole_input(const std::string& file) {
  std::string text;
  auto read = for_each_part(file, [&](std::string_view part) -> Result<void> {
    text.append(part);
    if (text.size() <= max_description_bytes) return {};
    return fail(ErrorKind::bad_input, "{}: more than {}", shown_name(file), bytes_text(max_description_bytes));
  });
  if (!read) return pass_on(std::move(read.error()));
  return text;
}

bool is_description(std::string_view text) {
  return is_pattern_binary(text) || (!trimmed(text).empty() && trimmed(text).front() == '{');
}

Result<Pattern> pattern_from_text(std::string_view text, std::string_view source) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return is_pattern_binary(text) ? pattern_from_bytes(bytes, source) : pattern_from_json(text, source);
}

}  // namespace iosig::cli
