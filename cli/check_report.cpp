#include "check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

using Json = nlohmann::ordered_json;
using Severity = Diagnostic::Severity;

constexpr std::size_t tab_columns = 8;

/// Returns the number of screen columns of the first `bytes` bytes of a line.
std::size_t screen_columns(std::string_view line, std::size_t bytes) {
  std::size_t columns = 0;
  for (const char c : line.substr(0, std::min(bytes, line.size()))) {
    if (c == '\t')
      columns += tab_columns - columns % tab_columns;
    else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      ++columns;
  }
  return columns + (bytes > line.size() ? bytes - line.size() : 0);
}

std::size_t characters(std::string_view line, std::size_t bytes) {
  const std::string_view part = line.substr(0, std::min(bytes, line.size()));
  return static_cast<std::size_t>(
      std::ranges::count_if(part, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t screen_column(const SourcePosition& at) { return screen_columns(at.line_text, at.column - 1) + 1; }

std::string_view name_of(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

std::string message_of(const SourceFinding& finding) {
  return finding.suggestion.empty() ? finding.message
                                    : fmt::format("{}; did you mean '{}'?", finding.message, finding.suggestion);
}

std::string head(const SourcePosition& at, std::string_view kind, std::string_view message) {
  return fmt::format("{}:{}:{}: {}: {}", printable(at.file), at.line, screen_column(at), kind, message);
}

std::string excerpt(const SourcePosition& at, std::string_view correction) {
  std::string line;
  for (const char c : at.line_text) {
    if (c == '\t')
      line.append(tab_columns - line.size() % tab_columns, ' ');
    else
      line += c;
  }
  const std::size_t begin = screen_column(at) - 1;
  const std::size_t end = std::max(screen_columns(at.line_text, at.end_column - 1), begin + 1);
  const std::string margin(begin, ' ');
  std::string text =
      fmt::format("\n{:5} | {}\n      | {}^{}", at.line, printable(line), margin, std::string(end - begin - 1, '~'));
  if (!correction.empty()) text += fmt::format("\n      | {}{}", margin, correction);
  return text;
}

Json position_json(const SourcePosition& at) {
  return {{"file", at.file},
          {"line", at.line},
          {"column", screen_column(at)},
          {"end_column", screen_columns(at.line_text, at.end_column - 1) + 1}};
}

/// Converts a path to a URI reference.
std::string uri(std::string_view path) {
  constexpr std::string_view free = "/-._~!$&'()*+,;=@";
  std::string text = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    if (free.find(c) != std::string_view::npos || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
        (c >= 'A' && c <= 'Z'))
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

Json sarif_region(const SourcePosition& at) {
  return {{"startLine", at.line},
          {"startColumn", characters(at.line_text, at.column - 1) + 1},
          {"endColumn", characters(at.line_text, at.end_column - 1) + 1}};
}

Json sarif_location(const SourcePosition& at) {
  return {{"physicalLocation", {{"artifactLocation", {{"uri", uri(at.file)}}}, {"region", sarif_region(at)}}}};
}

Json sarif_result(const SourceFinding& finding) {
  Json result = {{"ruleId", finding.rule},
                 {"level", name_of(finding.severity)},
                 {"message", {{"text", message_of(finding)}}},
                 {"locations", Json::array({sarif_location(finding.at)})}};
  for (const SourceNote& note : finding.notes) {
    Json related = sarif_location(note.at);
    related["message"] = {{"text", note.message}};
    result["relatedLocations"].push_back(related);
  }
  if (finding.can_replace) {
    const Json replacement = {{"deletedRegion", sarif_region(finding.at)},
                              {"insertedContent", {{"text", finding.suggestion}}}};
    const Json change = {{"artifactLocation", {{"uri", uri(finding.at.file)}}},
                         {"replacements", Json::array({replacement})}};
    result["fixes"] = Json::array({{{"description", {{"text", fmt::format("write '{}'", finding.suggestion)}}},
                                    {"artifactChanges", Json::array({change})}}});
  }
  return result;
}

}  // namespace

std::string finding_text(const SourceFinding& finding) {
  std::string text = head(finding.at, name_of(finding.severity), message_of(finding)) +
                     excerpt(finding.at, finding.can_replace ? finding.suggestion : "");
  const SourcePosition* shown = &finding.at;
  for (const SourceNote& note : finding.notes) {
    text += '\n' + head(note.at, "note", note.message);
    if (note.at != *shown) text += excerpt(note.at, "");
    shown = &note.at;
  }
  return text;
}

Json finding_json(const SourceFinding& finding) {
  Json json = position_json(finding.at);
  json["severity"] = name_of(finding.severity);
  json["rule"] = finding.rule;
  json["message"] = message_of(finding);
  json["replacement"] = finding.can_replace ? Json(finding.suggestion) : Json();
  json["notes"] = Json::array();
  for (const SourceNote& note : finding.notes) {
    Json one = position_json(note.at);
    one["message"] = note.message;
    json["notes"].push_back(one);
  }
  return json;
}

Json sarif(std::span<const SourceFinding> findings) {
  const std::initializer_list<std::pair<std::string_view, std::string_view>> rules = {
      {"signature", "a signature must be well formed"},
      {"definition", "a name has one definition"},
      {"association", "a signature must stand directly before one call that opens a file"},
      {"directive", "a directive of iosig generate must be well formed"},
      {"template", "a template leaves its I/O to its directives"},
      {"callee", "a wrapper's declaration must name the function and its arguments"},
      {"storage", "a mount point of the storage description should satisfy each signature"},
      {"room", "a stream without a totalsize may fill the storage that is chosen for it"},
      {"file", "rules files and storage descriptions must follow their formats"},
      {"source", "a source must be small enough to be checked"}};
  Json all_rules = Json::array();
  for (const auto& [id, text] : rules) all_rules.push_back({{"id", id}, {"shortDescription", {{"text", text}}}});
  Json results = Json::array();
  for (const SourceFinding& finding : findings) results.push_back(sarif_result(finding));
  const Json driver = {{"name", "iosig check"}, {"version", IOSIG_VERSION}, {"rules", all_rules}};
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs",
           Json::array({{{"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}}})}};
}

}  // namespace iosig::cli
