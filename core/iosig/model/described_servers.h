// The servers of a storage description as plans need them: classes of equal servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/servers.h"
#include "iosig/model/storage.h"

namespace iosig {

struct DescribedServers {
  Servers servers;
  std::vector<std::vector<std::string>> names;  ///< of each class, in the order of the description
};

/// Servers of one class that differ by more than this factor are refused.
inline constexpr double max_class_spread = 2;

/// Groups the servers by class, in the order in which the classes first appear. Missing values follow from the devices
/// (docs/formats/storage.md). A class has the mean of each of its servers' times and the least capacity; without
/// `network`, the default one.
///
/// Fails with `infeasible` if the description has no servers, and with `bad_input` if servers of a class differ by more
/// than max_class_spread in a time, or if the processes are out of range.
[[nodiscard]] Result<DescribedServers> described_servers(const Storage& storage, std::uint32_t processes,
                                                         std::uint32_t processes_per_node);

}  // namespace iosig
