#include "iosig/regions/region_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "iosig/base/crc32c.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::regions {
namespace {

constexpr unsigned bits_a_byte = 7;
constexpr unsigned more = 1U << bits_a_byte;

void append_number(std::string& bytes, std::uint64_t number) {
  for (; number >= more; number >>= bits_a_byte) bytes += static_cast<char>((number & (more - 1)) | more);
  bytes += static_cast<char>(number);
}

/// Appends the length, too: "ab", "c" and "a", "bc" have other checksums.
void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, text.size());
  bytes += text;
}

void append_key(std::string& bytes, const MapKey& key) {
  append_text(bytes, key.application);
  append_number(bytes, key.processes);
  append_text(bytes, key.file);
}

std::uint32_t checksum_of(const std::string& bytes) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

std::string packed_stripes(std::span<const std::uint64_t> stripe_bytes) {
  std::string bytes;
  for (const std::uint64_t each : stripe_bytes) append_number(bytes, each);
  return bytes;
}

std::optional<std::vector<std::uint64_t>> unpacked_stripes(std::string_view bytes) {
  constexpr unsigned number_bits = 64;
  std::vector<std::uint64_t> stripes;
  std::uint64_t number = 0;
  unsigned shift = 0;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    if (shift >= number_bits) return std::nullopt;
    number |= std::uint64_t{byte & (more - 1)} << shift;
    shift += bits_a_byte;
    if ((byte & more) != 0) continue;
    stripes.push_back(number);
    number = shift = 0;
  }
  if (shift != 0 || packed_stripes(stripes) != bytes) return std::nullopt;
  return stripes;
}

std::string classes_text(const std::vector<MappedClass>& classes) {
  auto list = nlohmann::ordered_json::array();
  for (const MappedClass& each : classes) list.push_back(nlohmann::ordered_json::array({each.name, each.servers}));
  return json_line(list);
}

std::optional<std::vector<MappedClass>> parse_classes(std::string_view text) {
  constexpr int depth = 3;
  const auto list = parse_json(text, depth);
  if (!list.is_array()) return std::nullopt;
  std::vector<MappedClass> classes;
  for (const auto& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array()) return std::nullopt;
    MappedClass& made = classes.emplace_back(MappedClass{entry[0].get<std::string>(), {}});
    for (const auto& server : entry[1]) {
      if (!server.is_string()) return std::nullopt;
      made.servers.push_back(server.get<std::string>());
    }
  }
  return classes;
}

std::uint32_t placement_checksum(const MappedPlacement& placement) {
  std::string bytes;
  append_key(bytes, placement.key);
  append_text(bytes, classes_text(placement.classes));
  append_number(bytes, placement.windows.size());
  return checksum_of(bytes);
}

std::uint32_t region_checksum(const MapKey& key, std::uint32_t window, const MappedRegion& region) {
  std::string bytes;
  append_key(bytes, key);
  for (const std::uint64_t each : {std::uint64_t{window}, std::uint64_t{region.number}, region.offset_bytes,
                                   region.length_bytes, std::uint64_t{region.stripe_bytes.size()}})
    append_number(bytes, each);
  bytes += packed_stripes(region.stripe_bytes);
  append_text(bytes, region.target);
  return checksum_of(bytes);
}

std::uint32_t window_checksum(const MapKey& key, std::uint32_t window, std::span<const std::uint32_t> regions) {
  std::string bytes;
  append_key(bytes, key);
  append_number(bytes, window);
  append_number(bytes, list_checksum(regions));
  return checksum_of(bytes);
}

std::uint32_t list_checksum(std::span<const std::uint32_t> checksums) {
  std::string bytes;
  append_number(bytes, checksums.size());
  for (const std::uint32_t each : checksums) append_number(bytes, each);
  return checksum_of(bytes);
}

std::string fault_of(const MappedWindow& regions, std::size_t classes) {
  std::uint64_t end = 0;
  const MappedRegion* before = nullptr;
  for (const MappedRegion& each : regions) {
    const auto fault = [&](std::string_view what) { return fmt::format("region {}: {}", each.number, what); };
    if (before != nullptr && each.number <= before->number)
      return fault(fmt::format("follows region {}; expected ascending numbers", before->number));
    if (each.length_bytes == 0) return fault("is empty; expected a length of at least 1 byte");
    if (each.offset_bytes > max_bytes || each.length_bytes > max_bytes - each.offset_bytes)
      return fault("ends beyond 2^63 - 1 bytes, the maximum file size");
    if (each.offset_bytes < end)
      return fault(fmt::format("begins at byte {}, inside region {}", each.offset_bytes, before->number));
    if (each.stripe_bytes.size() != classes)
      return fault(fmt::format("has {} stripe sizes for {} classes of servers; expected one for each",
                               each.stripe_bytes.size(), classes));
    if (std::ranges::all_of(each.stripe_bytes, [](std::uint64_t size) { return size == 0; }))
      return fault("has no stripe on any server; expected a stripe size above 0 for at least one class");
    end = each.offset_bytes + each.length_bytes;
    before = &each;
  }
  return {};
}

std::string about(const MapKey& key) {
  return fmt::format("'{}' with {} process{}, file '{}'", printable(key.application), key.processes,
                     key.processes == 1 ? "" : "es", printable(key.file));
}

}  // namespace iosig::regions
