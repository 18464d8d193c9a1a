#include "iosig/decide/regions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "iosig/base/parallel.h"
#include "iosig/base/units.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_regions = std::uint64_t{1} << 24U;
constexpr std::size_t max_lengths = 64;  ///< of a region's groups that are kept exactly

RequestPlaces* like(std::vector<RequestPlaces>& kinds, std::uint64_t length, bool is_write) {
  const auto found = std::ranges::find_if(
      kinds, [&](const RequestPlaces& each) { return each.length() == length && each.is_write() == is_write; });
  return found == kinds.end() ? nullptr : &*found;
}

/// The requests of an adaptive region, summed over its units.
struct Hotness {
  double requests = 0, bytes = 0;
  std::uint64_t units = 0;

  void add(const Hotness& other) {
    requests += other.requests;
    bytes += other.bytes;
    units += other.units;
  }
  [[nodiscard]] bool is_like(const Hotness& unit, double ratio) const {
    const double mean = requests / static_cast<double>(units), other = unit.requests;
    const double low = std::min(mean, other), high = std::max(mean, other);
    if (high > ratio * low && high - low > 3 * std::sqrt(high)) return false;
    if (low == 0) return high == 0;
    const double length = bytes / requests, other_length = unit.bytes / unit.requests;
    return std::max(length, other_length) <= ratio * std::min(length, other_length);
  }
};

}  // namespace

Result<RegionBounds> fixed_regions(std::uint64_t file_bytes, std::uint64_t region_bytes) {
  if (region_bytes == 0) return fail(ErrorKind::usage, "regions of 0 bytes: expected at least 1 byte");
  const std::uint64_t count = file_bytes / region_bytes + (file_bytes % region_bytes > 0 ? 1 : 0);
  if (count > max_regions)
    return fail(ErrorKind::usage, "{} in regions of {}: {} regions; expected at most {}: use larger regions",
                about_bytes(static_cast<double>(file_bytes)), bytes_text(region_bytes), count, max_regions);
  RegionBounds bounds;
  for (std::uint64_t n = 1; n <= count; ++n) bounds.ends.push_back(n == count ? file_bytes : n * region_bytes);
  return bounds;
}

std::vector<std::size_t> first_equal_regions(std::span<const Region> regions) {
  std::map<std::vector<std::uint64_t>, std::size_t> known;
  std::vector<std::size_t> first;
  for (std::size_t n = 0; n < regions.size(); ++n) {
    std::vector<std::uint64_t> numbers{regions[n].length};
    for (const RequestGroup& each : regions[n].groups)
      numbers.insert(numbers.end(),
                     {each.offset, each.length, each.stride, each.count, each.places, each.is_write ? 1U : 0U});
    first.push_back(known.try_emplace(std::move(numbers), n).first->second);
  }
  return first;
}

RegionBounds adaptive_regions(std::span<const Region> units, const AdaptiveOptions& options) {
  RegionBounds bounds;
  Hotness region;
  std::uint64_t start = 0;
  for (const Region& unit : units) {
    Hotness hotness{.requests = 0, .bytes = 0, .units = 1};
    for (const RequestGroup& group : unit.groups) {
      hotness.requests += static_cast<double>(group.count);
      hotness.bytes += static_cast<double>(group.count) * static_cast<double>(group.length);
    }
    const std::uint64_t end = unit.offset + unit.length;
    const bool joins =
        region.units > 0 && end - start <= options.max_region_bytes && region.is_like(hotness, options.ratio);
    if (region.units > 0 && !joins) {
      bounds.ends.push_back(unit.offset);
      start = unit.offset;
      region = {};
    }
    region.add(hotness);
  }
  if (!units.empty()) bounds.ends.push_back(units.back().offset + units.back().length);
  return bounds;
}

RegionCollector::RegionCollector(const RegionBounds& bounds, std::uint32_t file)
    : ends_(bounds.ends), file_(file), places_(bounds.ends.size()) {}

std::size_t RegionCollector::region_at(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
}

void RegionCollector::put(std::size_t region, const RequestGroup& group) {
  std::vector<RequestPlaces>& kinds = places_[region];
  RequestPlaces* known = like(kinds, group.length, group.is_write);
  RequestGroup rounded = group;
  if (known == nullptr && kinds.size() >= max_lengths) {
    rounded.length = std::bit_ceil(group.length);
    known = like(kinds, rounded.length, group.is_write);
  }
  if (known == nullptr) known = &kinds.emplace_back(rounded.length, rounded.is_write);
  known->add(rounded);
}

void RegionCollector::drop(std::size_t region, const RequestGroup& one) {
  RequestPlaces* known = like(places_[region], one.length, one.is_write);
  if (known == nullptr) known = like(places_[region], std::bit_ceil(one.length), one.is_write);
  if (known != nullptr) known->drop(one.offset);
}

void RegionCollector::split(std::uint64_t offset, std::uint64_t length, bool is_write, bool is_added) {
  if (is_added && length > 0) end_bytes_ = std::max(end_bytes_, offset + length);
  for (std::size_t region = region_at(offset); length > 0; ++region) {
    if (region == ends_.size()) {
      outside_ += is_added ? 1 : -1;
      return;
    }
    const std::uint64_t start = region == 0 ? 0 : ends_[region - 1];
    const std::uint64_t some = std::min(length, ends_[region] - offset);
    const RequestGroup part{.offset = offset - start, .length = some, .stride = 0, .count = 1, .is_write = is_write};
    if (is_added)
      put(region, part);
    else
      drop(region, part);
    offset += some;
    length -= some;
  }
}

Result<void> RegionCollector::add(std::span<const Request> requests) {
  for (const Request& each : requests) {
    if (each.offset > max_bytes || each.length > max_bytes - each.offset)
      return fail(ErrorKind::bad_input, "request of {} bytes at offset {}: it ends after 2^63 - 1, where no file can",
                  each.length, each.offset);
    split(each.offset, each.length, each.is_write);
  }
  return {};
}

Result<void> RegionCollector::add(const RequestGroup& progression) {
  const auto last = static_cast<__uint128_t>(progression.count == 0 ? 0 : progression.count - 1) * progression.stride +
                    progression.offset + progression.length;
  if (last > max_bytes)
    return fail(ErrorKind::bad_input, "{} requests of {} bytes from offset {} on, {} apart: they end after 2^63 - 1",
                progression.count, progression.length, progression.offset, progression.stride);
  if (progression.length == 0 || progression.count == 0) return {};
  end_bytes_ = std::max(end_bytes_, static_cast<std::uint64_t>(last));
  for (std::uint64_t n = 0; n < progression.count;) {
    const std::uint64_t offset = progression.offset + n * progression.stride;
    const std::size_t region = region_at(offset);
    if (region == ends_.size()) {
      outside_ += progression.count - n;
      return {};
    }
    if (progression.length > ends_[region] - offset) {
      split(offset, progression.length, progression.is_write);
      ++n;
      continue;
    }
    const std::uint64_t left = progression.count - n, room = ends_[region] - offset - progression.length;
    RequestGroup group = progression;
    group.offset = offset - (region == 0 ? 0 : ends_[region - 1]);
    group.count = progression.stride == 0 ? left : std::min(left, room / progression.stride + 1);
    n += group.count;
    put(region, group);
  }
  return {};
}

std::vector<Region> RegionCollector::regions() const {
  std::vector<Region> regions(ends_.size());
  for_each_in_parallel(ends_.size(), 0, [&](std::size_t n) {
    const std::uint64_t start = n == 0 ? 0 : ends_[n - 1];
    regions[n] = {.file = file_, .offset = start, .length = ends_[n] - start, .groups = {}};
    for (const RequestPlaces& kind : places_[n])
      std::ranges::move(kind.groups(places_[n].size()), std::back_inserter(regions[n].groups));
  });
  return regions;
}

}  // namespace iosig
