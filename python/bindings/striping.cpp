#include "striping.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>

#include "iosig/cost/striping.h"
#include "iosig/decide/plan.h"
#include "iosig/decide/striping.h"
#include "iosig/format/plan_text.h"
#include "iosig/simulate/accesses.h"
#include "iosig/simulate/striped.h"
#include "raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

using Counts = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Times = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using StripesOfRegions = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Number>
nb::object array_of(std::vector<Number> numbers, std::vector<std::size_t> shape) {
  auto kept = std::make_unique<std::vector<Number>>(std::move(numbers));
  Number* const data = kept->data();
  const nb::capsule owner(kept.release(),
                          [](void* owned) noexcept { delete static_cast<std::vector<Number>*>(owned); });
  return nb::ndarray<nb::numpy, Number>(data, shape.size(), shape.data(), owner).cast();
}

/// name, servers, (read start-up, s per byte), (write start-up, s per byte), capacity
using ClassTuple = std::tuple<std::string, std::uint32_t, std::pair<double, double>, std::pair<double, double>,
                              std::optional<std::uint64_t>>;

void make_servers(Servers* at, const std::vector<ClassTuple>& classes, std::pair<double, double> network,
                  std::uint32_t processes, std::uint32_t processes_per_node) {
  Servers made;
  for (const auto& [name, count, read, write, capacity] : classes)
    made.classes.push_back({name, count, {read.first, read.second}, {write.first, write.second}, capacity});
  made.network = {network.first, network.second};
  made.processes = processes;
  made.processes_per_node = processes_per_node;
  if (const auto sound = checked(made); !sound) raise_python(PyExc_ValueError, sound.error().message);
  new (at) Servers(std::move(made));
}

std::vector<Request> requests_of(const Counts& offsets, const Counts& lengths, const Flags& writes,
                                 const Times* starts) {
  if (lengths.shape(0) != offsets.shape(0) || writes.shape(0) != offsets.shape(0) ||
      (starts != nullptr && starts->shape(0) != offsets.shape(0)))
    raise_python(PyExc_ValueError, "offsets, lengths, writes and starts: expected arrays of equal length");
  std::vector<Request> requests;
  requests.reserve(offsets.shape(0));
  for (std::size_t n = 0; n < offsets.shape(0); ++n) {
    requests.push_back({offsets(n), lengths(n), writes(n), starts == nullptr ? 0.0 : (*starts)(n)});
    if (offsets(n) > INT64_MAX || lengths(n) > INT64_MAX - offsets(n))
      raise_python(PyExc_ValueError, fmt::format("request {}: ends beyond 2^63 - 1 bytes", n));
  }
  return requests;
}

nb::object request_costs(const Servers& servers, const Stripes& stripes, const Counts& offsets, const Counts& lengths,
                         const Flags& writes) {
  if (const auto sound = checked(stripes, servers); !sound) raise_python(PyExc_ValueError, sound.error().message);
  const auto requests = requests_of(offsets, lengths, writes, nullptr);
  std::vector<double> seconds(requests.size());
  {
    const nb::gil_scoped_release others_may_run;
    const StripeMap map(servers, stripes);
    for (std::size_t n = 0; n < requests.size(); ++n) seconds[n] = request_cost(servers, map, requests[n]).seconds();
  }
  const std::size_t count = seconds.size();
  return array_of(std::move(seconds), {count});
}

PlanAlgorithm algorithm_of(const std::string& name) { return value_or_raise(parse_plan_algorithm(name)); }

nb::tuple search_stripes(const Servers& servers, const Counts& offsets, const Counts& lengths, const Flags& writes,
                         const std::string& algorithm) {
  const PlanAlgorithm how = algorithm_of(algorithm);
  const auto requests = requests_of(offsets, lengths, writes, nullptr);
  auto found = [&]() -> Result<StripeChoice> {
    const nb::gil_scoped_release others_may_run;
    if (how == PlanAlgorithm::ours) return choose_stripes_at(requests, servers);
    RegionCollector collector(RegionBounds{{INT64_MAX}});
    if (const auto added = collector.add(requests); !added) return pass_on(added.error());
    const std::vector<Region> regions = collector.regions();
    auto choices = paper_stripes(regions, servers);
    if (!choices) return pass_on(choices.error());
    return std::move(choices->front());
  }();
  const StripeChoice choice = value_or_raise(std::move(found));
  return nb::make_tuple(array_of(choice.stripes, {choice.stripes.size()}), choice.seconds);
}

/// The numbers of a plan as arrays: windows, regions, classes.
nb::dict plan_dict(const Plan& plan) {
  const std::size_t windows = plan.windows.size(), regions = plan.regions.size(), classes = plan.servers.classes.size();
  std::vector<std::uint64_t> stripes, requests, offsets, lengths, moves;
  std::vector<double> saved_s, seconds, home_s, move_s;
  for (const PlannedRegion& each : plan.regions) {
    offsets.push_back(each.offset_bytes);
    lengths.push_back(each.length_bytes);
  }
  for (std::size_t n = 0; n < windows; ++n) {
    const PlannedWindow& window = plan.windows[n];
    seconds.push_back(window.seconds);
    home_s.push_back(window.home_s);
    move_s.push_back(window.move_s);
    for (const RegionPlacement& each : window.placements) {
      stripes.insert(stripes.end(), each.stripe_bytes.begin(), each.stripe_bytes.end());
      requests.push_back(each.requests);
      saved_s.push_back(each.home_s - each.seconds);
    }
    for (const PlannedMove& each : window.moves) moves.insert(moves.end(), {n, each.region});
  }
  const std::size_t moved = moves.size() / 2;
  nb::dict made;
  made["offset_bytes"] = array_of(std::move(offsets), {regions});
  made["length_bytes"] = array_of(std::move(lengths), {regions});
  made["stripe_bytes"] = array_of(std::move(stripes), {windows, regions, classes});
  made["requests"] = array_of(std::move(requests), {windows, regions});
  made["saved_s"] = array_of(std::move(saved_s), {windows, regions});
  made["seconds"] = array_of(std::move(seconds), {windows});
  made["home_s"] = array_of(std::move(home_s), {windows});
  made["move_s"] = array_of(std::move(move_s), {windows});
  made["moves"] = array_of(std::move(moves), {moved, 2});
  return made;
}

nb::dict plan_regions(const Servers& servers, const Times& starts, const Counts& offsets, const Counts& lengths,
                      const Flags& writes, double window_s, std::uint64_t region_bytes, const std::string& algorithm,
                      bool is_together) {
  if (!(window_s > 0) || region_bytes == 0)
    raise_python(PyExc_ValueError,
                 fmt::format("window_s and region_bytes: expected more than 0, got {} and {}", window_s, region_bytes));
  PlanOptions options;
  options.algorithm = algorithm_of(algorithm);
  options.contention = is_together ? Contention::together : Contention::spread;
  const auto requests = requests_of(offsets, lengths, writes, &starts);
  auto plan = [&]() -> Result<Plan> {
    const nb::gil_scoped_release others_may_run;
    PlanCollector collector;
    for (const Request& each : requests)
      if (const auto added = collector.add("", each); !added) return pass_on(added.error());
    const auto input = collector.finish({window_s, region_bytes, false});
    if (!input) return pass_on(input.error());
    auto made = make_plan(*input, {servers, std::vector<std::vector<std::string>>(servers.classes.size())}, options);
    if (!made) return pass_on(made.error());
    return std::move(made->plan);
  }();
  return plan_dict(value_or_raise(std::move(plan)));
}

/// Seconds, sum of the requests' latencies, and for each server the busy time of its disk and of its link.
nb::tuple simulate_requests(const Servers& servers, const StripesOfRegions& stripes, const Counts& processes,
                            const Counts& offsets, const Counts& lengths, const Flags& writes,
                            std::uint64_t region_bytes) {
  if (stripes.shape(1) != servers.classes.size() || processes.shape(0) != offsets.shape(0))
    raise_python(PyExc_ValueError,
                 fmt::format("stripes of {} classes and {} processes: expected {} and {}", stripes.shape(1),
                             processes.shape(0), servers.classes.size(), offsets.shape(0)));
  std::vector<Stripes> regions;
  for (std::size_t n = 0; n < stripes.shape(0); ++n) {
    const std::uint64_t* const row = stripes.data() + n * stripes.shape(1);
    if (const auto sound = checked(regions.emplace_back(row, row + stripes.shape(1)), servers); !sound)
      raise_python(PyExc_ValueError, fmt::format("region {}: {}", n, sound.error().message));
  }
  const auto requests = requests_of(offsets, lengths, writes, nullptr);
  auto simulated = [&]() -> Result<simulate::Totals> {
    const nb::gil_scoped_release others_may_run;
    std::vector<simulate::Access> accesses;
    for (std::size_t n = 0; n < requests.size(); ++n)
      accesses.push_back({static_cast<std::uint32_t>(std::min<std::uint64_t>(processes(n), UINT32_MAX)),
                          requests[n].offset, requests[n].length, requests[n].is_write});
    const auto hardware = simulate::system_of(servers);
    if (!hardware) return pass_on(hardware.error());
    simulate::Placement placement = simulate::placement_of(servers, std::vector<std::vector<Stripes>>(1, regions));
    const simulate::PlacedFile file{region_bytes, std::move(placement.layouts), std::move(placement.layout_of.front())};
    return simulate::run(*hardware, accesses, file, servers.processes_per_node);
  }();
  const simulate::Totals totals = value_or_raise(std::move(simulated));
  std::vector<double> disk_s, link_s;
  for (const simulate::ServerTotals& each : totals.servers) {
    disk_s.push_back(each.disk_s);
    link_s.push_back(each.link_s);
  }
  const std::size_t count = totals.servers.size();
  return nb::make_tuple(totals.end_s, totals.latency_s, array_of(std::move(disk_s), {count}),
                        array_of(std::move(link_s), {count}));
}

}  // namespace

void bind_striping(nb::module_& module) {
  nb::class_<Servers>(module, "StripeServers")
      .def("__init__", make_servers, "classes"_a, "network"_a, "processes"_a, "processes_per_node"_a);
  module.def("request_costs", request_costs, "servers"_a, "stripes"_a, "offsets"_a, "lengths"_a, "writes"_a);
  module.def("search_stripes", search_stripes, "servers"_a, "offsets"_a, "lengths"_a, "writes"_a, "algorithm"_a);
  module.def("plan_regions", plan_regions, "servers"_a, "starts"_a, "offsets"_a, "lengths"_a, "writes"_a, "window_s"_a,
             "region_bytes"_a, "algorithm"_a, "is_together"_a);
  module.def("simulate_requests", simulate_requests, "servers"_a, "stripes"_a, "processes"_a, "offsets"_a, "lengths"_a,
             "writes"_a, "region_bytes"_a);
}

}  // namespace iosig::python
