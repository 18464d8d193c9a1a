#include "iosig/decide/placement.h"

#include <algorithm>
#include <set>

#include "iosig/base/units.h"
#include "iosig/cost/reliability.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

std::uint64_t room_bytes(const MountPoint& mount) {
  const std::uint64_t free = mount.free_bytes.value_or(0);
  return free - std::min(free, mount.reserved_bytes);
}

/// ext4 stops leaving data to the page cache when more than half of the free space is waiting to be stored, because it
/// must allocate blocks immediately (measured: 159 instead of 5000 MB/s).
bool overfills_cache(const Signature& wanted, const MountPoint& mount) {
  const std::uint64_t bytes = std::max(wanted.bytes_per_io.value_or(0), wanted.total_bytes.value_or(0));
  return mount.filesystem == "ext4" && mount.free_bytes && bytes > *mount.free_bytes / 2;
}

/// Returns every constraint of `wanted` that `mount` fails, with the numbers; empty: admissible. `mttdl`: of the data
/// there.
std::vector<std::string> shortfalls(const Signature& wanted, const MountPoint& mount, const Result<double>& mttdl) {
  std::vector<std::string> reasons;
  const auto exclude = [&]<class... Args>(fmt::format_string<Args...> text, Args&&... args) {
    reasons.push_back(fmt::format(text, std::forward<Args>(args)...));
  };
  if (wanted.visibility == Visibility::global && mount.visibility != Visibility::global)
    exclude("not global: only this node sees it");
  if (wanted.lifetime == Lifetime::persist && !mount.persistent) exclude("not persistent: lost with power");
  if (wanted.archive && !mount.archive) exclude("not labelled archive");
  if (wanted.tamperproof && !mount.tamperproof) exclude("not labelled tamperproof");

  if (!mount.free_bytes) {
    exclude("not reachable: it does not exist, or its file system does not answer");
  } else if (const std::uint64_t needed = wanted.total_bytes.value_or(1), room = room_bytes(mount); room < needed) {
    const std::string reserved = mount.reserved_bytes == 0
                                     ? ""
                                     : fmt::format(", {} of them reserved for other streams",
                                                   about_bytes(static_cast<double>(mount.reserved_bytes)));
    const bool is_memory = is_volatile_filesystem(mount.filesystem) && !is_free_space_set(mount);
    if (wanted.total_bytes)
      exclude("no room: totalsize {}, free {}{}{}", bytes_text(needed),
              about_bytes(static_cast<double>(*mount.free_bytes)),
              is_memory ? " (at most what the job's memory leaves)" : "", reserved);
    else
      exclude("no room: {}", reserved.empty() ? "it is full" : "what is free is reserved for other streams");
  }
  if (wanted.total_bytes && mount.max_file_bytes && *mount.max_file_bytes < *wanted.total_bytes)
    exclude("too large for one file here: totalsize {}, largest file {}", bytes_text(*wanted.total_bytes),
            bytes_text(*mount.max_file_bytes));

  if (!wanted.mttdl_s && !wanted.availability) return reasons;
  if (!mttdl) {
    exclude("not reliable: {}", mttdl.error().message);
    return reasons;
  }
  if (wanted.mttdl_s && *mttdl < *wanted.mttdl_s)
    exclude("not reliable enough: MTTDL {}, wanted {}", about_seconds(*mttdl), seconds_text(*wanted.mttdl_s));
  const double duration_s = wanted.duration_s.value_or(assumed_duration_s);
  const double loss = loss_probability(*mttdl, duration_s);
  if (wanted.availability && loss > *wanted.availability)
    exclude("not reliable enough: loss within {} has probability {:.2g}, at most {:g} is wanted",
            seconds_text(duration_s), loss, *wanted.availability);
  return reasons;
}

std::string limit_reason(const Prediction& prediction, const Device& device) {
  switch (prediction.limit) {
    case Limit::iops: return fmt::format("limited by IOPS: at most {:g} operations/s", device.max_iops.value_or(0));
    case Limit::latency:
      return fmt::format("limited by operation latency: {} per operation", about_seconds(prediction.latency_s));
    case Limit::seek:
      return fmt::format("limited by seek latency: {} per random operation", about_seconds(prediction.seek_s));
    case Limit::read_modify_write:
      return "limited by read-modify-write: size-per-IO is not a multiple of the block size";
    case Limit::bandwidth: break;
  }
  return fmt::format("limited by bandwidth: {}", about_rate(prediction.bandwidth_bytes_per_s));
}

std::string mttdl_reason(double mttdl_s) { return fmt::format("MTTDL {}", about_seconds(mttdl_s)); }

Result<double> mttdl_of(const Signature& wanted, const Storage& storage, const Device& device) {
  return mttdl_s(storage, device, wanted.total_bytes.value_or(assumed_total_bytes));
}

Candidate assess(const Signature& wanted, const Storage& storage, const MountPoint& mount, CostModel model) {
  Candidate candidate;
  candidate.mount_point = mount.path;
  const Device* device = storage.find_device(mount.device);
  if (device == nullptr) {  // impossible for a file; a caller's own Storage may lack it
    candidate.reasons.push_back(fmt::format("its device '{}' is not described", mount.device));
    return candidate;
  }
  Workload workload = workload_of(wanted, mount);
  const Prediction prediction = predict(workload, *device, mount.block_bytes, model);
  candidate.throughput_bytes_per_s = prediction.throughput_bytes_per_s;
  candidate.operation_s = prediction.operation_s;
  candidate.limit = prediction.limit;
  workload.sync = true;
  candidate.stored_bytes_per_s = predict(workload, *device, mount.block_bytes, model).throughput_bytes_per_s;
  if (wanted.total_bytes)
    candidate.total_s = static_cast<double>(*wanted.total_bytes) / prediction.throughput_bytes_per_s;
  const bool asks_reliability = wanted.mttdl_s || wanted.availability;
  const Result<double> mttdl = asks_reliability ? mttdl_of(wanted, storage, *device) : 0;
  if (asks_reliability && mttdl) candidate.mttdl_s = *mttdl;
  candidate.reasons = shortfalls(wanted, mount, mttdl);
  candidate.admissible = candidate.reasons.empty();
  if (!candidate.admissible) return candidate;
  candidate.reasons.push_back(limit_reason(prediction, *device));
  if (wanted.synchrony == Synchrony::nosync && overfills_cache(wanted, mount))
    candidate.reasons.emplace_back("counted as sync: ext4 leaves at most half of what is free to the page cache");
  if (asks_reliability) candidate.reasons.push_back(mttdl_reason(*mttdl));
  return candidate;
}

/// Returns whether the cost distinguishes sync from nosync.
bool knows_page_cache(const Device& device) {
  return device.buffered_write_bytes_per_s || device.buffered_read_bytes_per_s;
}

}  // namespace

Workload workload_of(const Signature& wanted, const MountPoint& mount) {
  return {.bytes_per_io = wanted.bytes_per_io.value_or(assumed_bytes_per_io),
          .random = wanted.access == AccessOrder::random,
          .read_share = wanted.read_share.value_or(0),
          .sync = wanted.synchrony != Synchrony::nosync || overfills_cache(wanted, mount)};
}

Choice choose_mount_point(const Signature& wanted, const Storage& storage, CostModel model) {
  Choice choice;
  if (!wanted.bytes_per_io)
    choice.assumptions.push_back(
        fmt::format("size-per-IO({}), because none is given", bytes_text(assumed_bytes_per_io)));
  if (!wanted.access) choice.assumptions.emplace_back("sequential, because neither random nor sequential is given");
  if (!wanted.synchrony && std::ranges::any_of(storage.devices, knows_page_cache))
    choice.assumptions.emplace_back("sync, because neither sync nor nosync is given");
  if ((wanted.mttdl_s || wanted.availability) && !wanted.total_bytes)
    choice.assumptions.push_back(
        fmt::format("totalsize({}) for the reliability, because none is given", bytes_text(assumed_total_bytes)));
  if (wanted.availability && !wanted.duration_s)
    choice.assumptions.push_back(
        fmt::format("duration({}) for the availability, because none is given", seconds_text(assumed_duration_s)));

  for (const MountPoint& mount : storage.mount_points)
    choice.candidates.push_back(assess(wanted, storage, mount, model));
  std::ranges::stable_sort(choice.candidates, [](const Candidate& a, const Candidate& b) {
    if (a.admissible != b.admissible) return a.admissible;
    if (a.throughput_bytes_per_s != b.throughput_bytes_per_s)
      return a.throughput_bytes_per_s > b.throughput_bytes_per_s;
    return a.stored_bytes_per_s > b.stored_bytes_per_s;
  });
  if (!choice.candidates.empty() && choice.candidates.front().admissible)
    choice.chosen = choice.candidates.front().mount_point;
  return choice;
}

Choice choose_mount_point(const Signature& wanted, const Storage& described, const AskRoom& ask_room) {
  Storage storage = described;
  for (MountPoint& mount : storage.mount_points) mount.free_bytes = max_bytes;
  std::set<std::string> asked;
  for (;;) {
    Choice choice = choose_mount_point(wanted, storage);
    if (!choice.chosen || !asked.insert(*choice.chosen).second) return choice;
    for (MountPoint& mount : storage.mount_points)
      if (mount.path == *choice.chosen) {
        mount.free_bytes = described.find_mount_point(mount.path)->free_bytes;
        ask_room(mount);
      }
  }
}

void explain_reliability(const Signature& wanted, const Storage& storage, Choice& choice) {
  for (Candidate& candidate : choice.candidates) {
    const MountPoint* mount = storage.find_mount_point(candidate.mount_point);
    const Device* device = mount == nullptr ? nullptr : storage.find_device(mount->device);
    if (device == nullptr || candidate.mttdl_s) continue;
    const auto mttdl = mttdl_of(wanted, storage, *device);
    if (!mttdl) continue;
    candidate.mttdl_s = *mttdl;
    candidate.reasons.push_back(mttdl_reason(*mttdl));
  }
}

}  // namespace iosig
