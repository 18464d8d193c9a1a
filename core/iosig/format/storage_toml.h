// storage.toml <-> Storage. Pure: text in, text out. The format is docs/formats/storage.md.
//
// Values are at their usual places (`read_bandwidth = "1.7GB/s"` in its [[device]]). The results of a probe are
// recorded separately, in `[device.probed]` / `[mount_point.probed]`. A value that differs from its record was set
// manually (Origin::config) and is preserved by a new probe.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fails with `bad_input`: "source:line:column: what is wrong; what was expected" (unknown key with the nearest known
/// one, wrong unit, missing device, value out of range, duplicate name, composite that contains itself, ...).
[[nodiscard]] Result<Storage> parse_storage(std::string_view text, std::string_view source);

/// Returns the canonical file; parse_storage(storage_text(s)) equals s, except that defaults remain defaults. Values
/// with Origin::assumed are not written.
[[nodiscard]] std::string storage_text(const Storage& storage);

/// These are for tables: the text of `key`'s value as in the file ("1.7GB/s", "true", a redundancy as an inline table),
/// "" if unknown; and all keys in file order.
[[nodiscard]] std::string value_text(const Device& device, std::string_view key);
[[nodiscard]] std::string value_text(const MountPoint& mount, std::string_view key);
[[nodiscard]] std::string value_text(const Server& server, std::string_view key);
[[nodiscard]] std::string value_text(const Network& network, std::string_view key);
[[nodiscard]] const std::vector<std::string_view>& device_keys();
[[nodiscard]] const std::vector<std::string_view>& mount_point_keys();
[[nodiscard]] const std::vector<std::string_view>& server_keys();
[[nodiscard]] const std::vector<std::string_view>& network_keys();

/// Returns the name of `scheme` in the file.
[[nodiscard]] std::string scheme_text(RedundancyScheme scheme);

/// Merges `update` (a new probe, all values measured or inspected) into `current` (the user's file): manual values,
/// mount points and devices remain; probed ones that no longer exist are dropped unless the user edited them or a
/// server names them. All servers remain: no probe finds any.
[[nodiscard]] Storage merge_probe(const Storage& current, const Storage& update);

}  // namespace iosig
