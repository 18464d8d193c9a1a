#include "iosig/format/journal.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/format/signature_text.h"

namespace iosig {
namespace {

constexpr std::string_view journal_schema = "iosig.journal/1";
constexpr int max_entry_depth = 16;  // an entry has one level; a newer version's may have more
constexpr std::string_view checksum_key = ",\"checksum\":\"";

constexpr std::array kinds{RedirectKind::link, RedirectKind::directory};
constexpr std::array redirectors{RedirectedBy::runtime, RedirectedBy::prepare, RedirectedBy::choose};

std::string checksum(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

/// Writes the members of one document without the JSON library, which takes as long for an entry as the kernel takes to
/// create its file. Nearly all texts are printable ASCII: words, numbers, and what percent_encoded() returns.
class Line {
 public:
  void add(std::string_view key, std::string_view value) {
    begin(key);
    if (std::ranges::any_of(value, [](char c) { return c < ' ' || c > '~'; })) {  // the file of declared reads
      text_ += json_line(value);
      return;
    }
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  template <class Number>
  requires std::integral<Number>
  void add(std::string_view key, Number value) {
    begin(key);
    if constexpr (std::same_as<Number, bool>)
      text_ += value ? "true" : "false";
    else
      text_ += fmt::format_int(value).str();
  }

  /// Ends the document with the checksum of all before it.
  std::string with_checksum() {
    const std::string sum = checksum(text_);
    text_ += checksum_key;
    text_ += sum;
    return std::move(text_ += "\"}\n");
  }

 private:
  void begin(std::string_view key) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += key;
    text_ += "\":";
  }

  std::string text_;
};

/// Reads typed members of one document; keeps the first missing or wrong one for the message.
class Members {
 public:
  explicit Members(const nlohmann::ordered_json& document) : document_(document) {}

  std::string text(const char* key) {
    const auto found = document_.find(key);
    if (found != document_.end() && found->is_string()) return found->get<std::string>();
    refuse(key);
    return {};
  }
  std::string path(const char* key) {
    const auto bytes = percent_decoded(text(key));
    if (bytes && bytes->starts_with('/') && bytes->find('\0') == std::string::npos) return *bytes;
    refuse(key);
    return {};
  }
  std::int64_t number(const char* key) {
    const auto found = document_.find(key);
    if (found != document_.end() && found->is_number_integer()) return found->get<std::int64_t>();
    refuse(key);
    return 0;
  }
  bool flag(const char* key) {
    const auto found = document_.find(key);
    if (found != document_.end() && found->is_boolean()) return found->get<bool>();
    refuse(key);
    return false;
  }
  template <class Values>
  auto one_of(const Values& values, const char* key) {
    const std::string name = text(key);
    for (const auto value : values)
      if (name == name_of(value)) return value;
    refuse(key);
    return values.front();
  }
  void refuse(const char* key) {
    if (wrong_.empty()) wrong_ = key;
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  const nlohmann::ordered_json& document_;
  std::string wrong_;
};

/// "device:inode".
std::string namespace_text(const NamespaceId& id) { return fmt::format("{}:{}", id.device, id.inode); }

std::optional<NamespaceId> parse_namespace(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2) return {};
  const auto device = parse_count<std::uint64_t>(parts[0]), inode = parse_count<std::uint64_t>(parts[1]);
  if (!device || !inode) return {};
  return NamespaceId{*device, *inode};
}

/// Returns the signature as text that can be read back. Without the file of declared reads if no signature can name it:
/// rules may lie in a directory with any name, and the data come home without it.
std::string readable_text(const Signature& signature) {
  std::string text = signature_text(signature);
  if (!signature.reads || parse_signature(text)) return text;
  Signature without = signature;
  without.reads.reset();
  return signature_text(without);
}

bool is_id(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

const char* name_of(RedirectKind kind) { return kind == RedirectKind::link ? "link" : "folder"; }

const char* name_of(RedirectedBy by) {
  switch (by) {
    case RedirectedBy::runtime: return "runtime";
    case RedirectedBy::prepare: return "prepare";
    case RedirectedBy::choose: return "choose";
  }
  return "";
}

std::string journal_entry_text(const JournalEntry& entry) {
  Line line;
  line.add("schema", journal_schema);
  line.add("id", entry.id);
  line.add("kind", name_of(entry.kind));
  line.add("path", percent_encoded(entry.path));
  line.add("destination", percent_encoded(entry.destination));
  line.add("mount_point", percent_encoded(entry.mount_point));
  line.add("filesystem_id", entry.filesystem_id);
  line.add("home_filesystem_id", entry.home_filesystem_id);
  line.add("home_inode", entry.home_inode);
  line.add("signature", readable_text(entry.signature));
  line.add("by", name_of(entry.by));
  line.add("pid", entry.pid);
  line.add("host", percent_encoded(entry.host));
  line.add("created_unix_s", entry.created_unix_s);
  line.add("session", entry.session);
  line.add("boot", percent_encoded(entry.boot));
  line.add("created_boot_s", entry.created_boot_s);
  line.add("pid_namespace", namespace_text(entry.pid_namespace));
  line.add("start_ticks", entry.start_ticks);
  line.add("session_start_ticks", entry.session_start_ticks);
  line.add("has_machines_host_name", entry.has_machines_host_name);
  line.add("job", percent_encoded(entry.job));
  if (entry.drain) line.add("drain", true);
  return line.with_checksum();
}

Result<JournalEntry> parse_journal_entry(std::string_view text, std::string_view source) {
  // A newer version may use another checksum, so its number is checked first.
  const auto document = parse_json(text, max_entry_depth);
  if (document.is_object() && document.contains("schema") && document["schema"] != journal_schema) {
    // A value other than a string may be nested too deep to print.
    const auto* other = document["schema"].get_ptr<const std::string*>();
    return fail(ErrorKind::bad_input,
                "{}: journal entry has the schema \"{}\", but this iosig reads only \"{}\"; use the iosig that "
                "wrote it",
                source, other == nullptr ? "?" : printable(*other), journal_schema);
  }

  constexpr const char* advice =
      "the data are still reachable: run 'iosig finalize' on the link that leads to them, then delete this entry";
  const std::size_t end = text.rfind(checksum_key);
  if (end == std::string_view::npos || !document.is_object())
    return fail(ErrorKind::bad_input, "{}: journal entry is cut off or damaged; {}", source, advice);
  const std::string_view body = text.substr(0, end);
  if (text.substr(end) != fmt::format("{}{}\"}}\n", checksum_key, checksum(body)))
    return fail(ErrorKind::bad_input, "{}: journal entry was changed after it was written (checksum differs); {}",
                source, advice);

  Members members(document);
  JournalEntry entry;
  entry.id = members.text("id");
  if (!is_id(entry.id)) members.refuse("id");
  entry.kind = members.one_of(kinds, "kind");
  entry.path = members.path("path");
  entry.destination = members.path("destination");
  entry.mount_point = members.path("mount_point");
  if (document.contains("filesystem_id"))  // missing in early 0.1.0 entries, also without "boot"
    entry.filesystem_id = static_cast<std::uint64_t>(members.number("filesystem_id"));
  if (document.contains("home_inode")) {  // missing in early 0.1.0 entries
    entry.home_filesystem_id = static_cast<std::uint64_t>(members.number("home_filesystem_id"));
    entry.home_inode = static_cast<std::uint64_t>(members.number("home_inode"));
  }
  entry.by = members.one_of(redirectors, "by");
  entry.pid = members.number("pid");
  entry.created_unix_s = members.number("created_unix_s");
  entry.host = percent_decoded(members.text("host")).value_or("");
  if (document.contains("boot")) {
    entry.session = members.number("session");
    entry.boot = percent_decoded(members.text("boot")).value_or("");
    entry.created_boot_s = members.number("created_boot_s");
  }
  if (document.contains("pid_namespace")) {  // entries before 0.1.0 lack it
    const auto pid_namespace = parse_namespace(members.text("pid_namespace"));
    if (!pid_namespace) members.refuse("pid_namespace");
    entry.pid_namespace = pid_namespace.value_or(NamespaceId{});
    entry.start_ticks = members.number("start_ticks");
    entry.session_start_ticks = members.number("session_start_ticks");
    entry.has_machines_host_name = members.flag("has_machines_host_name");
  }
  if (document.contains("job"))  // missing in early 0.1.0 entries
    entry.job = percent_decoded(members.text("job")).value_or("");
  if (document.contains("drain")) entry.drain = members.flag("drain");  // only where it is true
  const auto signature = parse_signature(members.text("signature"), {}, fmt::format("{}: signature", source));
  if (!signature) return pass_on(signature.error());
  entry.signature = *signature;
  if (!members.wrong().empty())
    return fail(ErrorKind::bad_input, "{}: journal entry has no usable \"{}\"; {}", source, members.wrong(), advice);
  return entry;
}

}  // namespace iosig
