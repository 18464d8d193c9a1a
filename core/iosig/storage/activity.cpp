#include "iosig/storage/activity.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

std::optional<std::uint64_t> count_at(const std::vector<std::string_view>& words, std::size_t index) {
  return index < words.size() ? parse_count<std::uint64_t>(words[index]) : std::nullopt;
}

/// Adds the line "cpuN user nice system idle iowait irq softirq steal ..." of one processor.
void add_processor(const std::vector<std::string_view>& words, ActivityCounters& counters) {
  constexpr std::size_t idle = 4, waiting = 5, last = 8;  // guests' time is part of the users'
  std::uint64_t busy = 0, all = 0;
  for (std::size_t i = 1; i <= std::min(last, words.size() - 1); ++i) {
    const auto ticks = count_at(words, i);
    if (!ticks) return;
    all += *ticks;
    if (i != idle && i != waiting) busy += *ticks;
  }
  counters.busy_ticks = counters.busy_ticks.value_or(0) + busy;
  counters.ticks = counters.ticks.value_or(0) + all;
}

/// Returns the processors that this process may use; none: unknown.
std::vector<unsigned> usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> usable;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return usable;  // more processors than the set can hold
  for (unsigned i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) usable.push_back(i);
  return usable;
}

std::string file_text(const std::string& path) {
  auto text = read_file(path);
  return text ? *std::move(text) : std::string{};
}

/// Returns the whole disk of a block device.
DeviceNumber disk_of(dev_t number) {
  const DeviceNumber own{::major(number), ::minor(number)};
  std::error_code failure;
  const auto directory = std::filesystem::canonical(fmt::format("/sys/dev/block/{}:{}", own.major, own.minor), failure);
  if (failure || !std::filesystem::exists(directory / "partition", failure)) return own;
  const std::string text = file_text((directory.parent_path() / "dev").string());
  const auto parts = split(trimmed(text), ':');
  if (parts.size() != 2) return own;
  const auto major = parse_count<unsigned>(parts[0]), minor = parse_count<unsigned>(parts[1]);
  return major && minor ? DeviceNumber{*major, *minor} : own;
}

std::uint64_t increase(std::uint64_t from, std::uint64_t to) { return to - std::min(from, to); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace

ActivityCounters parse_counters(std::string_view stat, std::string_view diskstats, std::string_view pressure,
                                const std::vector<unsigned>& processors) {
  ActivityCounters counters;
  for (const std::string_view line : split(stat, '\n')) {
    constexpr std::string_view processor = "cpu";
    if (!line.starts_with(processor)) continue;
    const auto words = words_of(line);
    const auto number = parse_count<unsigned>(words.front().substr(processor.size()));
    if (number && (processors.empty() || std::ranges::find(processors, *number) != processors.end()))
      add_processor(words, counters);
  }
  for (const std::string_view line : split(diskstats, '\n')) {
    constexpr std::size_t busy_ms = 12;  // Documentation/admin-guide/iostats.rst, field 10 after the name
    const auto words = words_of(line);
    const auto major = count_at(words, 0), minor = count_at(words, 1), spent = count_at(words, busy_ms);
    if (major && minor && spent)
      counters.device_ms[{static_cast<unsigned>(*major), static_cast<unsigned>(*minor)}] = *spent;
  }
  for (const std::string_view line : split(pressure, '\n')) {
    constexpr std::string_view key = "total=";
    const auto at = line.find(key);
    if (line.starts_with("some ") && at != line.npos)
      counters.stalled_us = parse_count<std::uint64_t>(trimmed(line.substr(at + key.size())));
  }
  return counters;
}

ActivityCounters read_counters(const std::string& root) {
  auto counters = parse_counters(file_text(root + "/proc/stat"), file_text(root + "/proc/diskstats"),
                                 file_text(root + "/proc/pressure/io"), usable_processors());
  counters.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return counters;
}

WatchedDevice watched_device(const Device& device, const std::vector<Device>& members) {
  WatchedDevice watched{.disks = {}, .is_memory = device.kind == DeviceKind::ram && device.path.empty()};
  const auto add = [&](const Device& each) {
    struct stat status {};
    if (!each.path.starts_with("/dev/") || ::stat(each.path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) return;
    const DeviceNumber disk = disk_of(status.st_rdev);
    if (std::ranges::find(watched.disks, disk) == watched.disks.end()) watched.disks.push_back(disk);
  };
  add(device);
  std::ranges::for_each(members, add);
  return watched;
}

void Activity::add(const ActivityCounters& begin, const ActivityCounters& end) {
  if (begin.ticks && end.ticks && begin.busy_ticks && end.busy_ticks) {
    ticks_ += increase(*begin.ticks, *end.ticks);
    busy_ticks_ += increase(*begin.busy_ticks, *end.busy_ticks);
  }
  const double paused_s = end.at_s - begin.at_s;
  if (!(paused_s > 0)) return;
  constexpr double milli = 1e-3, micro = 1e-6;
  watched_s_ += paused_s;
  for (const DeviceNumber& disk : device_.disks) {
    const auto before = begin.device_ms.find(disk), after = end.device_ms.find(disk);
    if (before == begin.device_ms.end() || after == end.device_ms.end()) continue;
    device_s_[disk] += std::min(paused_s, milli * static_cast<double>(increase(before->second, after->second)));
  }
  if (begin.stalled_us && end.stalled_us)
    stalled_s_ = stalled_s_.value_or(0) +
                 std::min(paused_s, micro * static_cast<double>(increase(*begin.stalled_us, *end.stalled_us)));
}

std::optional<double> Activity::processor_share() const {
  if (ticks_ == 0) return std::nullopt;
  return static_cast<double>(busy_ticks_) / static_cast<double>(ticks_);
}

std::optional<double> Activity::device_share() const {
  if (device_.is_memory || watched_s_ == 0) return std::nullopt;
  if (device_s_.empty()) return stalled_s_ ? std::optional(*stalled_s_ / watched_s_) : std::nullopt;
  double busiest_s = 0;
  for (const auto& [disk, busy_s] : device_s_) busiest_s = std::max(busiest_s, busy_s);
  return busiest_s / watched_s_;
}

std::optional<double> Activity::busy_share() const {
  const auto processors = processor_share(), device = device_share();
  if (!processors || !device) return processors ? processors : device;
  return std::max(*processors, *device);
}

std::string Activity::text() const {
  const auto processors = processor_share(), device = device_share();
  std::string text;
  if (processors) text = fmt::format("other programs used {} of the processors' time", percent(*processors));
  if (device)
    text += device_s_.empty() ? fmt::format("{}waited for I/O {} of the time", text.empty() ? "programs " : ", and ",
                                            percent(*device))
                              : fmt::format("{}{} of the device's time",
                                            text.empty() ? "other programs used " : " and ", percent(*device));
  return text;
}

bool is_worth_keeping(const Device& device) {
  const auto is_measured = [](const auto& entry) {
    const auto& [key, known] = entry;
    const bool from_probe =
        known.origin == Origin::measured || (!known.probed_text.empty() && known.probed_origin == Origin::measured);
    return from_probe && key != "kind" && key != "busy_share";
  };
  return device.busy_share.value_or(0) < busy_share_limit && std::ranges::any_of(device.provenance, is_measured);
}

Result<void> may_overwrite(const Storage& current, const std::vector<SeenActivity>& seen) {
  std::string busy;
  for (const SeenActivity& each : seen) {
    const Device* known = current.find_device(each.device);
    if (each.busy_share.value_or(0) < busy_share_limit || known == nullptr || !is_worth_keeping(*known)) continue;
    busy += fmt::format("\n  {}: {}", printable(each.device), each.text);
  }
  if (busy.empty()) return {};
  return fail(ErrorKind::infeasible,
              "the machine is busy, so a probe would replace a description that was measured while it was quieter:{}\n"
              "nothing was written; probe again when other programs use less than {} of the processors and of the "
              "device, write another file with --output, or overwrite it with --force",
              busy, percent(busy_share_limit));
}

}  // namespace iosig
