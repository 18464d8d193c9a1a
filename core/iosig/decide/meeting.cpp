#include "iosig/decide/meeting.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace iosig {
namespace {

constexpr std::size_t max_classes = 8;  ///< whose sets are all tried; of more, only each alone and all together

/// Sets of classes as bits, home first. Classes without servers are in none.
std::vector<std::vector<bool>> class_sets(const Servers& servers) {
  const std::size_t count = servers.classes.size();
  const std::uint32_t home = home_class(servers);
  std::vector<std::vector<bool>> sets;
  const auto add = [&](auto is_in) {
    std::vector<bool> set(count);
    for (std::size_t n = 0; n < count; ++n) set[n] = servers.classes[n].count > 0 && is_in(n);
    if (std::ranges::count(set, true) > 0 && std::ranges::find(sets, set) == sets.end()) sets.push_back(set);
  };
  add([&](std::size_t n) { return n == home; });
  for (std::size_t n = 0; n < count; ++n) add([&](std::size_t other) { return other == n; });
  if (count <= max_classes)
    for (std::uint32_t bits = 1; bits < 1U << count; ++bits) add([&](std::size_t n) { return (bits >> n & 1) != 0; });
  add([](std::size_t) { return true; });
  return sets;
}

struct LargestRequest {
  std::uint64_t bytes = 0;
  bool is_write = false;
};

LargestRequest largest_of_windows(std::span<const std::vector<Region>> windows, std::size_t region) {
  LargestRequest largest;
  for (const std::vector<Region>& regions : windows)
    for (const RequestGroup& group : regions[region].groups)
      if (group.length > largest.bytes) largest = {group.length, group.is_write};
  if (largest.bytes == 0) largest.bytes = windows.front()[region].length;
  return largest;
}

Stripes divided(const LargestRequest& request, const Servers& servers, const std::vector<bool>& set,
                std::uint64_t unit_bytes) {
  Stripes stripes;
  const auto unit = static_cast<double>(unit_bytes);
  for (const double bytes : fill_servers(static_cast<double>(request.bytes), servers, request.is_write, set))
    stripes.push_back(static_cast<std::uint64_t>(std::ceil(bytes / unit - 1e-6)) * unit_bytes);
  return stripes;
}

/// Stripes for requests of each kind that occurs; most files have one.
class KnownStripes {
 public:
  KnownStripes(const Servers& servers, std::uint64_t unit_bytes)
      : servers_(servers), unit_bytes_(unit_bytes), sets_(class_sets(servers)) {}

  const std::vector<Stripes>& of(const LargestRequest& request) {
    if (last_.bytes == request.bytes && last_.is_write == request.is_write && !stripes_.empty()) return stripes_;
    last_ = request;
    stripes_.clear();
    for (const std::vector<bool>& set : sets_) {
      Stripes stripes = divided(request, servers_, set, unit_bytes_);
      if (std::ranges::count(stripes, 0U) < std::ssize(stripes) &&
          std::ranges::find(stripes_, stripes) == stripes_.end())
        stripes_.push_back(std::move(stripes));
    }
    return stripes_;
  }

 private:
  const Servers& servers_;
  std::uint64_t unit_bytes_;
  std::vector<std::vector<bool>> sets_;
  LargestRequest last_;
  std::vector<Stripes> stripes_;
};

}  // namespace

std::vector<std::vector<RegionOptions>> meeting_options(std::span<const std::vector<Region>> windows,
                                                        const Servers& servers, std::uint64_t unit_bytes) {
  std::vector<std::vector<RegionOptions>> options(windows.size());
  if (windows.empty()) return options;
  KnownStripes known(servers, unit_bytes);
  for (std::size_t region = 0; region < windows.front().size(); ++region) {
    const std::vector<Stripes>& choices = known.of(largest_of_windows(windows, region));
    for (std::size_t window = 0; window < windows.size(); ++window) {
      RegionOptions& made = options[window].emplace_back();
      const Region& here = windows[window][region];
      for (const Stripes& stripes : choices) {
        LayoutOption option{stripes, load_of(servers, stripes, here.groups),
                            bytes_on_classes(servers, stripes, here.length)};
        option.seconds = busiest_s(servers, option.load);
        made.options.push_back(std::move(option));
      }
    }
  }
  return options;
}

}  // namespace iosig
