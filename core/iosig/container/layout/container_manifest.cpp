#include "iosig/container/layout/container_manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "iosig/base/crc32c.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view schema_name = "iosig.container/";
constexpr int max_json_depth = 4;
constexpr std::size_t max_targets = 1024;

std::string checksum_of(const ordered_json& document) {
  const std::string text = json_ascii_line(document);
  return fmt::format("{:08x}", crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

bool is_id(const std::string& id) {
  return id.size() == 32 &&
         std::ranges::all_of(id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Returns the string at `key`; empty if there is none.
std::string string_at(const ordered_json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

/// Returns the version that a schema names; 0: it is not that of a container.
std::uint64_t version_in(std::string_view schema) {
  if (!schema.starts_with(schema_name)) return 0;
  schema.remove_prefix(schema_name.size());
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(schema.data(), schema.data() + schema.size(), number);
  return failure == std::errc() && end == schema.data() + schema.size() ? number : 0;
}

/// Returns the unsigned number at `key` if there is one of at most `most`.
std::optional<std::uint32_t> number_at(const ordered_json& document, const char* key, std::uint32_t most) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > most) return {};
  return found->get<std::uint32_t>();
}

/// Returns what is wrong with the targets; empty: nothing.
std::string read_targets(const ordered_json& document, ContainerManifest& manifest) {
  const auto targets = document.find("targets");
  if (targets == document.end() || !targets->is_array() || targets->size() > max_targets)
    return fmt::format("targets: expected a list of at most {} directories", max_targets);
  for (const ordered_json& target : *targets) {
    const auto path = target.is_string() ? percent_decoded(target.get<std::string>()) : std::nullopt;
    if (!path || !path->starts_with('/') || path->find('\0') != std::string::npos)
      return "targets: expected absolute paths, percent-encoded";
    manifest.targets.push_back(*path);
  }
  return {};
}

/// Returns what is wrong with the owner, which only the manifest on a target has; empty: nothing.
std::string read_owner(const ordered_json& document, ContainerManifest& manifest) {
  const auto owner = document.find("owner");
  if (owner == document.end()) return {};
  const bool is_one = owner->is_object() && owner->size() == 2 && owner->contains("path") &&
                      (*owner)["path"].is_string() && owner->contains("inode") &&
                      (*owner)["inode"].is_number_unsigned();
  const auto path = is_one ? percent_decoded((*owner)["path"].get<std::string>()) : std::nullopt;
  if (!path) return "owner: expected a path, percent-encoded, and an inode";
  manifest.owner = ContainerOwner{*path, (*owner)["inode"].get<std::uint64_t>()};
  return {};
}

}  // namespace

std::string_view name_of(IndexKind kind) { return kind == IndexKind::pattern ? "pattern" : "traditional"; }

std::string container_manifest_text(const ContainerManifest& manifest) {
  ordered_json document = {{"schema", fmt::format("{}{}", schema_name, manifest.version)},
                           {"id", manifest.id},
                           {"index", name_of(manifest.index)},
                           {"subfolders", manifest.subdirectories},
                           {"mode", manifest.mode},
                           {"targets", ordered_json::array()}};
  for (const std::string& target : manifest.targets) document["targets"].push_back(percent_encoded(target));
  if (manifest.owner)
    document["owner"] = {{"path", percent_encoded(manifest.owner->path)}, {"inode", manifest.owner->inode}};
  document["crc32c"] = checksum_of(document);
  return json_page(document) + "\n";
}

/// Example: {"schema": "iosig.container/2", "id": "5f..e1", "index": "pattern", "subfolders": 16, "mode": 420,
/// "targets": ["/nvme/5f..e1"], "crc32c": "1c291ca3"}. Judges the schema before the checksum, because a newer version
/// may compute another one, and the checksum before the fields: a manifest that was changed is not believed.
Result<ContainerManifest> parse_container_manifest(std::string_view text, std::string_view source) {
  const auto refuse = [&](std::string_view what) { return fail(ErrorKind::bad_input, "{}: {}", source, what); };
  ordered_json document = parse_json(text, max_json_depth);
  if (document.is_discarded() || !document.is_object())
    return refuse("this is not a container's manifest; expected one JSON document: it was cut or changed");
  const std::string schema = string_at(document, "schema");
  const std::uint64_t version = version_in(schema);
  if (version == 0 || version > newest_container_version)
    return refuse(fmt::format("schema '{}'{}; this program reads {}1 to {}", printable(schema),
                              version == 0 ? "" : ", of a newer IOSIG", schema_name, newest_container_version));
  const std::string checksum = string_at(document, "crc32c");
  document.erase("crc32c");
  if (checksum != checksum_of(document))
    return refuse("its checksum does not match: it was changed; undo that, or run iosig container repair");
  ContainerManifest manifest;
  manifest.version = static_cast<std::uint32_t>(version);
  manifest.id = string_at(document, "id");
  if (!is_id(manifest.id)) return refuse("id: expected 32 hexadecimal digits");
  const std::string index = string_at(document, "index");
  if (index != name_of(IndexKind::pattern) && index != name_of(IndexKind::traditional))
    return refuse(fmt::format("index '{}'; expected pattern or traditional", printable(index)));
  manifest.index = index == name_of(IndexKind::pattern) ? IndexKind::pattern : IndexKind::traditional;
  const auto subdirectories = number_at(document, "subfolders", max_subdirectories);
  if (!subdirectories || *subdirectories == 0)
    return refuse(fmt::format("subfolders: expected 1 to {}", max_subdirectories));
  manifest.subdirectories = *subdirectories;
  const auto mode = number_at(document, "mode", 07777);
  if (!mode) return refuse("mode: expected 0 to 4095");
  manifest.mode = *mode;
  if (const std::string wrong = read_targets(document, manifest); !wrong.empty()) return refuse(wrong);
  if (const std::string wrong = read_owner(document, manifest); !wrong.empty()) return refuse(wrong);
  return manifest;
}

bool is_newer_container_manifest(std::string_view text) {
  const ordered_json document = parse_json(text, max_json_depth);
  return document.is_object() && version_in(string_at(document, "schema")) > newest_container_version;
}

}  // namespace iosig
