#include "iosig/storage/probe.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/base/units.h"
#include "iosig/storage/hardware.h"

namespace iosig {
namespace {

/// Minimum seek time of a rotating disk; flash is always faster.
constexpr double shortest_seek_s = 1e-3;

template <class Member>
void set_rate(Device& device, Member Device::*member, std::string_view key, const Estimate& estimate) {
  set_measured(device, member, key, estimate, rounded_rate, rate_text);
}
template <class Member>
void set_seconds(Device& device, Member Device::*member, std::string_view key, const Estimate& estimate) {
  set_measured(device, member, key, estimate, rounded_seconds, seconds_text);
}

/// Returns `estimate` less `seconds`, at least 0.
Estimate less(Estimate estimate, double seconds) {
  for (double* value : {&estimate.mean, &estimate.low, &estimate.high}) *value = std::max(0.0, *value - seconds);
  return estimate;
}

/// Stores the measurements in the description. The amount by which random blocks are slower than sequential ones is the
/// seek latency of a device that seeks.
void apply(const Measurement& measured, std::uint64_t block_bytes, Found& found) {
  const double block_s = static_cast<double>(block_bytes) / measured.read_bytes_per_s.mean;
  const Estimate& sequential = measured.read_operation_latency_s;
  const Estimate seek = less(measured.random_read_latency_s, sequential.mean + block_s);
  Device& device = found.device;
  if (!found.kind_is_sure) {
    device.kind = measured.seek_s > shortest_seek_s ? DeviceKind::hdd : DeviceKind::ssd;
    set_origin(device.provenance, "kind", Origin::measured);
  }
  set_rate(device, &Device::read_bytes_per_s, "read_bandwidth", measured.read_bytes_per_s);
  set_rate(device, &Device::write_bytes_per_s, "write_bandwidth", measured.write_bytes_per_s);
  set_seconds(device, &Device::operation_latency_s, "operation_latency", measured.operation_latency_s);
  set_seconds(device, &Device::read_operation_latency_s, "read_operation_latency", sequential);
  set_seconds(device, &Device::random_read_latency_s, "random_read_latency",
              less(measured.random_read_latency_s, block_s));
  set_seconds(
      device, &Device::random_write_latency_s, "random_write_latency",
      less(measured.random_write_latency_s, static_cast<double>(block_bytes) / measured.write_bytes_per_s.mean));
  set_seconds(
      device, &Device::random_new_write_latency_s, "random_new_write_latency",
      less(measured.random_new_write_latency_s, static_cast<double>(block_bytes) / measured.write_bytes_per_s.mean));
  if (device.kind != DeviceKind::ram) {  // a flush stores nothing there
    set_seconds(device, &Device::drain_latency_s, "drain_latency", measured.drain_latency_s);
    set_rate(device, &Device::drain_bytes_per_s, "drain_bandwidth", measured.drain_bytes_per_s);
  }
  set_rate(device, &Device::random_drain_bytes_per_s, "random_drain_bandwidth", measured.random_drain_bytes_per_s);
  set_seconds(device, &Device::rewrite_latency_s, "rewrite_latency",
              less(measured.rewrite_latency_s, measured.buffered_random_write_latency_s.mean));
  set_seconds(device, &Device::buffered_random_write_latency_s, "buffered_random_write_latency",
              less(measured.buffered_random_write_latency_s,
                   static_cast<double>(block_bytes) / measured.buffered_write_bytes_per_s.mean));
  set_rate(device, &Device::buffered_write_bytes_per_s, "buffered_write_bandwidth",
           measured.buffered_write_bytes_per_s);
  set_seconds(device, &Device::buffered_write_latency_s, "buffered_write_latency", measured.buffered_write_latency_s);
  set_seconds(device, &Device::buffered_small_write_latency_s, "buffered_small_write_latency",
              measured.buffered_small_write_latency_s);
  set_rate(device, &Device::buffered_read_bytes_per_s, "buffered_read_bandwidth", measured.buffered_read_bytes_per_s);
  set_seconds(device, &Device::buffered_read_latency_s, "buffered_read_latency", measured.buffered_read_latency_s);
  set_rate(device, &Device::cached_write_bytes_per_s, "cached_write_bandwidth", measured.cached_write_bytes_per_s);
  set_seconds(device, &Device::cached_write_latency_s, "cached_write_latency", measured.cached_write_latency_s);
  set_rate(device, &Device::cached_read_bytes_per_s, "cached_read_bandwidth", measured.cached_read_bytes_per_s);
  set_seconds(device, &Device::cached_read_latency_s, "cached_read_latency", measured.cached_read_latency_s);
  const bool has_disks = device.kind == DeviceKind::composite && measured.seek_s > shortest_seek_s;
  if (device.kind == DeviceKind::hdd || device.kind == DeviceKind::network || has_disks) {
    set_seconds(device, &Device::seek_latency_s, "seek_latency", seek);
  } else {
    device.seek_latency_s = 0;
    set_origin(device.provenance, "seek_latency", Origin::inspected);
  }
  device.max_iops = rounded(measured.max_iops);
  set_origin(device.provenance, "max_iops", Origin::measured);
}

/// Watches other programs, while this one does nothing.
void watch(Activity& activity, std::chrono::milliseconds pause) {
  const ActivityCounters begin = read_counters();
  std::this_thread::sleep_for(pause);
  activity.add(begin, read_counters());
}

SeenActivity seen_by(const Activity& activity, const Device& device) {
  return {device.name, activity.busy_share(), activity.text()};
}

/// Looks at what other programs do, before anything is measured.
std::vector<SeenActivity> first_look(const std::vector<Found>& found) {
  constexpr std::chrono::milliseconds look{500};
  const ActivityCounters begin = read_counters();
  std::this_thread::sleep_for(look);
  const ActivityCounters end = read_counters();
  std::vector<SeenActivity> seen;
  for (const Found& each : found) {
    Activity activity(watched_device(each.device, each.members));
    activity.add(begin, end);
    seen.push_back(seen_by(activity, each.device));
  }
  return seen;
}

/// Records the activity of others in the description. Returns a warning if it was too high, or unknown, else "".
std::string record_activity(const SeenActivity& seen, const std::string& path, Device& device) {
  if (!seen.busy_share)
    return fmt::format(
        "{}: this system does not tell what other programs do; the values count as measured on a quiet "
        "machine",
        printable(path));
  device.busy_share = std::min(1.0, std::round(100 * *seen.busy_share) / 100);
  set_origin(device.provenance, "busy_share", Origin::measured);
  if (*seen.busy_share < busy_share_limit) return {};
  return fmt::format(
      "{}: the machine was busy while it was measured: {}; so the values may be wrong several times over; "
      "probe again when it is quiet",
      printable(path), seen.text);
}

/// Returns "PATH: KEY KEY ... did not settle" for the values whose interval is wider than wanted, else "".
std::string unsettled_note(const std::string& path, const Device& device) {
  std::vector<std::string_view> keys;
  for (const auto& [key, known] : device.provenance)
    if (!known.probed_settled) keys.push_back(key);
  if (keys.empty()) return {};
  return fmt::format("{}: not known to {:.0f} % after the most passes: {}; 'iosig storage show' has the intervals",
                     printable(path), 100 * settled_share, fmt::join(keys, " "));
}

std::string real_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  std::string resolved = real == nullptr ? path : real;
  std::free(real);
  return resolved;
}

/// Identifies the directory at `path`, to detect that it was replaced or removed.
using Place = std::pair<dev_t, ino_t>;
std::optional<Place> place_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Place{status.st_dev, status.st_ino};
}

struct Measured {
  Found found;
  Measurement measurement;
  SeenActivity activity;
};

/// Returns whether the file system may store data in other blocks than it reports.
bool hides_block_size(const Found& found) {
  return found.device.kind == DeviceKind::composite || found.device.kind == DeviceKind::network ||
         found.mount.filesystem.starts_with("fuse");
}

/// Measures `found` and fails if its directory was replaced meanwhile: an open file outlives its directory and even its
/// mount.
Result<Measured> measure_in_place(Found found, const MeasureLimits& limits, const MeasureProgress& progress) {
  constexpr std::chrono::milliseconds pause{40};
  MountPoint& mount = found.mount;
  const auto before = place_at(mount.path);
  if (hides_block_size(found)) {
    const auto block_bytes = measure_block_bytes(mount.path, mount.block_bytes, limits, progress);
    if (!block_bytes) return pass_on(block_bytes.error());
    if (*block_bytes != mount.block_bytes) set_origin(mount.provenance, "block_size", Origin::measured);
    mount.block_bytes = *block_bytes;
  }
  Activity activity(watched_device(found.device, found.members));
  auto measured = measure(mount.path, mount.block_bytes, limits, progress, [&] { watch(activity, pause); });
  if (!measured) return pass_on(measured.error());
  if (place_at(mount.path) != before)
    return fail(ErrorKind::system, "'{}' was removed or unmounted while it was measured", printable(mount.path));
  SeenActivity seen = seen_by(activity, found.device);
  return Measured{std::move(found), *std::move(measured), std::move(seen)};
}

/// Returns the directory as an absolute path without "." and "..", also if it does not exist.
std::string absolute_path(const std::string& directory) {
  std::error_code failure;
  const auto path = std::filesystem::absolute(directory, failure);
  return std::string(without_trailing_slashes(failure ? directory : path.lexically_normal().string()));
}

/// Keeps only the parts of `discovery` that the user named, each once.
Result<void> keep_only(const std::vector<std::string>& directories, Discovery& discovery) {
  std::vector<Found> kept;
  for (const std::string& directory : directories) {
    const auto skipped_at = [&](const std::string& path) {
      return std::ranges::find(discovery.skipped, path, &Skipped::path);
    };
    const auto refuse = [&](std::string_view reason) {
      return fail(ErrorKind::infeasible,
                  "'{}' is not a destination: it {}; `iosig storage probe` without --mount shows all",
                  printable(directory), reason);
    };
    // Do not touch a mount that is known not to respond.
    const std::string bare(without_trailing_slashes(directory));
    if (const auto skipped = skipped_at(bare); skipped != discovery.skipped.end()) return refuse(skipped->reason);
    const std::string path = real_path(directory);
    const auto found = std::ranges::find(discovery.found, path, [](const Found& each) { return each.mount.path; });
    if (found != discovery.found.end()) {
      if (std::ranges::find(kept, path, [](const Found& each) { return each.mount.path; }) == kept.end())
        kept.push_back(*found);
      continue;
    }
    if (!place_at(path))
      return fail(ErrorKind::infeasible, "'{}' is not a destination: {}", printable(directory),
                  errno == ENOENT ? "it does not exist" : std::strerror(errno));
    if (const auto sound = check_directory(path); !sound)
      return fail(ErrorKind::infeasible, "'{}' is not a destination: {}", printable(directory), sound.error().message);
    const auto skipped = skipped_at(path);
    return refuse(skipped != discovery.skipped.end() ? skipped->reason
                                                     : "has no directory there in which you can create files");
  }
  discovery.found = std::move(kept);
  discovery.skipped.clear();
  return {};
}

/// Skips what may not be measured; fails if the user named it.
Result<void> skip_refused(const ProbeOptions& options, Discovery& discovery) {
  std::vector<Found> kept;
  for (Found& each : discovery.found) {
    std::string reason = options.refusal(each.mount.path);
    if (!reason.empty() && !options.only.empty())
      return fail(ErrorKind::infeasible, "'{}' is not a destination: it {}", printable(each.mount.path), reason);
    if (reason.empty())
      kept.push_back(std::move(each));
    else
      discovery.skipped.push_back({each.mount.path, std::move(reason)});
  }
  discovery.found = std::move(kept);
  return {};
}

/// Returns whether this machine is a guest that returns free memory to its host (free page reporting; enabled if the
/// order is one of the kernel's free lists). Writes to new files then wait for the host again and again.
bool returns_free_memory() {
  constexpr int orders = 11;
  const auto text = read_file("/sys/module/page_reporting/parameters/page_reporting_order");
  int order = -1;
  return text && std::from_chars(text->data(), text->data() + text->size(), order).ec == std::errc() && order >= 0 &&
         order < orders;
}

/// Sets `member` of each of `alike` to the median over all, with the widest interval.
void pool(const std::vector<Measurement*>& alike, Estimate Measurement::*member) {
  std::vector<Estimate> each;
  for (const Measurement* measurement : alike) each.push_back(measurement->*member);
  std::ranges::sort(each, {}, &Estimate::mean);
  Estimate pooled = each[each.size() / 2];
  pooled.low = std::ranges::min(each, {}, &Estimate::low).low;
  pooled.high = std::ranges::max(each, {}, &Estimate::high).high;
  pooled.settled = std::ranges::all_of(each, &Estimate::settled);
  for (Measurement* measurement : alike) measurement->*member = pooled;
}

/// Pools the times of copies into the page cache: they depend on this machine's memory and the type of file system, so
/// all disks with one type count as one measurement. Network and FUSE file systems copy further and are excluded. With
/// `capped`, none is faster than a copy into a tmpfs, which takes single pages: large pages are those that the host has
/// taken back, and the few that a probe fills do not show that.
void pool_copies(std::vector<Measured>& measured, bool capped) {
  const auto by_mean = [](const Estimate& a, const Estimate& b) { return a.mean < b.mean; };
  std::map<std::string, std::vector<Measurement*>> copies;
  Estimate memory_bytes_per_s;
  for (auto& [found, measurement, activity] : measured) {
    if (found.device.kind == DeviceKind::ram)
      memory_bytes_per_s = std::max(memory_bytes_per_s, measurement.buffered_write_bytes_per_s, by_mean);
    else if (found.device.kind != DeviceKind::network && !found.mount.filesystem.starts_with("fuse"))
      copies[found.mount.filesystem].push_back(&measurement);
  }
  for (auto& [filesystem, alike] : copies) {
    for (const auto member :
         {&Measurement::buffered_write_bytes_per_s, &Measurement::buffered_write_latency_s,
          &Measurement::buffered_small_write_latency_s, &Measurement::buffered_random_write_latency_s,
          &Measurement::cached_write_bytes_per_s, &Measurement::cached_write_latency_s,
          &Measurement::cached_read_bytes_per_s, &Measurement::cached_read_latency_s})
      pool(alike, member);
    if (!capped || memory_bytes_per_s.mean == 0) continue;
    for (Measurement* measurement : alike) {
      Estimate& copied = measurement->buffered_write_bytes_per_s;
      copied = std::min(copied, memory_bytes_per_s, by_mean);
    }
  }
}

}  // namespace

Result<Probe> probe_storage(const ProbeOptions& options, const MeasureProgress& progress) {
  std::vector<std::string> only;
  for (const std::string& directory : options.only) only.push_back(absolute_path(directory));
  std::vector<std::string> preferred = only;
  preferred.insert(preferred.end(), options.directories.begin(), options.directories.end());
  auto discovery = discover(preferred);
  if (!discovery) return pass_on(discovery.error());
  if (!only.empty())
    if (const auto kept = keep_only(only, *discovery); !kept) return pass_on(kept.error());

  if (options.refusal)
    if (const auto skipped = skip_refused(options, *discovery); !skipped) return pass_on(skipped.error());
  if (options.first_look)
    if (const auto quiet = options.first_look(first_look(discovery->found)); !quiet) return pass_on(quiet.error());

  Probe probe;
  std::vector<Measured> measured;
  for (Found& found : discovery->found) {
    const std::string path = found.mount.path;
    auto done = measure_in_place(std::move(found), options.limits, [&](std::string_view what) {
      progress(fmt::format("{}: {}", printable(path), what));
    });
    if (!done) {
      discovery->skipped.push_back({path, done.error().message});
      continue;
    }
    if (!done->found.remark.empty()) probe.notes.push_back(done->found.remark);
    if (!done->measurement.direct_reads)
      probe.notes.push_back(
          fmt::format("{}: {} refuses O_DIRECT; reads were measured after asking the kernel to drop "
                      "the file from its cache",
                      printable(path), done->found.mount.filesystem));
    measured.push_back(*std::move(done));
  }
  const bool capped = returns_free_memory();
  if (capped)
    probe.notes.push_back(
        "this machine returns free memory to its host (free page reporting): what goes to the page cache may take "
        "several times as long as measured, by whether its pages are new");
  pool_copies(measured, capped);
  std::vector<Found> described;
  for (Measured& each : measured) {
    const std::string& path = each.found.mount.path;
    apply(each.measurement, each.found.mount.block_bytes, each.found);
    for (std::string note :
         {record_activity(each.activity, path, each.found.device), unsettled_note(path, each.found.device)})
      if (!note.empty()) probe.notes.push_back(std::move(note));
    probe.activity.push_back(std::move(each.activity));
    described.push_back(std::move(each.found));
  }
  probe.storage = storage_of(std::move(described));
  probe.skipped = std::move(discovery->skipped);
  return probe;
}

}  // namespace iosig
