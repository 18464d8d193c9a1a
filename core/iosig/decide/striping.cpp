#include "iosig/decide/striping.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "iosig/base/units.h"
#include "iosig/decide/regions.h"

namespace iosig {
namespace {

constexpr std::size_t max_subset_classes = 4;  ///< of more classes, not all subsets are candidates
constexpr std::size_t max_shapes = 4;          ///< lengths and kinds for which there are candidates
constexpr std::size_t max_starts = 6;          ///< candidates whose neighbourhood is searched
constexpr std::uint64_t max_search_phases = 256, min_search_phases = 32;
constexpr std::uint64_t scan_steps = 64;                ///< of one length, before scan() doubles it
constexpr std::size_t max_single_requests = 64;         ///< searched one by one, rather than in groups
constexpr std::size_t max_costed_requests = 1U << 18U;  ///< at their places, once the search is over
constexpr double max_stripe = 1e18;
constexpr double latency_weight = 1e-3;  ///< breaks ties
constexpr double tie = 1e-9;             ///< of equal scores
constexpr double alike = 0.02;           ///< what less of the servers' time is not worth another layout

bool allows(const std::vector<bool>& may_use, std::size_t number) { return may_use.empty() || may_use[number]; }

/// The bytes that a server of `service` ends within `seconds`.
double bytes_within(double seconds, const ServiceTime& service, const ServerNetwork& network) {
  const double stored = std::max(0.0, (seconds - service.startup_s) / service.s_per_byte);
  return network.s_per_byte > 0 ? std::min(stored, seconds / network.s_per_byte) : stored;
}

/// Keeps the best stripes and all that were costed.
class StripeSearch {
 public:
  StripeSearch(std::span<const RequestGroup> groups, const Servers& servers, const StripeOptions& options,
               const std::vector<bool>& may_use)
      : groups_(groups),
        servers_(servers),
        options_(options),
        may_use_(may_use),
        phases_(std::clamp(options.max_effort / 64, min_search_phases, max_search_phases)) {}

  /// Returns nothing if no layout is allowed.
  [[nodiscard]] std::vector<StripeChoice> run() {
    const std::vector<RequestGroup> all = shapes();
    if (all.empty()) return {};
    for (const RequestGroup& shape : all) start_at(shape);
    descend_from_best();
    scan();
    descend_from_best();
    std::vector<const Costed*> best;
    for (const auto score : {+[](const Scores& of) { return of.alone; }, +[](const Scores& of) { return of.shared; },
                             +[](const Scores& of) { return std::sqrt(of.alone) * std::sqrt(of.shared); }}) {
      const Costed* const found = best_by(score);
      const auto is_like = [&](const Costed* other) {
        return std::abs(found->second.alone - other->second.alone) <= alike * other->second.alone &&
               std::abs(found->second.shared - other->second.shared) <= alike * other->second.shared;
      };
      if (found != nullptr && std::ranges::none_of(best, is_like)) best.push_back(found);
    }
    std::vector<StripeChoice> choices;
    for (const Costed* each : best)
      choices.push_back({.stripes = each->first,
                         .seconds = busiest_s(servers_, load_of(servers_, each->first, groups_)),
                         .is_fallback = false,
                         .tried = costed_.size()});
    return choices;
  }

 private:
  /// Returns the groups with most bytes, one for each length and kind.
  [[nodiscard]] std::vector<RequestGroup> shapes() const {
    std::vector<RequestGroup> shapes(groups_.begin(), groups_.end());
    std::erase_if(shapes, [](const RequestGroup& each) { return each.length == 0 || each.count == 0; });
    std::ranges::stable_sort(shapes, std::greater{}, [](const RequestGroup& each) {
      return static_cast<double>(each.count) * static_cast<double>(each.length);
    });
    if (shapes.size() > max_shapes) shapes.resize(max_shapes);
    return shapes;
  }

  [[nodiscard]] std::vector<std::size_t> usable_classes() const {
    std::vector<std::size_t> usable;
    for (std::size_t number = 0; number < servers_.classes.size(); ++number)
      if (allows(may_use_, number) && servers_.classes[number].count > 0) usable.push_back(number);
    return usable;
  }

  /// Returns the sets of classes for candidates, as may_use.
  [[nodiscard]] std::vector<std::vector<bool>> class_sets() const {
    const std::vector<std::size_t> usable = usable_classes();
    std::vector<std::vector<bool>> sets;
    const bool all = usable.size() <= max_subset_classes;
    for (std::size_t bits = 1; all && bits < std::size_t{1} << usable.size(); ++bits) {
      std::vector<bool>& set = sets.emplace_back(servers_.classes.size());
      for (std::size_t n = 0; n < usable.size(); ++n) set[usable[n]] = (bits >> n & 1U) != 0;
    }
    for (std::size_t n = 0; !all && n < usable.size(); ++n) {
      sets.emplace_back(servers_.classes.size())[usable[n]] = true;
    }
    if (!all) {
      std::vector<bool>& set = sets.emplace_back(servers_.classes.size());
      for (const std::size_t number : usable) set[number] = true;
    }
    return sets;
  }

  void start_at(const RequestGroup& shape) {
    for (const std::vector<bool>& set : class_sets()) {
      const std::vector<double> filled = fill_servers(static_cast<double>(shape.length), servers_, shape.is_write, set);
      std::vector<double> rates(filled.size());
      double least_rate = 0;
      for (std::size_t number = 0; number < rates.size(); ++number) {
        if (!set[number]) continue;
        const ServiceTime& service = servers_.classes[number].service(shape.is_write);
        const auto length = static_cast<double>(shape.length);
        rates[number] =
            1 / std::max(service.startup_s + length * service.s_per_byte, length * servers_.network.s_per_byte);
        least_rate = least_rate == 0 ? rates[number] : std::min(least_rate, rates[number]);
      }
      const double unit = static_cast<double>(options_.unit_bytes);
      Stripes up, down, whole, even;
      for (std::size_t number = 0; number < rates.size(); ++number) {
        up.push_back(rounded(std::ceil(filled[number] / unit)));
        down.push_back(rounded(std::floor(filled[number] / unit)));
        const double length_units = std::ceil(static_cast<double>(shape.length) / unit);
        whole.push_back(rounded(std::round(rates[number] / least_rate) * length_units));
        even.push_back(set[number] ? rounded(length_units) : 0);
      }
      for (const Stripes& stripes : {up, down, whole, even}) (void)score(stripes);
    }
  }

  [[nodiscard]] std::uint64_t rounded(double units) const {
    // Larger stripes than a file are refused later.
    return static_cast<std::uint64_t>(std::min(units, max_stripe / static_cast<double>(options_.unit_bytes))) *
           options_.unit_bytes;
  }

  [[nodiscard]] std::uint64_t period_of(const Stripes& stripes) const {
    std::uint64_t period = 0;
    for (std::size_t number = 0; number < stripes.size(); ++number)
      period += servers_.classes[number].count * stripes[number];
    return period;
  }

  /// Times, each with a little of the latency.
  struct Scores {
    double alone = 0, shared = 0;  ///< busiest_s, mean_busiest_s
  };
  using Costed = std::pair<const Stripes, Scores>;

  /// Returns what was costed with the least score; of equal ones that with the longest period.
  [[nodiscard]] const Costed* best_by(double (*time)(const Scores&)) const {
    const Costed* best = nullptr;
    double least = INFINITY;
    for (const Costed& each : costed_) {
      const double found = time(each.second);
      if (best != nullptr && found >= least * (1 - tie) &&
          (found > least * (1 + tie) || period_of(each.first) <= period_of(best->first)))
        continue;
      best = &each;
      least = found;
    }
    return best;
  }

  /// Returns the time of `stripes` alone, plus a little of the latency; infinity for what is not allowed.
  [[nodiscard]] double score(const Stripes& stripes) {
    const auto known = costed_.find(stripes);
    if (known != costed_.end()) return known->second.alone;
    for (std::size_t number = 0; number < stripes.size(); ++number)
      if (stripes[number] > 0 && !allows(may_use_, number)) return INFINITY;
    if (!checked(stripes, servers_)) return INFINITY;
    const std::uint64_t period = period_of(stripes);
    const Load load = load_of(servers_, stripes, groups_, phases_);
    for (const RequestGroup& group : groups_) effort_ += std::min({group.place_count(), phases_, period}) + 10;
    const double more = latency_weight * load.latency_s / servers_.processes;
    const double times = period <= options_.max_period_bytes
                             ? 1
                             : 4 * static_cast<double>(period) / static_cast<double>(options_.max_period_bytes);
    const Scores scores{times * (busiest_s(servers_, load) + more), times * (mean_busiest_s(servers_, load) + more)};
    costed_.emplace(stripes, scores);
    return scores.alone;
  }

  void descend_from_best() {
    std::vector<std::pair<double, Stripes>> starts;
    for (const auto& [stripes, scores] : costed_) starts.emplace_back(scores.alone, stripes);
    const std::size_t count = std::min(max_starts, starts.size());
    std::ranges::partial_sort(starts, starts.begin() + static_cast<std::ptrdiff_t>(count));
    starts.resize(count);
    for (const auto& [score, stripes] : starts) descend(stripes, score);
  }

  /// Costs the sizes of up to two classes in ever larger steps, as far as the effort allows: few requests at certain
  /// offsets leave gaps between the candidates.
  void scan() {
    const std::vector<std::size_t> usable = usable_classes();
    if (usable.empty() || usable.size() > 2) return;
    std::uint64_t longest = 0;
    for (const RequestGroup& group : groups_) longest = std::max(longest, group.length);
    std::vector<std::uint64_t> sizes{0};
    for (std::uint64_t step = options_.unit_bytes;
         sizes.back() < std::max(4 * std::min(longest, max_bytes / 4), scan_steps * options_.unit_bytes);) {
      sizes.push_back(sizes.back() + step);
      if (sizes.back() >= scan_steps * step) step *= 2;
    }
    Stripes at(servers_.classes.size());
    // Smaller pairs first: a square that grows.
    for (std::size_t n = 0; n < sizes.size(); ++n)
      for (std::size_t k = 0; k <= n; ++k) {
        if (effort_ > options_.max_effort) return;
        at[usable[0]] = sizes[k];
        if (usable.size() == 2) at[usable[1]] = sizes[n];
        (void)score(at);
        if (usable.size() == 1 || k == n) continue;
        at[usable[0]] = sizes[n];
        at[usable[1]] = sizes[k];
        (void)score(at);
      }
  }

  /// Walks to the best neighbour until none is better.
  void descend(Stripes at, double at_score) {
    for (bool moved = true; moved && effort_ <= options_.max_effort;) {
      moved = false;
      Stripes best = at;
      for (const Stripes& neighbour : neighbours(at)) {
        const double score = this->score(neighbour);
        if (score < at_score * (1 - 1e-6)) {
          at_score = score;
          best = neighbour;
          moved = true;
        }
      }
      at = best;
    }
  }

  [[nodiscard]] std::vector<Stripes> neighbours(const Stripes& at) const {
    std::vector<Stripes> all;
    Stripes twice = at, half = at;
    for (std::size_t number = 0; number < at.size(); ++number) {
      twice[number] *= 2;
      half[number] = at[number] / 2 / options_.unit_bytes * options_.unit_bytes;
      if (!allows(may_use_, number) || servers_.classes[number].count == 0) continue;
      for (std::uint64_t step = options_.unit_bytes; step <= std::max(at[number], options_.unit_bytes); step *= 2) {
        all.push_back(at);
        all.back()[number] += step;
        if (step > at[number]) continue;
        all.push_back(at);
        all.back()[number] -= step;
      }
      all.push_back(at);
      all.back()[number] = 0;
    }
    all.push_back(twice);
    all.push_back(half);
    trade(at, all);
    return all;
  }

  /// Adds neighbours that take bytes from one class for another, with the period kept or as close as the grid allows.
  void trade(const Stripes& at, std::vector<Stripes>& all) const {
    if (at.size() > max_subset_classes) return;
    for (std::size_t giver = 0; giver < at.size(); ++giver)
      for (std::size_t taker = 0; taker < at.size(); ++taker) {
        const std::uint64_t few = servers_.classes[giver].count, many = servers_.classes[taker].count;
        if (giver == taker || !allows(may_use_, taker) || few == 0 || many == 0) continue;
        for (std::uint64_t step = options_.unit_bytes; step <= at[giver]; step *= 2) {
          const std::uint64_t units = step / options_.unit_bytes * few;
          for (const std::uint64_t taken : {units / many, (units + many - 1) / many}) {
            all.push_back(at);
            all.back()[giver] -= step;
            all.back()[taker] += taken * options_.unit_bytes;
          }
        }
      }
  }

  std::span<const RequestGroup> groups_;
  const Servers& servers_;
  const StripeOptions& options_;
  const std::vector<bool>& may_use_;
  std::map<Stripes, Scores> costed_;
  std::uint64_t phases_, effort_ = 0;
};

/// Returns the layout of a region without requests.
StripeChoice unused_layout(const Servers& servers, const StripeOptions& options, const std::vector<bool>& may_use) {
  for (std::size_t number = 0; number < servers.classes.size(); ++number) {
    if (!allows(may_use, number) || servers.classes[number].count == 0) continue;
    StripeChoice choice{.stripes = Stripes(servers.classes.size())};
    choice.stripes[number] = std::max<std::uint64_t>(1, MiB / options.unit_bytes) * options.unit_bytes;
    return choice;
  }
  return {};
}

/// Returns the groups of one request each, or `max_count` of them from all parts of the sequence, that stand for all.
std::vector<RequestGroup> thinned(const std::vector<RequestGroup>& singles, std::size_t max_count) {
  if (singles.size() <= max_count) return singles;
  const double part = static_cast<double>(singles.size()) / static_cast<double>(max_count);
  std::vector<RequestGroup> some;
  double within = 0;  // jumps, so that no stride of the sequence is hit again and again
  for (std::size_t n = 0; n < max_count; ++n, within = std::fmod(within + std::numbers::phi, 1))
    some.push_back(singles[static_cast<std::size_t>((static_cast<double>(n) + within) * part)]);
  for (std::size_t n = 0; n < max_count; ++n)
    some[n].count = singles.size() * (n + 1) / max_count - singles.size() * n / max_count;
  return some;
}

}  // namespace

std::vector<double> fill_servers(double length, const Servers& servers, bool is_write,
                                 const std::vector<bool>& may_use) {
  const auto total = [&](double seconds) {
    double bytes = 0;
    for (std::size_t number = 0; number < servers.classes.size(); ++number)
      if (allows(may_use, number))
        bytes += servers.classes[number].count *
                 bytes_within(seconds, servers.classes[number].service(is_write), servers.network);
    return bytes;
  };
  // The bytes that all end within T are linear in T between these times.
  std::vector<double> breaks{0};
  const double link = servers.network.s_per_byte;
  for (std::size_t number = 0; number < servers.classes.size(); ++number) {
    if (!allows(may_use, number) || servers.classes[number].count == 0) continue;
    const ServiceTime& service = servers.classes[number].service(is_write);
    breaks.push_back(service.startup_s);
    if (link > service.s_per_byte) breaks.push_back(service.startup_s * link / (link - service.s_per_byte));
  }
  std::vector<double> filled(servers.classes.size());
  if (breaks.size() == 1 || !(length > 0)) return filled;
  std::ranges::sort(breaks);
  std::size_t next = 1;
  while (next < breaks.size() && total(breaks[next]) < length) ++next;
  const double from = breaks[next - 1];
  const double to = next < breaks.size() ? breaks[next] : from + 1;  // beyond the last, linear without end
  const double rate = (total(to) - total(from)) / (to - from);
  const double seconds = from + (length - total(from)) / rate;
  for (std::size_t number = 0; number < filled.size(); ++number)
    if (allows(may_use, number) && servers.classes[number].count > 0)
      filled[number] = bytes_within(seconds, servers.classes[number].service(is_write), servers.network);
  return filled;
}

StripeChoice choose_stripes(std::span<const RequestGroup> groups, const Servers& servers, const StripeOptions& options,
                            const std::vector<bool>& may_use) {
  return choose_shared_stripes(groups, servers, options, may_use).front();
}

std::vector<StripeChoice> choose_shared_stripes(std::span<const RequestGroup> groups, const Servers& servers,
                                                const StripeOptions& options, const std::vector<bool>& may_use) {
  std::vector<StripeChoice> choices = StripeSearch(groups, servers, options, may_use).run();
  if (choices.empty()) choices.push_back(unused_layout(servers, options, may_use));
  return choices;
}

StripeChoice choose_stripes_at(std::span<const Request> requests, const Servers& servers, StripeOptions options) {
  std::vector<RequestGroup> singles;
  std::uint64_t begin = max_bytes, end = 0;
  for (const Request& each : requests) {
    if (each.length == 0) continue;
    singles.push_back({.offset = each.offset, .length = each.length, .is_write = each.is_write});
    begin = std::min(begin, each.offset);
    end = std::max(end, each.offset + each.length);
  }
  if (singles.empty()) return choose_stripes({}, servers, options);
  StripeChoice exact = choose_stripes(thinned(singles, max_single_requests), servers, options);
  if (singles.size() <= max_single_requests) return exact;
  options.max_period_bytes = std::min(options.max_period_bytes, end - begin);
  RegionCollector collector(RegionBounds{{end}});
  if (!collector.add(requests)) return exact;  // ends beyond max_bytes
  const std::vector<RequestGroup> costed = thinned(singles, max_costed_requests);
  std::optional<StripeChoice> best;
  for (StripeChoice choice : {choose_stripes(collector.regions().front().groups, servers, options), exact}) {
    choice.seconds = busiest_s(servers, load_of(servers, choice.stripes, costed));
    if (!best || choice.seconds < best->seconds) best = std::move(choice);
  }
  return *std::move(best);
}

}  // namespace iosig
