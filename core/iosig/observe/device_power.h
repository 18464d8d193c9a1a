// Which devices serve the files of a trace, and what they draw, from a storage description.
//
// A path belongs to the mount point of the description with the longest path at or above it; by name alone, because the
// trace may be of another machine. Files of the system's directories (/proc, /usr, ..., see system_files.h) belong to a
// mount point only if its path is in such a directory, too. A composite device without power of its own draws what its
// members draw together, if each of them is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/model/storage.h"

namespace iosig::observe {

/// Devices that are always used together: no mount point has only some of them.
struct PowerUnit {
  std::vector<std::string> devices;  ///< by name, in the order of the description
  double idle_power_w = 0, active_power_w = 0;
  bool is_global = false;  ///< one for all nodes; else each node has its own
};

/// The devices behind a file.
struct DevicePlace {
  std::vector<std::uint32_t> units;  ///< in DevicePowers::units(); empty: their power is unknown
  double active_power_w = 0;         ///< of all of them
  std::string unknown;               ///< why it is unknown; empty: it is not
};

class DevicePowers {
 public:
  explicit DevicePowers(const Storage& storage);

  [[nodiscard]] const std::vector<PowerUnit>& units() const { return units_; }
  /// Valid as long as the object. Empty path: the call has no file, or it is not known.
  [[nodiscard]] const DevicePlace& place_of(std::string_view path) const;

 private:
  struct Mount {
    std::string path;
    DevicePlace place;
  };
  std::vector<PowerUnit> units_;
  std::vector<Mount> mounts_;  ///< longest path first
  DevicePlace no_file_, not_described_;
};

}  // namespace iosig::observe
