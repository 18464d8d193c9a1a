#include "workloads.h"

#include <algorithm>

#include "families.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

std::vector<Workload> all_families() {
  std::vector<Workload> all = strided_workloads();
  for (auto& family : {milc_workloads(), grid_workloads(), scattered_workloads()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::string value_text(const Parameter& parameter, std::uint64_t value) {
  return parameter.is_size ? bytes_text(value) : std::to_string(value);
}

/// A rank on its way.
struct Walker {
  std::uint32_t rank;
  Walk walk;
  std::uint64_t written_bytes = 0;

  /// False at the end of the walk. `goes_on` becomes what `take` said of the access.
  bool step(const std::function<bool(const Access&)>& take, bool& goes_on) {
    const auto extent = walk.next();
    if (!extent) return false;
    goes_on = take({rank, extent->offset_bytes, extent->length_bytes, written_bytes});
    written_bytes += extent->length_bytes;
    return true;
  }
};

}  // namespace

Nests nests_of(std::vector<Nest> list) {
  return [list = std::move(list)](std::uint64_t index) -> std::optional<Nest> {
    if (index >= list.size()) return std::nullopt;
    return list[index];
  };
}

std::span<const Workload> catalogue() {
  static const std::vector<Workload> all = all_families();
  return all;
}

Result<const Workload*> find_workload(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Workload& workload : catalogue()) {
    if (workload.name == name) return &workload;
    known.push_back(workload.name);
  }
  return fail(ErrorKind::bad_input, "there is no workload '{}'{}; workloads list shows them", printable(name),
              did_you_mean(name, known));
}

Result<Plan> make_plan(const Workload& workload, Parameters parameters) {
  if (parameters.ranks == 0 || parameters.ranks > max_ranks)
    return fail(ErrorKind::bad_input, "--ranks {}: expected 1 to {}", parameters.ranks, max_ranks);
  for (const auto& [name, value] : parameters.values) {
    const auto known = std::ranges::find(workload.parameters, name, &Parameter::name);
    if (known == workload.parameters.end()) {
      std::string names;
      for (const Parameter& parameter : workload.parameters) names += fmt::format(" --{}", parameter.name);
      return fail(ErrorKind::bad_input, "workload '{}' has no --{}; it has{}", workload.name, name, names);
    }
    if (value < known->least || value > largest_value)
      return fail(ErrorKind::bad_input, "--{} {}: expected {} to {} for workload '{}'", name, value_text(*known, value),
                  value_text(*known, known->least), value_text(*known, largest_value), workload.name);
  }
  for (const Parameter& parameter : workload.parameters)
    parameters.values.emplace(parameter.name, parameter.value);  // told values stay
  auto plan = workload.plan(parameters);
  if (!plan) return plan;
  plan->ranks = parameters.ranks;
  if (plan->file_bytes > max_bytes)
    return fail(ErrorKind::bad_input,
                "workload '{}' with these parameters would need a file of more than 2^63 - 1 "
                "bytes; choose smaller ones",
                workload.name);
  return plan;
}

void generate(const Plan& plan, Order order, std::uint32_t first, std::uint32_t last,
              const std::function<bool(const Access&)>& take) {
  bool goes_on = true;
  if (order == Order::rank) {
    for (std::uint32_t rank = first; rank < last && goes_on; ++rank) {
      Walker walker{rank, plan.walk(rank)};
      while (goes_on && walker.step(take, goes_on)) {
      }
    }
    return;
  }
  std::vector<Walker> walkers;
  for (std::uint32_t rank = first; rank < last; ++rank) walkers.push_back({rank, plan.walk(rank)});
  while (goes_on && !walkers.empty())
    std::erase_if(walkers, [&](Walker& walker) { return goes_on && !walker.step(take, goes_on); });
}

Result<void> generate(std::string_view name, const Parameters& parameters, Order order,
                      const std::function<bool(const Access&)>& take) {
  const auto workload = find_workload(name);
  if (!workload) return pass_on(workload.error());
  const auto plan = make_plan(**workload, parameters);
  if (!plan) return pass_on(plan.error());
  generate(*plan, order, 0, plan->ranks, take);
  return {};
}

}  // namespace iosig::workloads
