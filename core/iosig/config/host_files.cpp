#include "iosig/config/host_files.h"

#include <fnmatch.h>

namespace iosig {
namespace {

constexpr std::string_view ending = ".toml";

/// Returns the part of the host's name before the domain.
std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

/// How well `hosts` describes a host: the larger, the better.
enum class Match { none, pattern, short_name, full_name };

Match match_of(std::string_view hosts, std::string_view host) {
  if (host.empty() || hosts.empty() || hosts.front() == '.' || hosts.find('/') != hosts.npos) return Match::none;
  if (hosts == host) return Match::full_name;
  if (hosts == short_name(host)) return Match::short_name;
  const std::string pattern(hosts);
  for (const std::string_view name : {host, short_name(host)})
    if (::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0) return Match::pattern;
  return Match::none;
}

}  // namespace

bool covers_host(std::string_view hosts, std::string_view host) { return match_of(hosts, host) != Match::none; }

std::optional<HostFile> file_for_host(const std::vector<std::string>& names, std::string_view host) {
  std::string_view best;
  Match best_match = Match::none;
  for (const std::string_view name : names) {
    if (!name.ends_with(ending)) continue;
    const std::string_view hosts = name.substr(0, name.size() - ending.size());
    const Match match = match_of(hosts, host);
    if (match == Match::none || match < best_match) continue;
    const bool is_better =
        match > best_match || hosts.size() > best.size() || (hosts.size() == best.size() && hosts < best);
    if (!is_better) continue;
    best = hosts;
    best_match = match;
  }
  if (best_match == Match::none) return std::nullopt;
  return HostFile{std::string(best), best_match == Match::pattern};
}

}  // namespace iosig
