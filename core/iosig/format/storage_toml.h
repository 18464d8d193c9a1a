// storage.toml <-> Storage. Pure: text in, text out. The format is docs/formats/storage.md.
//
// Values stand where people expect them (`read_bandwidth = "1.7GB/s"` in its [[device]]). What a probe found is
// recorded beside them, in `[device.probed]` / `[mount_point.probed]`; a value that differs from its record was set by
// hand (Origin::config), and a new probe leaves it alone.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fails with `bad_input`: "source:line:column: what is wrong; what was expected" (unknown key with the nearest known
/// one, wrong unit, missing device, value out of range, two entries of one name, composites that contain themselves,
/// ...).
[[nodiscard]] Result<Storage> parse_storage(std::string_view text, std::string_view source);

/// The canonical file; parse_storage(storage_text(s)) equals s, except that defaults stay defaults.
/// Values with Origin::assumed are not written.
[[nodiscard]] std::string storage_text(const Storage& storage);

/// The text of `key`'s value as it stands in the file ("1.7GB/s", "true", a redundancy as a table on one line), and
/// every key in file order: for tables. Returns "" when the value is not known.
[[nodiscard]] std::string value_text(const Device& device, std::string_view key);
[[nodiscard]] std::string value_text(const MountPoint& mount, std::string_view key);
[[nodiscard]] const std::vector<std::string_view>& device_keys();
[[nodiscard]] const std::vector<std::string_view>& mount_point_keys();

/// The name of `scheme` in the file.
[[nodiscard]] std::string scheme_text(RedundancyScheme scheme);

/// What `update` (a fresh probe, all values measured or inspected) makes of `current` (the user's file):
/// values by hand stay, mount points and devices by hand stay, probed ones that are gone disappear unless someone
/// edited them.
[[nodiscard]] Storage merge_probe(const Storage& current, const Storage& update);

}  // namespace iosig
