// Which file of `storage.d` describes this host. Pure: names in, a name out.
//
// Hosts that share a home directory keep their descriptions in `~/.config/iosig/storage.d/HOSTS.toml`. HOSTS is the
// name of a host or a glob pattern: `login1.toml`, `node*.toml`, `node[0-3]?.toml`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iosig {

/// Whether the name or pattern `hosts` covers the host. A host has the name that `hostname` prints and, if that has a
/// domain, its part before the first dot. A pattern that begins with a dot or has a slash
/// covers none.
[[nodiscard]] bool covers_host(std::string_view hosts, std::string_view host);

/// A file of `storage.d` that describes a host.
struct HostFile {
  std::string hosts;        ///< its name without ".toml"
  bool is_pattern = false;  ///< `hosts` covers the host, but is not its name
};

/// Returns the file of `names` for the host: the one with its full name, else that with its short name, else the
/// longest pattern that covers it; among patterns of equal length, the first by name. Nothing: no file covers it. Names
/// that do not end in ".toml" are no descriptions (editors' copies, `storage.toml~`).
[[nodiscard]] std::optional<HostFile> file_for_host(const std::vector<std::string>& names, std::string_view host);

}  // namespace iosig
