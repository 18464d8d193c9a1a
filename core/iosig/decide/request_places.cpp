#include "iosig/decide/request_places.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace iosig {
namespace {

constexpr std::size_t max_exact_places = 128, max_exact_groups = 512, max_parts = 16;
constexpr double chancy_requests = 512;        ///< of which chance gives some places many more than others
constexpr std::size_t max_offsets = 1U << 16;  ///< kept one by one
constexpr std::size_t max_longer = 256;        ///< groups kept apart
constexpr std::uint64_t max_expanded = 4096;   ///< requests of longer groups that count one by one
constexpr std::size_t coarse_cuts = 256;       ///< tried before the neighbourhood of the best

struct PlaceCount {
  std::uint64_t offset = 0, count = 0;
};

std::vector<PlaceCount> counted(std::span<const std::uint64_t> sorted) {
  std::vector<PlaceCount> places;
  for (const std::uint64_t offset : sorted) {
    if (places.empty() || places.back().offset != offset) places.push_back({offset, 0});
    ++places.back().count;
  }
  return places;
}

bool is_even(std::span<const PlaceCount> places) {
  for (std::size_t n = 1; n < places.size(); ++n)
    if (places[n].count != places[0].count ||
        places[n].offset - places[n - 1].offset != places[1].offset - places[0].offset)
      return false;
  return true;
}

std::uint64_t last_of(const RequestGroup& group) { return group.offset + (group.place_count() - 1) * group.stride; }

/// Adds `more`, of the same length and kind, to `group`, which becomes scattered over the range of both.
void join(RequestGroup& group, const RequestGroup& more) {
  const std::uint64_t last = std::max(last_of(group), last_of(more)), first = std::min(group.offset, more.offset);
  group.stride = std::gcd(std::gcd(group.stride, more.stride),
                          std::max(group.offset, more.offset) - std::min(group.offset, more.offset));
  group.offset = first;
  group.count += more.count;
  group.places = group.stride == 0 ? 1 : (last - first) / group.stride + 1;
}

/// Joins groups that overlap, and neighbours, until at most `most` are left.
void join_neighbours(std::vector<RequestGroup>& groups, std::size_t most) {
  std::ranges::stable_sort(groups, {}, &RequestGroup::offset);
  std::vector<RequestGroup> joined;
  for (const RequestGroup& each : groups)
    if (!joined.empty() && each.offset <= last_of(joined.back()))
      join(joined.back(), each);
    else
      joined.push_back(each);
  while (joined.size() > most) {
    std::vector<RequestGroup> pairs;
    for (std::size_t n = 0; n < joined.size(); ++n)
      if (n % 2 == 1)
        join(pairs.back(), joined[n]);
      else
        pairs.push_back(joined[n]);
    joined = std::move(pairs);
  }
  groups = std::move(joined);
}

/// Divides places into parts of unlike density.
class Parts {
 public:
  Parts(std::span<const PlaceCount> places, std::size_t most) : places_(places) {
    for (const PlaceCount& each : places) before_.push_back(before_.back() + static_cast<double>(each.count));
    for (const PlaceCount& each : places) grid_ = std::gcd(grid_, each.offset - places[0].offset);
    parts_.push_back(with_cut(0, places.size()));
    while (parts_.size() < most) {
      const auto best = std::ranges::max_element(parts_, {}, &Part::gain);
      if (best->gain <= 0) break;
      const Part left = with_cut(best->begin, best->cut), right = with_cut(best->cut, best->end);
      *best = left;
      parts_.push_back(right);
    }
    std::ranges::sort(parts_, {}, &Part::begin);
  }

  [[nodiscard]] std::size_t count() const { return parts_.size(); }
  [[nodiscard]] double requests() const { return before_.back(); }
  [[nodiscard]] std::span<const PlaceCount> part(std::size_t n) const {
    return places_.subspan(parts_[n].begin, parts_[n].end - parts_[n].begin);
  }

 private:
  struct Part {
    std::size_t begin = 0, end = 0;
    std::size_t cut = 0;
    double gain = 0;  ///< of log likelihood by the cut, less what chance may gain
  };

  /// Log likelihood, but for a constant of the whole, of `requests` that are equally likely in `cells`.
  [[nodiscard]] static double likelihood(double requests, double cells) {
    return requests > 0 ? requests * std::log(requests / cells) : 0;
  }
  [[nodiscard]] double cells(std::uint64_t from, std::uint64_t to) const {
    return static_cast<double>(to - from) / static_cast<double>(grid_);
  }

  /// The likelihood of two parts: the gap between them belongs to one of them.
  [[nodiscard]] double divided(std::size_t begin, std::size_t cut, std::size_t end) const {
    const double left = before_[cut] - before_[begin], right = before_[end] - before_[cut];
    const std::uint64_t first = places_[begin].offset, behind = places_[end - 1].offset + grid_;
    const std::uint64_t early = places_[cut - 1].offset + grid_, late = places_[cut].offset;
    const double with_early = likelihood(left, cells(first, early)) + likelihood(right, cells(early, behind));
    if (early == late) return with_early;
    return std::max(with_early, likelihood(left, cells(first, late)) + likelihood(right, cells(late, behind)));
  }

  [[nodiscard]] Part with_cut(std::size_t begin, std::size_t end) const {
    Part part{begin, end};
    if (end - begin < 2) return part;
    double best = -std::numeric_limits<double>::infinity();
    const auto try_cuts = [&](std::size_t from, std::size_t to, std::size_t step) {
      for (std::size_t cut = from; cut < to; cut += step) {
        const double found = divided(begin, cut, end);
        if (found > best) {
          best = found;
          part.cut = cut;
        }
      }
    };
    const std::size_t step = (end - begin) / coarse_cuts + 1;
    try_cuts(begin + 1, end, step);
    if (step > 1) try_cuts(std::max(begin + 1, part.cut - std::min(part.cut, step)), std::min(end, part.cut + step), 1);
    const double requests = before_[end] - before_[begin];
    const double whole = likelihood(requests, cells(places_[begin].offset, places_[end - 1].offset + grid_));
    part.gain = best - whole - chance(requests);
    return part;
  }

  /// A gain that the best of many cuts hardly ever reaches if the requests are evenly distributed.
  [[nodiscard]] static double chance(double requests) { return 5 + 2 * std::log(requests); }

  std::span<const PlaceCount> places_;
  std::vector<double> before_{0};  ///< requests before each place
  std::uint64_t grid_ = 0;
  std::vector<Part> parts_;
};

/// Appends groups that stand for requests at these places. `empty` has their length and kind.
void append(std::span<const PlaceCount> places, std::size_t share, const RequestGroup& empty,
            std::vector<RequestGroup>& groups) {
  const auto group = [&](std::uint64_t offset, std::uint64_t stride, std::uint64_t count, std::uint64_t spots) {
    RequestGroup made = empty;
    made.offset = offset;
    made.stride = stride;
    made.count = count;
    made.places = spots;
    return made;
  };
  const auto one_by_one = [&] {
    for (const PlaceCount& each : places) groups.push_back(group(each.offset, 0, each.count, 0));
  };
  if (places.empty()) return;
  if (places.size() == 1) return one_by_one();
  if (is_even(places)) {
    const std::uint64_t each = places[0].count, count = places.size();
    groups.push_back(group(places[0].offset, places[1].offset - places[0].offset, each * count, each == 1 ? 0 : count));
    return;
  }
  const Parts parts(places, std::clamp<std::size_t>(2 * max_parts / share, 2, max_parts));
  const bool is_uneven = parts.count() > 1 || parts.requests() < chancy_requests;
  if (places.size() <= std::min(max_exact_places, max_exact_groups / share) && is_uneven) return one_by_one();
  for (std::size_t n = 0; n < parts.count(); ++n) {
    const std::span<const PlaceCount> part = parts.part(n);
    RequestGroup joined = group(part[0].offset, 0, part[0].count, 1);
    for (const PlaceCount& each : part.subspan(1)) join(joined, group(each.offset, 0, each.count, 1));
    groups.push_back(joined);
  }
}

}  // namespace

RequestGroup RequestPlaces::at(std::uint64_t offset, std::uint64_t count) const {
  return {.offset = offset, .length = length_, .stride = 0, .count = count, .is_write = is_write_};
}

void RequestPlaces::add(std::uint64_t offset) {
  offsets_.push_back(offset);
  if (offsets_.size() < max_offsets) return;
  std::ranges::sort(offsets_);
  append(counted(offsets_), 1, at(0, 0), longer_);
  offsets_.clear();
}

void RequestPlaces::add(const RequestGroup& group) {
  if (group.count == 1) return add(group.offset);
  RequestGroup* const last = longer_.empty() ? nullptr : &longer_.back();
  if (last != nullptr && !last->is_scattered() && !group.is_scattered() && last->stride == group.stride &&
      group.offset == last->offset + last->count * last->stride) {
    last->count += group.count;
    return;
  }
  longer_.push_back(group);
  if (longer_.size() > max_longer) join_neighbours(longer_, max_parts);
}

std::vector<RequestGroup> RequestPlaces::groups(std::size_t share) const {
  if (offsets_.empty() && dropped_.empty() && longer_.size() == 1) return longer_;
  std::vector<std::uint64_t> offsets = offsets_;
  std::vector<RequestGroup> longer = longer_, made;
  std::uint64_t expanded = 0;
  for (const RequestGroup& each : longer) expanded += each.is_scattered() ? max_expanded : each.count;
  if (expanded <= max_expanded) {
    for (const RequestGroup& each : longer)
      for (std::uint64_t n = 0; n < each.count; ++n) offsets.push_back(each.offset + n * each.stride);
    longer.clear();
  }
  std::ranges::sort(offsets);
  std::vector<std::uint64_t> dropped = dropped_, left, absent;
  std::ranges::sort(dropped);
  std::ranges::set_difference(offsets, dropped, std::back_inserter(left));
  std::ranges::set_difference(dropped, offsets, std::back_inserter(absent));
  for (const std::uint64_t offset : absent) {
    const auto holder = std::ranges::find_if(longer, [&](const RequestGroup& each) {
      return each.count > 0 && each.offset <= offset && offset <= last_of(each);
    });
    if (holder == longer.end()) continue;
    holder->places = holder->place_count();
    --holder->count;
  }
  std::erase_if(longer, [](const RequestGroup& each) { return each.count == 0; });
  append(counted(left), std::max<std::size_t>(1, share), at(0, 0), made);
  if (!longer.empty()) {
    join_neighbours(longer, max_parts);
    made.insert(made.end(), longer.begin(), longer.end());
  }
  return made;
}

}  // namespace iosig
