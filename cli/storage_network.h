// `iosig storage probe --network`: measures the network between the processes that a launcher started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/storage/network_probe.h"
#include "verb.h"

namespace iosig::cli {

struct NetworkFlags {
  bool is_wanted = false;
  std::uint32_t repeats = 1000, pairs = 8;
  std::string rendezvous = ".", timeout = "60s";
};

/// Adds --network and its options.
void add_network_options(Verb probe, NetworkFlags& flags);

/// Measures. Returns nothing on other ranks than 0. Fails with `usage` if no launcher started at least two processes.
[[nodiscard]] Result<std::optional<NetworkProbe>> measured_network(const NetworkFlags& flags, Console& console);

/// Prints the pairs and the network; JSON: `iosig.storage.network/1`. `file`: that was written, or "".
void say_network(const NetworkProbe& probe, const Storage& storage, const std::string& file, const Console& console);

}  // namespace iosig::cli
