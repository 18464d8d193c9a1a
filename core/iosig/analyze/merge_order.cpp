#include "iosig/analyze/merge_order.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace iosig {
namespace {

using Graph = std::vector<std::vector<std::uint32_t>>;

/// Disjoint sets, each represented by its least member.
class Sets {
 public:
  explicit Sets(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0U); }
  std::uint32_t find(std::uint32_t n) {
    while (parents_[n] != n) n = parents_[n] = parents_[parents_[n]];
    return n;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parents_;
};

/// Unites the members of each cycle. R. Tarjan: Depth-first search and linear graph algorithms, 1972; not recursive.
void unite_cycles(const Graph& after, Sets& sets) {
  constexpr std::uint32_t unseen = UINT32_MAX;
  struct Visit {
    std::uint32_t node;
    std::size_t next;
  };
  std::vector<std::uint32_t> numbers(after.size(), unseen), lowest(after.size()), open;
  std::vector<bool> is_open(after.size());
  std::vector<Visit> path;
  std::uint32_t count = 0;
  const auto enter = [&](std::uint32_t node) {
    numbers[node] = lowest[node] = count++;
    open.push_back(node);
    is_open[node] = true;
    path.push_back({node, 0});
  };
  for (std::uint32_t root = 0; root < after.size(); ++root) {
    if (numbers[root] == unseen) enter(root);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < after[node].size()) {
        const std::uint32_t other = after[node][next++];
        if (numbers[other] == unseen)
          enter(other);
        else if (is_open[other])
          lowest[node] = std::min(lowest[node], numbers[other]);
        continue;
      }
      const std::uint32_t done = node;
      path.pop_back();
      if (!path.empty()) lowest[path.back().node] = std::min(lowest[path.back().node], lowest[done]);
      if (lowest[done] != numbers[done]) continue;
      for (std::uint32_t member = open.back();; member = open.back()) {
        open.pop_back();
        is_open[member] = false;
        if (member == done) break;
        sets.unite(member, done);
      }
    }
  }
}

Graph graph_of(const OrderConstraints& constraints, Sets& sets) {
  Graph after(constraints.processes.size());
  const auto add = [&](std::uint32_t first, std::uint32_t second) {
    first = sets.find(first);
    second = sets.find(second);
    if (first != second) after[first].push_back(second);
  };
  for (std::uint32_t n = 1; n < constraints.processes.size(); ++n)
    if (constraints.processes[n] == constraints.processes[n - 1]) add(n - 1, n);
  for (const auto& [first, second] : constraints.before) add(first, second);
  return after;
}

}  // namespace

OrderGroups groups_of(const OrderConstraints& constraints) {
  const auto count = static_cast<std::uint32_t>(constraints.processes.size());
  Sets sets(count);
  for (const auto& [a, b] : constraints.mixed) sets.unite(a, b);
  if (!constraints.mixed.empty()) unite_cycles(graph_of(constraints, sets), sets);
  const Graph after = graph_of(constraints, sets);
  OrderGroups groups;
  std::vector<std::uint32_t> group_of(count);
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t least = sets.find(n);
    if (least == n) {
      group_of[n] = static_cast<std::uint32_t>(groups.members.size());
      groups.members.emplace_back();
    }
    group_of[n] = group_of[least];
    groups.members[group_of[n]].push_back(n);
  }
  groups.after.resize(groups.members.size());
  for (std::uint32_t n = 0; n < count; ++n)
    for (const std::uint32_t later : after[n]) groups.after[group_of[n]].push_back(group_of[later]);
  return groups;
}

std::vector<std::uint32_t> ordered(const OrderGroups& groups, std::span<const std::uint64_t> priorities) {
  std::vector<std::uint32_t> waits_for(groups.members.size()), order;
  for (const auto& after : groups.after)
    for (const std::uint32_t later : after) ++waits_for[later];
  using Ready = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t group = 0; group < waits_for.size(); ++group)
    if (waits_for[group] == 0) ready.emplace(priorities[group], group);
  while (!ready.empty()) {
    const std::uint32_t group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (const std::uint32_t later : groups.after[group])
      if (--waits_for[later] == 0) ready.emplace(priorities[later], later);
  }
  return order;
}

}  // namespace iosig
