// Inspects the device below a mount in sysfs, without measuring.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/confidence.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

struct Hardware {
  Device device;             ///< assumed speeds of its kind; inspected values have Origin::inspected
  bool kind_is_sure = true;  ///< false: ssd or hdd is a conservative guess, to be decided by measurement
  bool is_volatile = false;  ///< lost on power failure whatever the file system (zram, a loop device on tmpfs)
};

/// Inspects the device below `mount`, one of `mounts`, as if it were simple (storage/composite resolves its members).
/// `sysfs` is "/sys" except in tests.
///
/// A partition has the properties of its disk. A rotational disk is in doubt unless it is connected by SATA or SAS:
/// virtual disks and USB sticks also claim to rotate. The device of a network file system is its server; that of an
/// overlay is the device of its upper directory, if visible from here. The name is the device's own ("sda1", "vg-home",
/// the server, otherwise the last component of the path); only names of block devices are unique per machine.
[[nodiscard]] Hardware inspect_hardware(const Mount& mount, const std::vector<Mount>& mounts,
                                        const std::string& sysfs = "/sys");

/// Inspects the block device with the sysfs directory `directory`; `mounts` locate the file of a loop device.
[[nodiscard]] Hardware inspect_block_device(const std::filesystem::path& directory, const std::vector<Mount>& mounts);

/// Returns the sysfs directory of the block device that `mount` names, by number or by source; nothing if it has none.
[[nodiscard]] std::optional<std::filesystem::path> block_directory(const Mount& mount, const std::string& sysfs);

/// Returns the mount that stores `mount`'s files: another one if it is an overlay and its upper directory is visible.
[[nodiscard]] const Mount& carrier_of(const Mount& mount, const std::vector<Mount>& mounts);

/// Returns the content of a sysfs file without surrounding white space, or nothing; and as a number.
[[nodiscard]] std::optional<std::string> read_word(const std::filesystem::path& file);
[[nodiscard]] std::optional<std::uint64_t> read_count(const std::filesystem::path& file);

/// Gives `device` the assumed speeds of `kind`; keeps what was found about the hardware itself.
void set_kind(Device& device, DeviceKind kind);

/// Marks `key` as found by a probe, with the given origin.
void set_origin(Provenances& provenance, std::string_view key, Origin origin);

/// Sets a measured value of a device or a network, and notes under `key` the ends of its interval and whether it
/// settled.
template <class Holder, class Member, class Round, class Text>
void set_measured(Holder& holder, Member Holder::*member, std::string_view key, const Estimate& estimate, Round round,
                  Text text) {
  holder.*member = round(estimate.mean);
  set_origin(holder.provenance, key, Origin::measured);
  Provenance& provenance = holder.provenance.find(key)->second;
  provenance.probed_low_text = text(round(estimate.low));
  provenance.probed_high_text = text(round(estimate.high));
  provenance.probed_settled = estimate.settled;
}

/// Return a measured value with three significant digits, since more would be noise. Rates and times: in the unit that
/// keeps their text short.
[[nodiscard]] double rounded(double value);
[[nodiscard]] double rounded_rate(double bytes_per_s);
[[nodiscard]] double rounded_seconds(double seconds);

}  // namespace iosig
