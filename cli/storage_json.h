// A storage description as JSON: docs/cli/storage.md, units in the names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "iosig/model/storage.h"

namespace iosig::cli {

/// "config", "measured", ...: in JSON and tables.
[[nodiscard]] const char* origin_name(Origin origin);
[[nodiscard]] Origin origin_of(const Provenances& provenance, std::string_view key);

/// Removes the quotes of TOML text for display.
[[nodiscard]] std::string unquoted(std::string text);

[[nodiscard]] nlohmann::ordered_json mount_point_json(const MountPoint& mount);
[[nodiscard]] nlohmann::ordered_json device_json(const Device& device);
/// As the description has them: null is what follows from the device.
[[nodiscard]] nlohmann::ordered_json servers_json(const Storage& storage);
[[nodiscard]] nlohmann::ordered_json network_json(const Storage& storage);  ///< null: not described
[[nodiscard]] nlohmann::ordered_json storage_json(const Storage& storage);

}  // namespace iosig::cli
