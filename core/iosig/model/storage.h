// The storage description: a machine's mount points and devices, and the servers that files are striped over.
//
// Plain data, no I/O. The file format is format/storage_toml; storage/ probes the machine.
// Source: IOSIG paper, section 4 and Fig. 4; of servers and network: H2DP paper, Table 1. Units are in the names:
// bytes, seconds, bytes per second.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

enum class DeviceKind { ram, nvram, ssd, hdd, network, composite };

/// How a composite protects data. raid1 replicates over its members, raid5 and raid6 are MDS codes with one and two
/// parities, raid10 stripes over mirrored pairs, stripe (raid0) has no redundancy, lrc is a local reconstruction code.
enum class RedundancyScheme { mds, replica, stripe, raid1, raid5, raid6, raid10, lrc };

struct Redundancy {
  RedundancyScheme scheme = RedundancyScheme::stripe;
  std::uint32_t data = 0, parity = 0;  ///< 0: follows from the scheme and the number of members; lrc: global parities
  std::uint32_t local_groups = 0;      ///< of lrc: groups of data with one local parity each
  std::vector<std::string> members;    ///< devices by name; may be empty if data and parity give their number

  bool operator==(const Redundancy&) const = default;
};

/// The resolved form of a redundancy: `groups` equal codes, each of `data` + `parity` devices. A local reconstruction
/// code is a single one; its `local_groups` > 0 groups share the data, and each has a local parity in addition. Order
/// of members: code by code; in an lrc, each local group with its parity, then the global parities.
struct Code {
  std::uint32_t data = 1, parity = 0, groups = 1, local_groups = 0;
};
/// Fails with `bad_input` for impossible structures: too few members, parity that does not fit the scheme, data that
/// cannot be divided among the local groups, ...
[[nodiscard]] Result<Code> code_of(const Redundancy& redundancy);

/// The origin of a value. `probed_text` and the spread exist if the probe found one, even if a manual value takes
/// precedence.
/// `administrator`: a limit of the machine's description, whatever the user's says.
enum class Origin { config, measured, inspected, computed, assumed, administrator };
struct Provenance {
  Origin origin = Origin::config;
  std::string probed_text;                        ///< value of the last probe as TOML text; empty: none
  Origin probed_origin = Origin::measured;        ///< measured or inspected: the probe's method
  std::string probed_low_text, probed_high_text;  ///< 95 % confidence interval of the measurement, or empty
  bool probed_settled = true;                     ///< false: the probe gave up before the interval lay within ±5 %

  bool operator==(const Provenance&) const = default;
};
/// By key of the storage file (`read_bandwidth`). A missing key has its default: Origin::assumed.
using Provenances = std::map<std::string, Provenance, std::less<>>;

struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::hdd;
  std::string path;       ///< below /dev, or a server; may be empty
  std::string transport;  ///< nvme, sata, virtio, ...; may be empty
  std::optional<std::uint64_t> capacity_bytes;
  std::optional<bool> rotational;
  double read_bytes_per_s = 0, write_bytes_per_s = 0;
  double operation_latency_s = 0;                  ///< of one synchronised write; of a read too unless given below
  std::optional<double> read_operation_latency_s;  ///< ours: a read that misses the cache is often much faster
  double seek_latency_s = 0;                       ///< paid by random access, on devices that seek
  // Ours: what Eq. 3 lacks for devices behind a page cache. Absent: predicted from the values above.
  std::optional<double> random_write_latency_s;  ///< of one synchronised overwrite anywhere in a file, seek included
  std::optional<double> random_new_write_latency_s;  ///< the same where the file has no block yet
  std::optional<double> random_read_latency_s;       ///< of one read anywhere that misses the cache, seek included
  /// Of a flush (fdatasync) of new data that the page cache holds, written in order.
  std::optional<double> drain_latency_s, drain_bytes_per_s;
  std::optional<double> random_drain_bytes_per_s;  ///< of storing random overwrites from the page cache
  std::optional<double> rewrite_latency_s;         ///< of reading a block that is overwritten in part, seek included
  std::optional<double> buffered_write_latency_s, buffered_write_bytes_per_s;  ///< appending to the page cache
  std::optional<double> buffered_random_write_latency_s;                       ///< of an overwrite anywhere there
  std::optional<double> buffered_small_write_latency_s;                        ///< of an append to an existing block
  std::optional<double> buffered_read_latency_s, buffered_read_bytes_per_s;    ///< sequential, with read-ahead
  std::optional<double> cached_write_latency_s, cached_write_bytes_per_s;      ///< overwriting what the cache holds
  std::optional<double> cached_read_latency_s, cached_read_bytes_per_s;        ///< reading it
  std::optional<double> max_iops;                                              ///< absent: unlimited
  /// Share of the processors' or of the device's time that other programs used during the probe. Absent: unknown, and
  /// counts as quiet. No prediction uses it.
  std::optional<double> busy_share;
  std::optional<double> mttf_s, bit_error_rate;
  std::uint32_t sector_bits = 0, ecc_bits = 0;
  double mttr_s = 0;
  /// Power drawn without and with an access in flight, in watts. Absent: unknown. The reader ensures idle <= active.
  std::optional<double> idle_power_w, active_power_w;
  std::optional<Redundancy> redundancy;
  Provenances provenance;

  bool operator==(const Device&) const = default;
};

struct MountPoint {
  std::string path;  ///< files are stored below this path
  std::string device;
  std::string filesystem;
  std::uint64_t block_bytes = 0;
  std::optional<std::uint64_t> free_bytes;  ///< set manually, or from statvfs when the description was loaded
  bool is_free_by_quota = false;            ///< a quota leaves less than the file system has; never in the file
  std::uint64_t reserved_bytes = 0;         ///< of those, reserved for running streams; never in the file
  std::optional<std::uint64_t> max_file_bytes;
  Visibility visibility = Visibility::local;
  bool persistent = true;
  bool follows_links = true;  ///< a symbolic link on it may lead to other storage (sshfs, nosymfollow, FAT: false)
  bool archive = false, tamperproof = false;
  bool forbidden = false;            ///< IOSIG places no data here; programs' own files stay
  std::optional<double> max_share;   ///< of the file system's total room: may be in use after a stream was placed
  std::uint64_t withheld_bytes = 0;  ///< of `free_bytes`, what max_share leaves to others; never in the file
  Provenances provenance;

  bool operator==(const MountPoint&) const = default;
};

/// Returns whether the user set `free_bytes` in the file: then it is what a stream may use, and nobody is asked.
[[nodiscard]] bool is_free_space_set(const MountPoint& mount);

/// Returns the free bytes that `max_share` leaves to streams, reserved ones included.
[[nodiscard]] std::uint64_t allowed_bytes(const MountPoint& mount);

/// A place for stripes of files: a server of a parallel file system, or a mount point. Absent values are
/// derived from the device (model/described_servers.h).
struct Server {
  std::string name;
  std::string server_class;  ///< servers of a class count as equal; for plans
  std::string mount_point;   ///< a described one, by path; or ""
  std::string device;        ///< a described one, by name; "": that of the mount point, if there is one
  std::string target;        ///< its name in the parallel file system (an OST, a datafile server); or ""
  std::optional<double> read_startup_s, write_startup_s;  ///< of one request anywhere, seek included
  std::optional<double> read_bytes_per_s, write_bytes_per_s;
  std::optional<std::uint64_t> capacity_bytes;  ///< for planned files
  Provenances provenance;

  bool operator==(const Server&) const = default;
};

/// Between clients and servers.
struct Network {
  double startup_s = 1e-4;                 ///< of one connection or request and its answer
  double bytes_per_s = 117.0 * (1 << 20);  ///< of each link: 117 MB/s is what gigabit Ethernet carries
  Provenances provenance;

  bool operator==(const Network&) const = default;
};

/// Invariant, ensured by the reader: names and paths are unique, each `device`, `mount_point` and member exists, no
/// composite contains itself, every number is finite and in range, each server has or inherits all its times.
struct Storage {
  std::optional<Policy> policy;  ///< of decisions by this description; absent: Policy::job
  std::vector<MountPoint> mount_points;
  std::vector<Device> devices;
  std::vector<Server> servers;     ///< may be empty: the machine has none that files are striped over
  std::optional<Network> network;  ///< to the servers

  [[nodiscard]] const Device* find_device(std::string_view name) const;
  [[nodiscard]] const MountPoint* find_mount_point(std::string_view path) const;
  [[nodiscard]] const Server* find_server(std::string_view name) const;
  /// The device behind a server: its own, or that of its mount point; nullptr: none is described.
  [[nodiscard]] const Device* device_of(const Server& server) const;
};

/// Returns a device of `kind` with conservative values, used where neither the file nor a probe has one. Reliability
/// stays unknown.
[[nodiscard]] Device assumed_device(DeviceKind kind);
inline constexpr std::uint64_t assumed_block_bytes = 4096;

}  // namespace iosig
