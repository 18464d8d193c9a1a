#include "iosig/format/manifest.h"

#include <charconv>
#include <climits>

#include "iosig/base/text.h"
#include "iosig/format/signature_text.h"

namespace iosig {
namespace {

constexpr std::string_view manifest_schema = "iosig.manifest/1";
constexpr std::string_view suffix = ".sha256";

/// Escapes a name with line breaks as sha256sum does, with a backslash before the whole line.
std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '\\')
      text += "\\\\";
    else if (c == '\n')
      text += "\\n";
    else if (c == '\r')
      text += "\\r";
    else
      text += c;
  }
  return text;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
      continue;
    }
    if (++i == text.size()) return {};
    if (text[i] != '\\' && text[i] != 'n' && text[i] != 'r') return {};
    name += text[i] == 'n' ? '\n' : text[i] == 'r' ? '\r' : '\\';
  }
  return name;
}

/// Parses a manifest line by line; keeps the first unexpected line for the message.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  /// Returns the next line without its newline.
  std::string_view next(std::string_view expected) {
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) {
      refuse(expected);
      return {};
    }
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  /// Returns the value of the next line, which must be "# key value".
  std::string_view value(std::string_view key) {
    const std::string expected = fmt::format("# {} ...", key);
    std::string_view line = next(expected);
    const std::string start = fmt::format("# {} ", key);
    if (line.starts_with(start)) return line.substr(start.size());
    refuse(expected);
    return {};
  }
  template <class Number>
  Number number(std::string_view key) {
    const std::string_view text = value(key);
    Number number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size()) refuse(fmt::format("# {} and a number", key));
    return number;
  }
  void refuse(std::string_view expected) {
    if (wrong_.empty()) wrong_ = fmt::format("{}: expected '{}'", number_, expected);
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  [[nodiscard]] std::size_t line() const { return number_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
  std::string wrong_;
};

/// Reads "<sha256>  <name>", as sha256sum writes it.
void read_checksum_line(Lines& lines, Manifest& manifest) {
  constexpr std::size_t digits = 64;
  constexpr std::string_view expected = "<64 hexadecimal digits>  <name>";
  std::string_view line = lines.next(expected);
  const bool is_escaped = line.starts_with('\\');
  if (is_escaped) line.remove_prefix(1);
  manifest.sha256 = line.substr(0, digits);
  const std::string_view name = line.substr(std::min(line.size(), digits + 2));
  const auto plain = is_escaped ? unescaped(name) : std::string(name);
  if (manifest.sha256.size() != digits || manifest.sha256.find_first_not_of("0123456789abcdef") != std::string::npos ||
      line.substr(digits, 2) != "  " || !plain || plain->empty() || plain->find('/') != std::string::npos)
    return lines.refuse(expected);
  manifest.name = *plain;
}

}  // namespace

std::string manifest_name(std::string_view data_name) {
  return fmt::format("{}{}", cut_to(data_name, NAME_MAX - suffix.size()), suffix);
}

std::string manifest_text(const Manifest& manifest) {
  const std::string name = escaped(manifest.name);
  std::string text = fmt::format(
      "# {}: `iosig verify-file` and `sha256sum -c` hold the data against it\n"
      "# path {}\n# signature {}\n# size_bytes {}\n# modified_unix_ns {}\n# sealed_unix_s {}\n{}{}  {}\n",
      manifest_schema, percent_encoded(manifest.path), signature_text(manifest.signature), manifest.size_bytes,
      manifest.modified_unix_ns, manifest.sealed_unix_s, name == manifest.name ? "" : "\\", manifest.sha256, name);
  return text + fmt::format("# checksum {:016x}\n", fnv1a(text));
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view source) {
  const std::string_view first = text.substr(0, text.find('\n'));
  if (!first.starts_with(fmt::format("# {}:", manifest_schema)))
    return fail(ErrorKind::bad_input, "{}:1: this is not a manifest that this iosig reads; expected '# {}: ...'",
                source, manifest_schema);
  Lines lines(text);
  Manifest manifest;
  (void)lines.next("");
  if (const auto path = percent_decoded(lines.value("path")); path && path->starts_with('/'))
    manifest.path = *path;
  else
    lines.refuse("# path /...");
  const auto signature = parse_signature(lines.value("signature"), {}, fmt::format("{}:{}", source, lines.line()));
  manifest.size_bytes = lines.number<std::uint64_t>("size_bytes");
  manifest.modified_unix_ns = lines.number<std::int64_t>("modified_unix_ns");
  manifest.sealed_unix_s = lines.number<std::int64_t>("sealed_unix_s");
  read_checksum_line(lines, manifest);
  const std::string_view body = text.substr(0, text.size() - lines.rest().size());
  const bool is_whole = lines.value("checksum") == fmt::format("{:016x}", fnv1a(body)) && lines.rest().empty();
  if (!lines.wrong().empty())
    return fail(ErrorKind::bad_input, "{}:{}; the manifest is damaged", source, lines.wrong());
  if (!signature) return pass_on(signature.error());
  manifest.signature = *signature;
  if (!is_whole)
    return fail(ErrorKind::bad_input, "{}:{}: the manifest was changed after it was written (its checksum differs)",
                source, lines.line());
  return manifest;
}

}  // namespace iosig
