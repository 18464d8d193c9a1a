// Measures how long other programs keep the processors and a device busy while a probe runs.
//
// Kernel threads do part of the probe's own I/O, and the kernel's counters cannot tell it from that of other programs.
// Therefore the counters are read in pauses, in which the probe does nothing and has no data left to store.
// read_counters() does the I/O; the rest is pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// The number of a block device, as in /proc/diskstats.
struct DeviceNumber {
  unsigned major = 0, minor = 0;
  auto operator<=>(const DeviceNumber&) const = default;  // NOLINT(modernize-use-nullptr): of the compiler's code
};

/// Counters of the kernel at one moment. Missing: /proc does not have them, or may not be read.
struct ActivityCounters {
  double at_s = 0;                                  ///< of a clock that never goes back
  std::optional<std::uint64_t> busy_ticks, ticks;   ///< of all `processors` together
  std::map<DeviceNumber, std::uint64_t> device_ms;  ///< milliseconds with requests in flight
  std::optional<std::uint64_t> stalled_us;          ///< microseconds in which a task waited for I/O (PSI)
};

/// Parses /proc/stat for the processors with these numbers (all of them if it is empty), /proc/diskstats and
/// /proc/pressure/io. A text that is empty or malformed yields nothing.
[[nodiscard]] ActivityCounters parse_counters(std::string_view stat, std::string_view diskstats,
                                              std::string_view pressure, const std::vector<unsigned>& processors);

/// Reads the counters for the processors that this process may use. `root` precedes each path, for tests.
[[nodiscard]] ActivityCounters read_counters(const std::string& root = {});

/// Which counters say how busy a device is: those of its disks or, without any in /proc/diskstats, PSI. Neither in
/// memory.
struct WatchedDevice {
  std::vector<DeviceNumber> disks;
  bool is_memory = false;
};
/// Returns the disks of `device` and `members`, by their paths below /dev; of a partition, its disk.
[[nodiscard]] WatchedDevice watched_device(const Device& device, const std::vector<Device>& members);

/// Sums of pauses.
class Activity {
 public:
  explicit Activity(WatchedDevice device) : device_(std::move(device)) {}

  /// Adds a pause, given the counters at its begin and end.
  void add(const ActivityCounters& begin, const ActivityCounters& end);

  /// The share of the processors' time that other programs used; nothing if the kernel did not say.
  [[nodiscard]] std::optional<double> processor_share() const;
  /// The share of the time in which other programs used the busiest disk, or waited for I/O.
  [[nodiscard]] std::optional<double> device_share() const;
  /// The larger of both; nothing if both are unknown.
  [[nodiscard]] std::optional<double> busy_share() const;
  /// "the processors were 85 % busy, the device 3 %", without what is unknown.
  [[nodiscard]] std::string text() const;

 private:
  WatchedDevice device_;
  std::uint64_t busy_ticks_ = 0, ticks_ = 0;
  double watched_s_ = 0;
  std::optional<double> stalled_s_;
  std::map<DeviceNumber, double> device_s_;
};

/// From this share on, other programs falsify a measurement.
inline constexpr double busy_share_limit = 0.2;

/// How busy other programs kept one device while a probe measured it.
struct SeenActivity {
  std::string device;
  std::optional<double> busy_share;  ///< absent: the kernel has no counters of this device, which counts as quiet
  std::string text;                  ///< the same in words
};

/// Returns whether `device` was measured by a probe while other programs were quiet, so that the result is worth
/// keeping. A description without a busy_share counts as quiet. Values set by hand do not count: a probe leaves them
/// alone.
[[nodiscard]] bool is_worth_keeping(const Device& device);

/// Decides whether the results of a probe may replace `current`. Pure. Fails with `infeasible` if others were busy
/// while a device was measured whose description in `current` is worth keeping; the message lists each such device,
/// what was busy and how much, and what to do.
[[nodiscard]] Result<void> may_overwrite(const Storage& current, const std::vector<SeenActivity>& seen);

}  // namespace iosig
