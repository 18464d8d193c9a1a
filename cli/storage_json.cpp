#include "storage_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "iosig/format/storage_toml.h"

namespace iosig::cli {

using nlohmann::ordered_json;

const char* origin_name(Origin origin) {
  switch (origin) {
    case Origin::config: return "config";
    case Origin::measured: return "measured";
    case Origin::inspected: return "inspected";
    case Origin::computed: return "computed";
    case Origin::assumed: return "default";
    case Origin::administrator: return "administrator";
  }
  return "";
}

Origin origin_of(const Provenances& provenance, std::string_view key) {
  if (const auto known = provenance.find(key); known != provenance.end()) return known->second.origin;
  // These two are read from the machine, or follow from the file system, unless the file sets them.
  return key == "free" || key == "max_file_size" ? Origin::computed : Origin::assumed;
}

/// Removes the quotes of TOML text for display.
std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

namespace {

template <class T>
ordered_json optional_json(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json origins_json(const Provenances& provenance, const std::vector<std::string_view>& keys) {
  ordered_json origins = ordered_json::object();
  for (const std::string_view key : keys) origins[std::string(key)] = origin_name(origin_of(provenance, key));
  return origins;
}

ordered_json redundancy_json(const std::optional<Redundancy>& redundancy) {
  if (!redundancy) return nullptr;
  return {{"scheme", scheme_text(redundancy->scheme)},
          {"data", redundancy->data},
          {"parity", redundancy->parity},
          {"local_groups", redundancy->local_groups},
          {"members", redundancy->members}};
}

}  // namespace

ordered_json mount_point_json(const MountPoint& mount) {
  return {{"path", mount.path},
          {"device", mount.device},
          {"filesystem", mount.filesystem},
          {"block_bytes", mount.block_bytes},
          {"free_bytes", mount.free_bytes ? ordered_json(allowed_bytes(mount)) : ordered_json(nullptr)},
          {"withheld_bytes", mount.withheld_bytes},
          {"promised_bytes", mount.reserved_bytes},
          {"max_file_bytes", optional_json(mount.max_file_bytes)},
          {"visibility", mount.visibility == Visibility::global ? "global" : "local"},
          {"persistent", mount.persistent},
          {"follows_links", mount.follows_links},
          {"archive", mount.archive},
          {"tamperproof", mount.tamperproof},
          {"forbidden", mount.forbidden},
          {"max_share", optional_json(mount.max_share)},
          {"origins", origins_json(mount.provenance, mount_point_keys())}};
}

ordered_json device_json(const Device& device) {
  return {{"name", device.name},
          {"kind", unquoted(value_text(device, "kind"))},
          {"path", device.path},
          {"transport", device.transport},
          {"capacity_bytes", optional_json(device.capacity_bytes)},
          {"rotational", optional_json(device.rotational)},
          {"read_bytes_per_s", device.read_bytes_per_s},
          {"write_bytes_per_s", device.write_bytes_per_s},
          {"operation_latency_s", device.operation_latency_s},
          {"read_operation_latency_s", device.read_operation_latency_s.value_or(device.operation_latency_s)},
          {"seek_latency_s", device.seek_latency_s},
          {"random_write_latency_s", optional_json(device.random_write_latency_s)},
          {"random_new_write_latency_s", optional_json(device.random_new_write_latency_s)},
          {"random_read_latency_s", optional_json(device.random_read_latency_s)},
          {"drain_latency_s", optional_json(device.drain_latency_s)},
          {"drain_bytes_per_s", optional_json(device.drain_bytes_per_s)},
          {"random_drain_bytes_per_s", optional_json(device.random_drain_bytes_per_s)},
          {"rewrite_latency_s", optional_json(device.rewrite_latency_s)},
          {"buffered_write_latency_s", optional_json(device.buffered_write_latency_s)},
          {"buffered_write_bytes_per_s", optional_json(device.buffered_write_bytes_per_s)},
          {"buffered_random_write_latency_s", optional_json(device.buffered_random_write_latency_s)},
          {"buffered_small_write_latency_s", optional_json(device.buffered_small_write_latency_s)},
          {"buffered_read_latency_s", optional_json(device.buffered_read_latency_s)},
          {"buffered_read_bytes_per_s", optional_json(device.buffered_read_bytes_per_s)},
          {"cached_write_latency_s", optional_json(device.cached_write_latency_s)},
          {"cached_write_bytes_per_s", optional_json(device.cached_write_bytes_per_s)},
          {"cached_read_latency_s", optional_json(device.cached_read_latency_s)},
          {"cached_read_bytes_per_s", optional_json(device.cached_read_bytes_per_s)},
          {"max_iops", optional_json(device.max_iops)},
          {"busy_share", optional_json(device.busy_share)},
          {"mttf_s", optional_json(device.mttf_s)},
          {"bit_error_rate", optional_json(device.bit_error_rate)},
          {"sector_bits", device.sector_bits},
          {"ecc_bits", device.ecc_bits},
          {"mttr_s", device.mttr_s},
          {"idle_power_w", optional_json(device.idle_power_w)},
          {"active_power_w", optional_json(device.active_power_w)},
          {"redundancy", redundancy_json(device.redundancy)},
          {"origins", origins_json(device.provenance, device_keys())}};
}

ordered_json servers_json(const Storage& storage) {
  ordered_json servers = ordered_json::array();
  for (const Server& each : storage.servers)
    servers.push_back({{"name", each.name},
                       {"class", each.server_class},
                       {"mount_point", each.mount_point},
                       {"device", each.device},
                       {"target", each.target},
                       {"read_startup_s", optional_json(each.read_startup_s)},
                       {"read_bytes_per_s", optional_json(each.read_bytes_per_s)},
                       {"write_startup_s", optional_json(each.write_startup_s)},
                       {"write_bytes_per_s", optional_json(each.write_bytes_per_s)},
                       {"capacity_bytes", optional_json(each.capacity_bytes)},
                       {"origins", origins_json(each.provenance, server_keys())}});
  return servers;
}

ordered_json network_json(const Storage& storage) {
  if (!storage.network) return nullptr;
  return {{"startup_s", storage.network->startup_s},
          {"bytes_per_s", storage.network->bytes_per_s},
          {"origins", origins_json(storage.network->provenance, network_keys())}};
}

ordered_json storage_json(const Storage& storage) {
  ordered_json mounts = ordered_json::array(), devices = ordered_json::array();
  for (const MountPoint& mount : storage.mount_points) mounts.push_back(mount_point_json(mount));
  for (const Device& device : storage.devices) devices.push_back(device_json(device));
  return {{"mount_points", std::move(mounts)},
          {"devices", std::move(devices)},
          {"servers", servers_json(storage)},
          {"network", network_json(storage)}};
}

}  // namespace iosig::cli
