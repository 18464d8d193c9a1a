// The keys of storage.toml: one row per key defines how to read, print and copy it. Internal to format/.
//
// Reader, writer, tables and merge all use these rows and thus remain consistent.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/base/text.h"
#include "iosig/format/toml_text.h"
#include "iosig/model/storage.h"

namespace iosig::storage_fields {

/// Messages of `set` say what was expected; the caller prepends the place.
template <class Owner>
struct Field {
  std::string_view key;
  std::function<Result<void>(Owner&, const toml::node&)> set;
  std::function<std::string(const Owner&)> show;  ///< TOML text; "" if there is no value
  std::function<void(Owner&, const Owner&)> copy;
};

[[nodiscard]] const std::vector<Field<Device>>& device_fields();
[[nodiscard]] const std::vector<Field<MountPoint>>& mount_point_fields();
[[nodiscard]] const std::vector<Field<Server>>& server_fields();
[[nodiscard]] const std::vector<Field<Network>>& network_fields();

inline constexpr std::string_view redundancy_key = "redundancy";  ///< a table, not a field
/// Returns "key = value" for each key that has one.
[[nodiscard]] std::vector<std::string> redundancy_lines(const Redundancy& redundancy);
/// Returns an inline TOML table.
[[nodiscard]] std::string redundancy_text(const Redundancy& redundancy);

template <class Owner>
const Field<Owner>* find_field(const std::vector<Field<Owner>>& fields, std::string_view key) {
  const auto it = std::ranges::find(fields, key, &Field<Owner>::key);
  return it == fields.end() ? nullptr : &*it;
}

template <class Owner>
std::vector<std::string_view> keys_of(const std::vector<Field<Owner>>& fields) {
  std::vector<std::string_view> keys;
  for (const auto& each : fields) keys.push_back(each.key);
  return keys;
}

/// Returns a whole number from 0 to `most`.
[[nodiscard]] Result<std::uint32_t> count_of(const toml::node& node, std::uint32_t most);
/// Returns the node's text; `expected` is for the message if it is not text.
[[nodiscard]] Result<std::string> text_of(const toml::node& node, std::string_view expected);

template <class Enum, std::size_t N>
using Names = std::array<std::pair<std::string_view, Enum>, N>;

constexpr Names<DeviceKind, 6> kind_names{{{"ram", DeviceKind::ram},
                                           {"nvram", DeviceKind::nvram},
                                           {"ssd", DeviceKind::ssd},
                                           {"hdd", DeviceKind::hdd},
                                           {"network", DeviceKind::network},
                                           {"composite", DeviceKind::composite}}};
constexpr Names<Visibility, 2> visibility_names{{{"local", Visibility::local}, {"global", Visibility::global}}};
constexpr Names<RedundancyScheme, 9> scheme_names{{{"mds", RedundancyScheme::mds},
                                                   {"replica", RedundancyScheme::replica},
                                                   {"stripe", RedundancyScheme::stripe},
                                                   {"raid0", RedundancyScheme::stripe},
                                                   {"raid1", RedundancyScheme::raid1},
                                                   {"raid5", RedundancyScheme::raid5},
                                                   {"raid6", RedundancyScheme::raid6},
                                                   {"raid10", RedundancyScheme::raid10},
                                                   {"lrc", RedundancyScheme::lrc}}};
constexpr Names<Origin, 2> probed_names{{{"measured", Origin::measured}, {"inspected", Origin::inspected}}};

template <class Enum, std::size_t N>
Result<Enum> enum_of(const toml::node& node, const Names<Enum, N>& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) known.push_back(name);
  const auto text = text_of(node, fmt::format("one of \"{}\"", fmt::join(known, "\" \"")));
  if (!text) return pass_on(text.error());
  for (const auto& [name, value] : names)
    if (*text == name) return value;
  return fail(ErrorKind::bad_input, "'{}' is none of {}{}", printable(*text), fmt::join(known, " "),
              did_you_mean(*text, known));
}

template <class Enum, std::size_t N>
std::string name_of(Enum value, const Names<Enum, N>& names) {
  const auto it = std::ranges::find(names, value, [](const auto& entry) { return entry.second; });
  return it == names.end() ? std::string{} : std::string(it->first);
}

}  // namespace iosig::storage_fields
