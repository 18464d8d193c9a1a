#include "iosig/observe/many_files.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace iosig::observe {
namespace {

constexpr std::size_t least_files = 256;
constexpr double share_of_all = 0.9;

struct SmallFile {
  const StreamFacts* facts;
  const StreamCosts* costs;
  std::int64_t size;
};

std::vector<SmallFile> small_files(std::span<const StreamFacts> facts, std::span<const StreamCosts> costs,
                                   bool written) {
  std::vector<SmallFile> files;
  for (const StreamFacts& each : facts) {
    const Transfers* const transfers = each.transfers();
    if (transfers == nullptr || (transfers->writes > 0) != written) continue;
    const std::int64_t size = std::max(transfers->end, each.allocated_end);
    const auto cost = std::ranges::lower_bound(costs, std::string_view(each.path), {},
                                               [](const StreamCosts& known) { return std::string_view(known.path); });
    if (cost == costs.end() || cost->path != each.path || cost->opens.calls == 0 || size >= small_bytes) continue;
    files.push_back({.facts = &each, .costs = &*cost, .size = size});
  }
  return files;
}

/// Enters directories as long as one has at least so many of the files; returns its path with a slash at the end.
std::string deepest_directory(const std::vector<SmallFile>& files, std::size_t least) {
  std::string directory = "/";
  for (;;) {
    std::map<std::string_view, std::size_t> below;
    for (const SmallFile& each : files) {
      const std::string_view path = each.facts->path;
      if (!path.starts_with(directory)) continue;
      if (const std::size_t slash = path.find('/', directory.size()); slash != std::string_view::npos)
        ++below[path.substr(0, slash + 1)];
    }
    const auto most = std::ranges::max_element(below, {}, [](const auto& each) { return each.second; });
    if (most == below.end() || most->second < least) return directory;
    directory = most->first;
  }
}

}  // namespace

std::optional<ManyFiles> find_many_files(std::span<const StreamFacts> facts, std::span<const StreamCosts> costs,
                                         bool written) {
  const std::vector<SmallFile> files = small_files(facts, costs, written);
  if (files.size() < least_files) return std::nullopt;
  const auto least = static_cast<std::size_t>(share_of_all * static_cast<double>(files.size()));
  const std::string directory = deepest_directory(files, std::max<std::size_t>(1, least));
  ManyFiles found{.directory = directory.substr(0, std::max<std::size_t>(1, directory.size() - 1))};
  for (const SmallFile& each : files) {
    if (!each.facts->path.starts_with(directory)) continue;
    found.paths.push_back(each.facts->path);
    found.bytes += each.size;
    found.opens.add({.calls = each.costs->opens.calls - each.costs->repeated_opens.calls,
                     .ns = each.costs->opens.ns - each.costs->repeated_opens.ns});
    const LayerCosts& moved = each.costs->layers[static_cast<std::size_t>(each.costs->lowest_layer())];
    found.transfers.add(moved.reads.all), found.transfers.add(moved.writes.all);
  }
  if (found.paths.size() < least_files) return std::nullopt;
  return found;
}

}  // namespace iosig::observe
