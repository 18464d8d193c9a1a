#include "simulate.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "iosig/decide/policies.h"
#include "iosig/decide/regions.h"
#include "iosig/simulate/accesses.h"
#include "iosig/simulate/striped.h"
#include "raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

using simulate::DiskHabit;
using simulate::HotRegions;
using simulate::Totals;

using StripesOfWindows = nb::ndarray<const std::uint64_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A dict of Python with words that must be there.
class Words {
 public:
  Words(const nb::dict& dict, std::string_view what) : dict_(dict), what_(what) {}
  template <class T>
  T get(const char* word) const {
    if (!dict_.contains(word)) raise_python(PyExc_ValueError, fmt::format("{}: no '{}'", what_, word));
    try {
      return nb::cast<T>(dict_[word]);
    } catch (const nb::cast_error&) {
      raise_python(PyExc_ValueError, fmt::format("{}: '{}' is out of range or of another type", what_, word));
    }
  }

 private:
  const nb::dict& dict_;
  std::string_view what_;
};

struct World {
  Servers servers;
  std::vector<DiskHabit> habits;
};

ServiceTime service_of(const Words& words, const char* start_s, const char* bytes_per_s) {
  return {words.get<double>(start_s), 1 / words.get<double>(bytes_per_s)};
}

World world_of(const nb::dict& dict) {
  const Words words(dict, "world");
  World world;
  world.servers.network = {words.get<double>("connect_s"), 1 / words.get<double>("link_bytes_per_s")};
  world.servers.processes = words.get<std::uint32_t>("processes");
  world.servers.processes_per_node = words.get<std::uint32_t>("processes_per_node");
  for (const nb::dict& told : words.get<std::vector<nb::dict>>("classes")) {
    const Words kind(told, "class");
    ServerClass& made = world.servers.classes.emplace_back();
    made.name = kind.get<std::string>("name");
    made.count = kind.get<std::uint32_t>("count");
    made.read = service_of(kind, "read_start_s", "read_bytes_per_s");
    made.write = service_of(kind, "write_start_s", "write_bytes_per_s");
    if (const auto capacity = kind.get<nb::object>("capacity_bytes"); !capacity.is_none())
      made.capacity_bytes = kind.get<std::uint64_t>("capacity_bytes");
    world.habits.push_back({kind.get<double>("spread"), kind.get<double>("near_share")});
  }
  value_or_raise(checked(world.servers).map([] { return true; }));
  return world;
}

HotRegions workload_of_dict(const nb::dict& dict) {
  const Words words(dict, "workload");
  const HotRegions workload{.processes = words.get<std::uint32_t>("processes"),
                            .regions = words.get<std::uint32_t>("regions"),
                            .region_bytes = words.get<std::uint64_t>("region_bytes"),
                            .request_bytes = words.get<std::uint64_t>("request_bytes"),
                            .is_write = words.get<bool>("is_write"),
                            .skew = words.get<double>("skew"),
                            .drift = words.get<double>("drift"),
                            .windows = words.get<std::uint32_t>("windows"),
                            .window_s = words.get<double>("window_s"),
                            .is_colliding = words.get<bool>("is_colliding"),
                            .seed = words.get<std::uint64_t>("seed")};
  value_or_raise(simulate::checked(workload).map([] { return true; }));
  return workload;
}

std::vector<std::vector<Stripes>> stripes_of(const StripesOfWindows& array, const World& world) {
  if (array.shape(2) != world.servers.classes.size())
    raise_python(PyExc_ValueError,
                 fmt::format("stripes: expected windows x regions x {} classes, got {} x {} x {}",
                             world.servers.classes.size(), array.shape(0), array.shape(1), array.shape(2)));
  std::vector<std::vector<Stripes>> windows(array.shape(0), std::vector<Stripes>(array.shape(1)));
  const std::uint64_t* at = array.data();
  for (auto& window : windows)
    for (Stripes& stripes : window) {
      stripes.assign(at, at + array.shape(2));
      at += array.shape(2);
    }
  return windows;
}

nb::object array_of(const std::vector<std::vector<Stripes>>& windows, std::size_t classes) {
  auto numbers = std::make_unique<std::vector<std::uint64_t>>();
  for (const auto& window : windows)
    for (const Stripes& stripes : window) numbers->insert(numbers->end(), stripes.begin(), stripes.end());
  std::uint64_t* const data = numbers->data();
  const nb::capsule owner(numbers.release(),
                          [](void* kept) noexcept { delete static_cast<std::vector<std::uint64_t>*>(kept); });
  return nb::ndarray<nb::numpy, std::uint64_t>(data, {windows.size(), windows.front().size(), classes}, owner).cast();
}

nb::dict totals_dict(const Totals& totals) {
  nb::dict told;
  told["bytes_per_s"] = totals.bytes_per_s();
  told["end_s"] = totals.end_s;
  told["requests"] = totals.requests;
  told["parts"] = totals.parts;
  told["bytes"] = totals.bytes;
  told["latency_s"] = totals.latency_s;
  nb::list servers;
  for (const simulate::ServerTotals& server : totals.servers) {
    nb::dict each;
    each["parts"] = server.parts;
    each["bytes"] = server.bytes;
    each["disk_s"] = server.disk_s;
    each["link_s"] = server.link_s;
    servers.append(each);
  }
  told["servers"] = servers;
  return told;
}

PolicyOptions options_of(const nb::dict& dict) {
  const Words words(dict, "options");
  return {.seed = words.get<std::uint64_t>("seed"),
          .is_migrating = words.get<bool>("is_migrating"),
          .contention = words.get<bool>("is_together") ? Contention::together : Contention::spread,
          .is_meeting = words.get<bool>("is_colliding"),
          .copy_weight = words.get<double>("copy_weight")};
}

nb::tuple placed_tuple(const std::string& policy, std::span<const std::vector<Region>> windows, const World& world,
                       const PolicyOptions& options) {
  const auto known = placement_policy_of(policy);
  if (!known)
    raise_python(PyExc_ValueError,
                 fmt::format("policy must be 'def', 'padp', 'psa', 'printed' or 'ours', got '{}'", policy));
  const PlacedWindows placed = value_or_raise([&] {
    const nb::gil_scoped_release others_may_run;
    return place_windows(*known, windows, world.servers, options);
  }());
  return nb::make_tuple(array_of(placed.stripes, world.servers.classes.size()), placed.order);
}

nb::tuple place_regions(const std::string& policy, const nb::dict& world, const nb::dict& workload,
                        std::uint64_t requests, const nb::dict& options) {
  const auto windows = simulate::regions_of(workload_of_dict(workload), requests);
  return placed_tuple(policy, windows, world_of(world), options_of(options));
}

nb::dict simulate_regions(const nb::dict& told, const nb::dict& workload, const StripesOfWindows& stripes,
                          std::vector<std::vector<std::uint32_t>> order, std::uint32_t movers, double share,
                          std::uint64_t seed) {
  const World world = world_of(told);
  const HotRegions hot = workload_of_dict(workload);
  const auto windows = stripes_of(stripes, world);
  const auto done = value_or_raise([&]() -> Result<simulate::Run> {
    const nb::gil_scoped_release others_may_run;
    auto hardware = simulate::system_of(world.servers, world.habits);
    if (!hardware) return pass_on(hardware.error());
    hardware->seed = seed;
    simulate::Placement placement = simulate::placement_of(world.servers, windows);
    placement.order = std::move(order);
    return run(*hardware, hot, placement, {.movers = movers, .share = share});
  }());
  nb::dict made = totals_dict(done.totals);
  made["moved_regions"] = done.moved_regions;
  return made;
}

std::vector<simulate::Access> accesses_of(const Numbers& processes, const Numbers& offsets, const Numbers& lengths,
                                          bool is_write) {
  if (processes.shape(0) != offsets.shape(0) || processes.shape(0) != lengths.shape(0))
    raise_python(PyExc_ValueError, fmt::format("processes, offsets, lengths: {}, {} and {} numbers, expected as many",
                                               processes.shape(0), offsets.shape(0), lengths.shape(0)));
  std::vector<simulate::Access> accesses(processes.shape(0));
  for (std::size_t n = 0; n < accesses.size(); ++n)
    accesses[n] = {static_cast<std::uint32_t>(std::min<std::uint64_t>(processes.data()[n], UINT32_MAX)),
                   offsets.data()[n], lengths.data()[n], is_write};
  return accesses;
}

/// The parts of the accesses in each region, in their order.
std::vector<RegionRequest> region_requests(std::span<const simulate::Access> accesses, std::uint64_t region_bytes) {
  std::vector<RegionRequest> requests;
  for (const simulate::Access& access : accesses)
    for (std::uint64_t done = 0, part = 0; done < access.bytes; done += part) {
      const std::uint64_t at = access.offset + done, in_region = at % region_bytes;
      part = std::min(access.bytes - done, region_bytes - in_region);
      requests.push_back(
          {access.process, static_cast<std::uint32_t>(at / region_bytes), in_region, part, access.is_write});
    }
  return requests;
}

nb::tuple place_accesses(const std::string& policy, const nb::dict& world, const Numbers& processes,
                         const Numbers& offsets, const Numbers& lengths, bool is_write, std::uint64_t region_bytes,
                         const nb::dict& options) {
  const auto accesses = accesses_of(processes, offsets, lengths, is_write);
  std::uint64_t end = 0;
  std::vector<Request> requests;
  for (const simulate::Access& access : accesses) {
    requests.push_back({access.offset, access.bytes, is_write});
    end = std::max(end, access.offset + access.bytes);
  }
  const RegionBounds bounds = value_or_raise(fixed_regions(end, region_bytes));
  RegionCollector collector(bounds);
  value_or_raise(collector.add(requests).map([] { return true; }));
  const std::vector windows(1, collector.regions());
  const std::vector<RegionRequest> sent = region_requests(accesses, region_bytes);
  PolicyOptions how = options_of(options);
  how.requests = sent;
  return placed_tuple(policy, windows, world_of(world), how);
}

nb::dict simulate_accesses(const nb::dict& told, const Numbers& processes, const Numbers& offsets,
                           const Numbers& lengths, bool is_write, const StripesOfWindows& stripes,
                           std::uint64_t region_bytes, std::uint64_t seed) {
  const World world = world_of(told);
  const auto accesses = accesses_of(processes, offsets, lengths, is_write);
  const auto windows = stripes_of(stripes, world);
  return totals_dict(value_or_raise([&]() -> Result<Totals> {
    const nb::gil_scoped_release others_may_run;
    auto hardware = simulate::system_of(world.servers, world.habits);
    if (!hardware) return pass_on(hardware.error());
    hardware->seed = seed;
    simulate::Placement placement = simulate::placement_of(world.servers, windows);
    const simulate::PlacedFile file{region_bytes, std::move(placement.layouts), std::move(placement.layout_of.front())};
    return run(*hardware, accesses, file, world.servers.processes_per_node);
  }()));
}

}  // namespace

void bind_simulation(nb::module_& module) {
  module.def("place_regions", place_regions, "policy"_a, "world"_a, "workload"_a, "requests"_a, "options"_a);
  module.def("simulate_regions", simulate_regions, "world"_a, "workload"_a, "stripes"_a, "order"_a, "movers"_a,
             "share"_a, "seed"_a);
  module.def("place_accesses", place_accesses, "policy"_a, "world"_a, "processes"_a, "offsets"_a, "lengths"_a,
             "is_write"_a, "region_bytes"_a, "options"_a);
  module.def("simulate_accesses", simulate_accesses, "world"_a, "processes"_a, "offsets"_a, "lengths"_a, "is_write"_a,
             "stripes"_a, "region_bytes"_a, "seed"_a);
}

}  // namespace iosig::python
