#include "iosig/cost/job_time.h"

#include <algorithm>
#include <limits>

namespace iosig {
namespace {

/// A copy into the page cache costs this much less than storing the data, or there is no cache to speak of: FUSE file
/// systems without write-back pass every write on.
constexpr double least_cache_gain = 1.25;

/// Operations that finalize waits for beside the flush of the copy: it flushes the directory at home twice. A directory
/// is stored by the file system's journal alone, in half the time of an operation with data (measured on a disk).
constexpr double waits_per_copy = 1;

double bytes_per_s_of(Workload workload, double read_share, const Device& device, std::uint64_t block_bytes,
                      CostModel model) {
  workload.read_share = read_share;
  return predict(workload, device, block_bytes, model).throughput_bytes_per_s;
}

/// Returns the rate of a copy between the program and the page cache.
double memory_bytes_per_s(const Workload& workload, const Device& device, std::uint64_t block_bytes) {
  return bytes_per_s_of({.bytes_per_io = workload.bytes_per_io, .sync = false}, 0, device, block_bytes,
                        CostModel::mixed);
}

/// Returns the rate at which the program overwrites or reads what the page cache holds; `otherwise` if the device's is
/// not known. An overwrite anywhere may cost more than the next one (btrfs reserves space for each).
double cached_bytes_per_s(const Workload& workload, bool is_write, const Device& device, double otherwise) {
  const auto& bandwidth = is_write ? device.cached_write_bytes_per_s : device.cached_read_bytes_per_s;
  if (!bandwidth) return otherwise;
  double latency_s = (is_write ? device.cached_write_latency_s : device.cached_read_latency_s).value_or(0);
  if (is_write && workload.random) latency_s = std::max(latency_s, device.buffered_random_write_latency_s.value_or(0));
  const auto bytes = static_cast<double>(workload.bytes_per_io);
  return bytes / (latency_s + bytes / *bandwidth);
}

double flush_latency_s(const Device& device) { return device.drain_latency_s.value_or(device.operation_latency_s); }

/// Returns the seconds in which the program writes `bytes`: each byte of the data once where the file has no block yet,
/// what is more over it. `is_cached`: the page cache holds what is overwritten.
double write_s(const Transfers& transfers, double bytes, bool is_cached, const Device& device,
               std::uint64_t block_bytes) {
  Workload first = transfers.workload, later = transfers.workload;
  first.new_share = 1;
  later.new_share = 0;
  const double again = std::max(0.0, bytes - transfers.data_bytes);
  const double over = bytes_per_s_of(later, 0, device, block_bytes, CostModel::mixed);
  return (bytes - again) / bytes_per_s_of(first, 0, device, block_bytes, CostModel::mixed) +
         again / (is_cached ? cached_bytes_per_s(later, true, device, over) : over);
}

}  // namespace

double drain_bytes_per_s(const Workload& workload, const Device& device, std::uint64_t block_bytes) {
  const double in_order = device.drain_bytes_per_s.value_or(device.write_bytes_per_s);
  if (!workload.random) return in_order;
  const auto block = static_cast<double>(block_bytes);
  double block_s = block / in_order;
  if (device.random_drain_bytes_per_s)
    block_s = std::max(block_s, block / *device.random_drain_bytes_per_s);
  else if (seeks(device))
    block_s += device.random_write_latency_s.value_or(device.seek_latency_s);
  else if (device.max_iops)
    block_s = std::max(block_s, 1 / *device.max_iops);
  const double latency_s = block_s - block / in_order;
  const double operation = std::max(block, static_cast<double>(workload.bytes_per_io));
  return static_cast<double>(workload.bytes_per_io) / (latency_s + operation / in_order);
}

TransferTime predict_transfers(const Transfers& transfers, const Device& device, std::uint64_t block_bytes,
                               const PageCache& cache, CostModel model) {
  const Workload& workload = transfers.workload;
  const double all_bytes = transfers.data_bytes * transfers.passes;
  const double written = all_bytes * (1 - workload.read_share), read = all_bytes * workload.read_share;
  if (transfers.is_memory && model == CostModel::mixed)
    return {write_s(transfers, written, true, device, block_bytes) +
                read / bytes_per_s_of(workload, 1, device, block_bytes, model),
            0};
  const double is_unlimited = std::numeric_limits<double>::infinity();
  const auto or_unlimited = [&](const std::optional<std::uint64_t>& bytes) {
    return bytes ? static_cast<double>(*bytes) : is_unlimited;
  };
  const bool stays_cached = transfers.data_bytes <= or_unlimited(cache.cached_bytes);
  const bool has_cache = device.buffered_write_bytes_per_s && model == CostModel::mixed;
  if (workload.sync && has_cache && device.cached_read_bytes_per_s && stays_cached && written > 0)
    return {written / bytes_per_s_of(workload, 0, device, block_bytes, model) +
                read / cached_bytes_per_s(workload, false, device, 0),
            0};
  if (workload.sync || !has_cache)
    return {all_bytes / bytes_per_s_of(workload, workload.read_share, device, block_bytes, model), 0};

  const double memory = memory_bytes_per_s(workload, device, block_bytes);
  const double cold_read =  // of what the program did not write itself, or the cache has lost
      !stays_cached ? read
      : written > 0 ? 0
                    : std::min(read, transfers.data_bytes);
  double other_s = transfers.think_s + (read - cold_read) / cached_bytes_per_s(workload, false, device, memory);
  if (cold_read > 0) other_s += cold_read / bytes_per_s_of(workload, 1, device, block_bytes, model);
  if (written == 0) return {other_s - transfers.think_s, 0};

  const double copy_s = write_s(transfers, written, stays_cached, device, block_bytes);
  const double drain = drain_bytes_per_s(workload, device, block_bytes);
  if (*device.buffered_write_bytes_per_s < least_cache_gain * device.write_bytes_per_s)
    return {other_s - transfers.think_s + copy_s, 0};

  // Pages that are overwritten before they are stored count once.
  const double unthrottled = or_unlimited(cache.unthrottled_bytes);
  const double busy_s = copy_s + other_s;
  double throttled_s = 0;
  if (transfers.data_bytes > unthrottled) throttled_s = std::max(0.0, (written - unthrottled) / drain - busy_s);
  const bool drains_early = std::min(written, transfers.data_bytes) > or_unlimited(cache.background_bytes);
  const double draining_s = std::max(0.0, busy_s + throttled_s - (drains_early ? 0 : dirty_expires_s));
  const double dirty = std::clamp(written - draining_s * drain, 0.0, transfers.data_bytes);
  Workload flushed = workload;
  flushed.random = workload.random && dirty < transfers.data_bytes;
  const double flush_s =
      dirty > 0 ? dirty / drain_bytes_per_s(flushed, device, block_bytes) + flush_latency_s(device) : 0;
  return {busy_s + throttled_s - transfers.think_s, flush_s};
}

double predict_copy_s(double bytes, const CopySource& from, const CopyTarget& to) {
  const Device& source = from.device;
  const double copy = to.device.buffered_write_bytes_per_s.value_or(to.device.write_bytes_per_s);
  const double memory = source.buffered_write_bytes_per_s.value_or(source.read_bytes_per_s);
  const double read_s = from.is_memory ? bytes / source.read_bytes_per_s
                        : from.cached  ? bytes / source.cached_read_bytes_per_s.value_or(memory)
                                       : bytes / source.buffered_read_bytes_per_s.value_or(source.read_bytes_per_s);
  const double store_s = to.is_memory ? 0 : bytes / to.device.drain_bytes_per_s.value_or(to.device.write_bytes_per_s);
  const double through_memory_s = read_s + bytes / copy;
  const bool share_a_device = from.device.name == to.device.name && !from.cached && !from.is_memory;
  const double wait_s = to.is_memory ? 0 : flush_latency_s(to.device) + waits_per_copy * to.device.operation_latency_s;
  return wait_s + (share_a_device ? through_memory_s + store_s : std::max(through_memory_s, store_s));
}

}  // namespace iosig
