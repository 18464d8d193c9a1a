#include "iosig/storage/probe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/storage/hardware.h"

namespace iosig {
namespace {

/// What a rotating disk needs at least to reach another place; no flash needs as much, no disk less.
constexpr double shortest_seek_s = 1e-3;

double rounded(double value) {
  if (value == 0) return 0;
  const double step = std::pow(10, std::floor(std::log10(value)) - 2);
  // Division by a power of ten keeps "0.000123" short; multiplication by 1e-6 would not.
  return step >= 1 ? std::round(value / step) * step : std::round(value / step) / std::round(1 / step);
}

template <class Member, class Text>
void set_measured(Device& device, Member Device::*member, std::string_view key, const Spread& spread, Text text) {
  device.*member = rounded(spread.median);
  set_origin(device.provenance, key, Origin::measured);
  Provenance& provenance = device.provenance.find(key)->second;
  provenance.probed_low_text = text(rounded(spread.low));
  provenance.probed_high_text = text(rounded(spread.high));
}

/// Puts what was measured into the description. Random blocks that take much longer than sequential ones show a seek.
void apply(const Measurement& measured, std::uint64_t block_bytes, Found& found) {
  const Spread& random = measured.random_read_latency_s;
  const double sequential_s =
      measured.read_operation_latency_s.median + static_cast<double>(block_bytes) / measured.read_bytes_per_s.median;
  const double seek_s = std::max(0.0, random.median - sequential_s);
  Device& device = found.device;
  if (!found.kind_is_sure) {
    device.kind = seek_s > shortest_seek_s ? DeviceKind::hdd : DeviceKind::ssd;
    set_origin(device.provenance, "kind", Origin::measured);
  }
  set_measured(device, &Device::read_bytes_per_s, "read_bandwidth", measured.read_bytes_per_s, rate_text);
  set_measured(device, &Device::write_bytes_per_s, "write_bandwidth", measured.write_bytes_per_s, rate_text);
  set_measured(device, &Device::operation_latency_s, "operation_latency", measured.operation_latency_s, seconds_text);
  set_measured(device, &Device::read_operation_latency_s, "read_operation_latency", measured.read_operation_latency_s,
               seconds_text);
  if (device.kind == DeviceKind::hdd) {
    set_measured(device, &Device::seek_latency_s, "seek_latency",
                 {seek_s, std::max(0.0, random.low - sequential_s), std::max(0.0, random.high - sequential_s)},
                 seconds_text);
  } else {
    device.seek_latency_s = 0;
    set_origin(device.provenance, "seek_latency", found.kind_is_sure ? Origin::inspected : Origin::measured);
  }
  device.max_iops = rounded(measured.max_iops);
  set_origin(device.provenance, "max_iops", Origin::measured);
}

std::string real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  std::string resolved = real == nullptr ? path : real;
  std::free(real);
  return resolved;
}

/// Keeps those of `discovery` that the user named.
Result<void> keep_only(const std::vector<std::string>& folders, Discovery& discovery) {
  std::vector<Found> kept;
  for (const std::string& folder : folders) {
    const std::string path = real_path(folder);
    const auto found = std::ranges::find(discovery.found, path, [](const Found& each) { return each.mount.path; });
    if (found != discovery.found.end()) {
      kept.push_back(*found);
      continue;
    }
    const auto skipped = std::ranges::find(discovery.skipped, path, &Skipped::path);
    return fail(ErrorKind::infeasible, "'{}' is no destination: {}; `iosig storage probe` without --mount shows all",
                printable(folder),
                skipped != discovery.skipped.end() ? skipped->reason : "no folder there in which you can create files");
  }
  discovery.found = std::move(kept);
  std::erase_if(discovery.skipped, [](const Skipped&) { return true; });
  return {};
}

}  // namespace

Result<Probe> probe_storage(const ProbeOptions& options, const Progress& progress) {
  std::vector<std::string> preferred = options.only;
  preferred.insert(preferred.end(), options.folders.begin(), options.folders.end());
  auto discovery = discover(preferred);
  if (!discovery) return pass_on(discovery.error());
  if (!options.only.empty())
    if (const auto kept = keep_only(options.only, *discovery); !kept) return pass_on(kept.error());

  Probe probe;
  std::vector<Found> measured;
  for (Found& found : discovery->found) {
    const std::string& path = found.mount.path;
    const auto measurement = measure(path, found.mount.block_bytes, options.limits, [&](std::string_view what) {
      progress(fmt::format("{}: {}", printable(path), what));
    });
    if (!measurement) {
      discovery->skipped.push_back({path, measurement.error().message});
      continue;
    }
    if (!measurement->direct_reads)
      probe.notes.push_back(
          fmt::format("{}: {} refuses O_DIRECT; reads were measured after asking the kernel to drop "
                      "the file from its cache",
                      printable(path), found.mount.filesystem));
    apply(*measurement, found.mount.block_bytes, found);
    measured.push_back(std::move(found));
  }
  probe.storage = storage_of(std::move(measured));
  probe.skipped = std::move(discovery->skipped);
  return probe;
}

}  // namespace iosig
