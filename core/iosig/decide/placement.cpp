#include "iosig/decide/placement.h"

#include <algorithm>
#include <set>

#include "iosig/base/units.h"
#include "iosig/cost/job_time.h"
#include "iosig/cost/reliability.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

/// Returns the room on `mount`. At home, where the program writes without IOSIG, nothing is withheld.
std::uint64_t room_bytes(const MountPoint& mount, bool at_home) {
  const std::uint64_t free = at_home ? mount.free_bytes.value_or(0) : allowed_bytes(mount);
  return free - std::min(free, mount.reserved_bytes);
}

/// Returns the room that other streams leave at home when they have come home.
std::uint64_t room_at_home_bytes(const MountPoint& home, const Circumstances& given) {
  const std::uint64_t room = room_bytes(home, /*at_home=*/true);
  return given.policy == Policy::job ? room - std::min(room, given.coming_home_bytes) : room;
}

/// Returns ", 8 GB of them for streams that will come home"; "" if there are none.
std::string coming_home_text(const Circumstances& given) {
  if (given.policy != Policy::job || given.coming_home_bytes == 0) return {};
  return fmt::format(", {} of them for other streams that will come home",
                     about_bytes(static_cast<double>(given.coming_home_bytes)));
}

/// ext4 stops leaving data to the page cache when more than half of the free space is waiting to be stored, because it
/// must allocate blocks immediately (measured: 159 instead of 5000 MB/s).
bool overfills_cache(const Signature& wanted, const MountPoint& mount) {
  const std::uint64_t bytes = std::max(wanted.bytes_per_io.value_or(0), wanted.total_bytes.value_or(0));
  return mount.filesystem == "ext4" && mount.free_bytes && bytes > *mount.free_bytes / 2;
}

bool is_home(const MountPoint& mount, const Circumstances& given) {
  return given.home && given.home->mount_point == mount.path;
}

/// Whether the loss of power may destroy the data, or another constraint already excludes that.
bool may_be_lost(const Signature& wanted) { return wanted.lifetime.has_value() || wanted.may_be_volatile; }

/// Returns the room that the stream needs on `mount`. Without a totalsize it may grow, so another place than its own
/// must have room for the assumed one: the program would get ENOSPC there.
std::uint64_t needed_bytes(const Signature& wanted, const MountPoint& mount, const Circumstances& given) {
  if (wanted.total_bytes) return *wanted.total_bytes;
  return given.policy == Policy::job && given.home && !is_home(mount, given) ? assumed_total_bytes : 1;
}

/// Returns which parts of the free room the stream may not use: ", 3 GB of them reserved for other streams"; "" if
/// none.
std::string unusable_text(const MountPoint& mount, bool at_home) {
  std::string text;
  if (mount.reserved_bytes != 0)
    text +=
        fmt::format(", {} of them reserved for other streams", about_bytes(static_cast<double>(mount.reserved_bytes)));
  if (mount.withheld_bytes != 0 && !at_home)
    text += fmt::format(", {} of them withheld (max_share {:g})",
                        about_bytes(static_cast<double>(mount.withheld_bytes)), mount.max_share.value_or(1));
  return text;
}

/// Returns who forbids the mount point.
const char* forbidder_of(const MountPoint& mount) {
  const auto known = mount.provenance.find("forbidden");
  const bool is_limit = known != mount.provenance.end() && known->second.origin == Origin::administrator;
  return is_limit ? "the administrator" : "the storage description";
}

/// Returns every constraint of `wanted` that `mount` fails, with the numbers; empty: admissible. `mttdl`: of the data
/// there.
std::vector<std::string> shortfalls(const Signature& wanted, const MountPoint& mount, const Circumstances& given,
                                    const Result<double>& mttdl) {
  std::vector<std::string> reasons;
  const auto exclude = [&]<class... Args>(fmt::format_string<Args...> text, Args&&... args) {
    reasons.push_back(fmt::format(text, std::forward<Args>(args)...));
  };
  if (mount.forbidden && !is_home(mount, given)) exclude("forbidden by {}", forbidder_of(mount));
  if (wanted.visibility == Visibility::global && mount.visibility != Visibility::global)
    exclude("not global: only this node sees it");
  if (wanted.lifetime == Lifetime::persist && !mount.persistent) exclude("not persistent: lost with power");
  if (given.policy == Policy::job && !mount.persistent && !is_home(mount, given) && !may_be_lost(wanted))
    exclude("lost with power, and the data are declared neither temp nor volatile");
  if (given.policy == Policy::job && given.home && given.home->mount_point.empty() &&
      must_come_home(wanted, mount, given))
    exclude(
        "the storage description does not have the file system of the path, to which the data must come home; "
        "'iosig storage probe --mount' with its directory adds it, or declare the stream rest or temp");
  if (wanted.archive && !mount.archive) exclude("not labelled archive");
  if (wanted.tamperproof && !mount.tamperproof) exclude("not labelled tamperproof");

  if (!mount.free_bytes) {
    exclude("not reachable: it does not exist, is no directory, or its file system does not answer");
  } else if (const std::uint64_t needed = needed_bytes(wanted, mount, given),
             room = is_home(mount, given) ? room_at_home_bytes(mount, given) : room_bytes(mount, /*at_home=*/false);
             room < needed) {
    const std::string unusable =
        unusable_text(mount, is_home(mount, given)) + (is_home(mount, given) ? coming_home_text(given) : std::string());
    const bool is_memory = is_volatile_filesystem(mount.filesystem) && !is_free_space_set(mount);
    if (needed > 1)
      exclude("no room: totalsize {}{}, free {}{}{}", bytes_text(needed), wanted.total_bytes ? "" : " (assumed)",
              about_bytes(static_cast<double>(*mount.free_bytes)),
              mount.is_free_by_quota ? " (what a quota leaves)"
              : is_memory            ? " (at most what the job's memory leaves)"
                                     : "",
              unusable);
    else if (unusable.empty())
      exclude("no room: {}", mount.is_free_by_quota ? "a quota is used up" : "it is full");
    else
      exclude("no room: free {}{}", about_bytes(static_cast<double>(*mount.free_bytes)), unusable);
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

/// Returns why data of totalsize could not be brought home from `mount` because home is too full; else "".
std::string no_way_home(const Signature& wanted, const Storage& storage, const MountPoint& mount,
                        const Circumstances& given) {
  const MountPoint* home = given.home ? storage.find_mount_point(given.home->mount_point) : nullptr;
  if (given.policy != Policy::job || home == nullptr || !wanted.total_bytes || !must_come_home(wanted, mount, given))
    return {};
  const std::uint64_t room = room_at_home_bytes(*home, given);
  if (!home->free_bytes || room >= *wanted.total_bytes) return {};
  if (given.coming_home_bytes == 0)
    return fmt::format("the data could not come home: {} has room for {}", home->path,
                       about_bytes(static_cast<double>(room)));
  return fmt::format("the data could not come home: {} has {} free{}", home->path,
                     about_bytes(static_cast<double>(*home->free_bytes)), coming_home_text(given));
}

bool is_memory(const MountPoint& mount) { return is_volatile_filesystem(mount.filesystem); }

/// Returns all transfers of the stream on `mount`. Without a totalsize the page cache is taken for too small.
Transfers transfers_of(const Signature& wanted, const MountPoint& mount) {
  return {.workload = workload_of(wanted, mount),
          .data_bytes = static_cast<double>(wanted.total_bytes.value_or(assumed_total_bytes)),
          .passes = static_cast<double>(wanted.passes.value_or(1)),
          .think_s = wanted.think_s.value_or(0),
          .is_memory = is_memory(mount)};
}

/// Returns the time until the data are where they must be if they are written to `mount`, whose device is `device`.
JobTime job_time(const Signature& wanted, const Storage& storage, const MountPoint& mount, const Device& device,
                 const Circumstances& given, CostModel model) {
  PageCache cache = given.page_cache;
  if (!wanted.total_bytes) cache.unthrottled_bytes = cache.background_bytes = 0;
  const Transfers transfers = transfers_of(wanted, mount);
  const TransferTime time = predict_transfers(transfers, device, mount.block_bytes, cache, model);
  JobTime job{.transfer_s = time.transfer_s, .flush_s = wanted.lifetime == Lifetime::temp ? 0 : time.flush_s};
  const MountPoint* home = given.home ? storage.find_mount_point(given.home->mount_point) : nullptr;
  const Device* home_device = home == nullptr ? nullptr : storage.find_device(home->device);
  if (home_device == nullptr || home == &mount) return job;
  job.redirect_s = given.redirect_s;
  const bool only_reads = transfers.workload.read_share >= 1;
  if (only_reads)  // the data exist at home, and remain there
    job.stage_in_s = predict_copy_s(transfers.data_bytes, {*home_device, is_memory(*home)}, {device, is_memory(mount)});
  if (only_reads || !must_come_home(wanted, mount, given)) return job;
  job.redirect_s += given.settle_s;
  const bool cached =
      given.page_cache.cached_bytes && transfers.data_bytes <= static_cast<double>(*given.page_cache.cached_bytes);
  if (cached) job.flush_s = 0;  // the data are read from memory and deleted
  job.stage_out_s =
      predict_copy_s(transfers.data_bytes, {device, is_memory(mount), cached}, {*home_device, is_memory(*home)});
  return job;
}

/// Returns the parts of `job` beside the transfers, "" if there is none worth a word.
std::string job_reason(const JobTime& job) {
  constexpr double least_share = 0.005;
  std::string text;
  const auto part = [&](double seconds, const char* what) {
    if (seconds <= least_share * job.total_s()) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", about_seconds(seconds), what);
  };
  part(job.redirect_s, "making and settling the link");
  part(job.stage_in_s, "copying the data here first");
  part(job.transfer_s, "in the program");
  const bool has_more = job.total_s() - job.transfer_s > least_share * job.total_s();
  part(job.flush_s, "flushing");
  part(job.stage_out_s, "bringing the data home");
  return has_more ? text : "";
}

/// Returns whether later passes of the stream are so much faster than the first that the candidate's throughput, which
/// is the first one's, does not explain its time.
bool later_passes_are_faster(const Signature& wanted, const Candidate& candidate) {
  constexpr double least_share = 0.9;
  const auto passes = static_cast<double>(wanted.passes.value_or(1));
  const auto bytes = passes * static_cast<double>(wanted.total_bytes.value_or(assumed_total_bytes));
  return passes > 1 && candidate.job.transfer_s < least_share * bytes / candidate.throughput_bytes_per_s;
}

Candidate assess(const Signature& wanted, const Storage& storage, const MountPoint& mount, const Circumstances& given,
                 CostModel model) {
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
  candidate.job = job_time(wanted, storage, mount, *device, given, model);
  candidate.is_home = is_home(mount, given);
  const bool asks_reliability = wanted.mttdl_s || wanted.availability;
  const Result<double> mttdl = asks_reliability ? mttdl_of(wanted, storage, *device) : 0;
  if (asks_reliability && mttdl) candidate.mttdl_s = *mttdl;
  candidate.reasons = shortfalls(wanted, mount, given, mttdl);
  if (std::string why = no_way_home(wanted, storage, mount, given); !why.empty())
    candidate.reasons.push_back(std::move(why));
  candidate.admissible = candidate.reasons.empty();
  if (!candidate.admissible) return candidate;
  if (given.policy == Policy::job)
    if (std::string parts = job_reason(candidate.job); !parts.empty()) candidate.reasons.push_back(std::move(parts));
  if (given.policy == Policy::job && later_passes_are_faster(wanted, candidate))
    candidate.reasons.emplace_back("later passes find their data in memory");
  candidate.reasons.push_back(limit_reason(prediction, *device));
  if (wanted.synchrony == Synchrony::nosync && overfills_cache(wanted, mount))
    candidate.reasons.emplace_back("counted as sync: ext4 leaves at most half of what is free to the page cache");
  if (asks_reliability) candidate.reasons.push_back(mttdl_reason(*mttdl));
  return candidate;
}

/// Orders `candidates`: admissible ones first, then the best by `policy`.
void rank(std::vector<Candidate>& candidates, Policy policy) {
  std::ranges::stable_sort(candidates, [&](const Candidate& a, const Candidate& b) {
    if (a.admissible != b.admissible) return a.admissible;
    if (policy == Policy::job && a.job.total_s() != b.job.total_s()) return a.job.total_s() < b.job.total_s();
    if (policy == Policy::paper && a.throughput_bytes_per_s != b.throughput_bytes_per_s)
      return a.throughput_bytes_per_s > b.throughput_bytes_per_s;
    return a.stored_bytes_per_s > b.stored_bytes_per_s;
  });
}

/// Keeps the stream at home unless the best candidate saves enough of the time there, and says so.
void stay_at_home(Choice& choice, const Circumstances& given) {
  Candidate& best = choice.candidates.front();
  const auto home = std::ranges::find_if(choice.candidates, &Candidate::is_home);
  if (home == choice.candidates.end() || !home->admissible || best.is_home) return;
  if (best.job.total_s() < (1 - given.min_gain) * home->job.total_s()) return;
  best.reasons.push_back(fmt::format("saves less than {:g} % of the time at home", 100 * given.min_gain));
  std::rotate(choice.candidates.begin(), home, home + 1);
  choice.chosen = choice.candidates.front().mount_point;
}

/// Returns whether the cost distinguishes sync from nosync.
bool knows_page_cache(const Device& device) {
  return device.buffered_write_bytes_per_s || device.buffered_read_bytes_per_s;
}

}  // namespace

Workload workload_of(const Signature& wanted, const MountPoint& mount) {
  const double read_share = wanted.read_share.value_or(0);
  const double written_passes = static_cast<double>(wanted.passes.value_or(1)) * (1 - read_share);
  return {.bytes_per_io = wanted.bytes_per_io.value_or(assumed_bytes_per_io),
          .random = wanted.access == AccessOrder::random,
          .read_share = read_share,
          .sync = wanted.synchrony != Synchrony::nosync || overfills_cache(wanted, mount),
          .new_share = written_passes > 1 ? 1 / written_passes : 1};  // each byte is new once
}

bool must_come_home(const Signature& wanted, const MountPoint& mount, const Circumstances& given) {
  if (wanted.lifetime == Lifetime::temp || wanted.archive || wanted.tamperproof || is_home(mount, given)) return false;
  return wanted.residence.value_or(given.residence) == Residence::home || !mount.persistent;
}

Signature with_residence(const Signature& wanted, const MountPoint& mount, const Circumstances& given) {
  Signature recorded = wanted;
  if (must_come_home(wanted, mount, given))
    recorded.residence.reset();
  else if (wanted.lifetime != Lifetime::temp)
    recorded.residence = Residence::rest;
  return recorded;
}

Choice choose_mount_point(const Signature& wanted, const Storage& storage, const Circumstances& given,
                          CostModel model) {
  Choice choice;
  choice.policy = given.policy;
  const auto assume = [&](std::string what) { choice.assumptions.push_back(std::move(what)); };
  const bool buffers = std::ranges::any_of(storage.devices, knows_page_cache);
  if (!wanted.bytes_per_io)
    assume(fmt::format("size-per-IO({}), because none is given", bytes_text(assumed_bytes_per_io)));
  if (!wanted.access) assume("sequential, because neither random nor sequential is given");
  if (!wanted.synchrony && buffers) assume("sync, because neither sync nor nosync is given");
  if (!wanted.total_bytes && given.policy == Policy::job)
    assume(fmt::format("totalsize({}){}, because none is given", bytes_text(assumed_total_bytes),
                       wanted.synchrony == Synchrony::nosync && buffers ? ", beyond what the page cache holds" : ""));
  else if (!wanted.total_bytes && (wanted.mttdl_s || wanted.availability))
    assume(fmt::format("totalsize({}) for the reliability, because none is given", bytes_text(assumed_total_bytes)));
  if (wanted.availability && !wanted.duration_s)
    assume(fmt::format("duration({}) for the availability, because none is given", seconds_text(assumed_duration_s)));

  for (const MountPoint& mount : storage.mount_points)
    choice.candidates.push_back(assess(wanted, storage, mount, given, model));
  rank(choice.candidates, given.policy);
  if (choice.candidates.empty() || !choice.candidates.front().admissible) return choice;
  choice.chosen = choice.candidates.front().mount_point;
  if (given.policy == Policy::job) stay_at_home(choice, given);
  return choice;
}

Choice choose_mount_point(const Signature& wanted, const Storage& described, const Circumstances& given,
                          const AskRoom& ask_room, std::size_t count) {
  Storage storage = described;
  for (MountPoint& mount : storage.mount_points) mount.free_bytes = max_bytes;
  std::set<std::string> asked;
  for (;;) {
    Choice choice = choose_mount_point(wanted, storage, given);
    if (!choice.chosen) return choice;
    std::vector<std::string> matter{*choice.chosen};
    for (const Candidate& candidate : choice.candidates)
      if (matter.size() < count && candidate.admissible && candidate.mount_point != *choice.chosen)
        matter.push_back(candidate.mount_point);
    if (given.home && wanted.total_bytes && must_come_home(wanted, *storage.find_mount_point(*choice.chosen), given))
      matter.push_back(given.home->mount_point);
    bool is_known = true;
    for (MountPoint& mount : storage.mount_points) {
      if (std::ranges::find(matter, mount.path) == matter.end() || !asked.insert(mount.path).second) continue;
      is_known = false;
      mount.free_bytes = described.find_mount_point(mount.path)->free_bytes;
      ask_room(mount);
    }
    if (is_known) return choice;
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

std::string room_warning(const Signature& wanted, const Storage& storage, const Circumstances& given,
                         const Choice& choice) {
  const MountPoint* there = choice.chosen ? storage.find_mount_point(*choice.chosen) : nullptr;
  if (wanted.total_bytes || there == nullptr || is_home(*there, given)) return {};
  const std::uint64_t room = room_bytes(*there, /*at_home=*/false);
  const auto warn = [&](std::string_view other, std::uint64_t room_there) {
    if (room >= room_there) return std::string();
    return fmt::format(
        "no totalsize is given: beyond {} the program gets 'no space left on device' on {}, although {} {}",
        about_bytes(static_cast<double>(room)), there->path, other, about_bytes(static_cast<double>(room_there)));
  };
  if (given.home) {
    const MountPoint* home = storage.find_mount_point(given.home->mount_point);
    return home == nullptr ? "" : warn("its own place has", room_bytes(*home, /*at_home=*/true));
  }
  const MountPoint* roomiest = there;
  for (const MountPoint& mount : storage.mount_points)
    if (mount.free_bytes != max_bytes && room_bytes(mount, true) > room_bytes(*roomiest, true)) roomiest = &mount;
  if (roomiest == there) return {};
  return warn(fmt::format("{} has", roomiest->path), room_bytes(*roomiest, /*at_home=*/true));
}

void explain_break_even(const Signature& wanted, const Storage& storage, const Circumstances& given, Choice& choice) {
  if (given.policy != Policy::job || !choice.chosen || !choice.candidates.front().is_home) return;
  /// Whether the stream would leave home for this mount point, if it were the only other one.
  const auto wins = [&](const Signature& changed, const MountPoint& mount) {
    const auto home = assess(changed, storage, *storage.find_mount_point(*choice.chosen), given, CostModel::mixed);
    const auto there = assess(changed, storage, mount, given, CostModel::mixed);
    return there.admissible && there.job.total_s() < (1 - given.min_gain) * home.job.total_s();
  };
  for (const MountPoint& mount : storage.mount_points) {
    if (mount.path == *choice.chosen) continue;
    BreakEven found{.mount_point = mount.path};
    Signature changed = wanted;
    const auto wins_from = [&](std::uint64_t passes) {
      changed.passes = passes;
      return wins(changed, mount);
    };
    if (wins_from(max_break_even_passes)) {
      std::uint64_t low = wanted.passes.value_or(1), high = max_break_even_passes;  // loses with low, wins with high
      while (high > low + 1) (wins_from((low + high) / 2) ? high : low) = (low + high) / 2;
      found.passes = high;
    }
    changed = wanted;
    changed.lifetime = Lifetime::temp;
    found.as_temp = wanted.lifetime != Lifetime::temp && wins(changed, mount);
    if (found.passes || found.as_temp) choice.break_even.push_back(std::move(found));
  }
}

}  // namespace iosig
