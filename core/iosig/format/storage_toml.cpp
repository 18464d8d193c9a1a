#include "iosig/format/storage_toml.h"

#include <map>
#include <set>
#include <unordered_map>

#include "iosig/base/units.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/storage_fields.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

using namespace storage_fields;

constexpr std::string_view storage_schema = "iosig.storage/2";
constexpr std::string_view first_storage_schema = "iosig.storage/1";  // a subset, still read

// ---- reading -------------------------------------------------------------------------------------------------------

class StorageReader {
 public:
  explicit StorageReader(std::string_view source) : source_(source) {}

  Result<Storage> read(const toml::table& root) {
    const auto* said = root["schema"].as_string();
    if (said == nullptr) return refuse(root, "expected schema = \"{}\" at the top", storage_schema);
    if (said->get() != storage_schema && said->get() != first_storage_schema)
      return refuse(*said, "this is '{}'; this iosig reads '{}' and '{}'", printable(said->get()), storage_schema,
                    first_storage_schema);
    Storage storage;
    for (const auto& [key, node] : root) {
      Result<void> read{};
      if (key == "mount_point")
        read = read_each(node, key.str(), [&](const toml::table& table) { return read_mount_point(table, storage); });
      else if (key == "device")
        read = read_each(node, key.str(), [&](const toml::table& table) { return read_device(table, storage); });
      else if (key == "server")
        read = read_each(node, key.str(), [&](const toml::table& table) { return read_server(table, storage); });
      else if (key == "network")
        read = read_network(node, storage);
      else if (key == "policy")
        read = read_policy(node, storage);
      else if (key != "schema")
        read = unknown_key(key, {{"schema", "policy", "mount_point", "device", "server", "network"}});
      if (!read) return pass_on(read.error());
    }
    if (storage.mount_points.empty() && storage.servers.empty())
      return refuse(root, "there is no [[mount_point]]; expected at least one, or a [[server]]");
    if (auto checked = check_references(storage); !checked) return pass_on(checked.error());
    if (auto checked = check_servers(storage); !checked) return pass_on(checked.error());
    for (MountPoint& mount : storage.mount_points)
      if (!mount.provenance.contains("persistent"))
        mount.persistent =
            !is_volatile_filesystem(mount.filesystem) && storage.find_device(mount.device)->kind != DeviceKind::ram;
    return storage;
  }

 private:
  template <class... Args>
  tl::unexpected<Error> refuse(const toml::node& at, fmt::format_string<Args...> text, Args&&... args) {
    return refuse_at(at.source().begin, fmt::format(text, std::forward<Args>(args)...));
  }
  tl::unexpected<Error> refuse_at(const toml::source_position& at, const std::string& message) {
    return fail(ErrorKind::bad_input, "{}:{}:{}: {}", source_, at.line, at.column, message);
  }
  Result<void> unknown_key(const toml::key& key, const std::vector<std::string_view>& known) {
    return refuse_at(key.source().begin, fmt::format("unknown key '{}'{}; known here: {}", printable(key.str()),
                                                     did_you_mean(key.str(), known), fmt::join(known, " ")));
  }

  template <class Read>
  Result<void> read_each(const toml::node& node, std::string_view name, Read read) {
    const auto* array = node.as_array();
    if (array == nullptr) return refuse(node, "'{0}' is not a list; expected [[{0}]]", name);
    for (const toml::node& entry : *array) {
      const auto* table = entry.as_table();
      if (table == nullptr) return refuse(entry, "expected a table, i.e. [[{}]]", name);
      if (auto done = read(*table); !done) return done;
    }
    return {};
  }

  /// Reads every field of `table` into `owner`, and the records of the last probe.
  template <class Owner>
  Result<void> read_fields(const toml::table& table, const std::vector<Field<Owner>>& fields, Owner& owner) {
    const auto* probed = table["probed"].as_table();
    for (const auto& [key, node] : table) {
      if (key == "probed" || key == "redundancy") {
        if (!node.is_table()) return refuse(node, "'{}' is not a table", key.str());
        if (key == "redundancy" && !std::is_same_v<Owner, Device>) return unknown_key(key, keys_of(fields));
        continue;
      }
      const auto* known = find_field(fields, key.str());
      if (known == nullptr) return unknown_key(key, keys_of(fields));
      if (auto set = known->set(owner, node); !set) return refuse(node, "{}: {}", key.str(), set.error().message);
      owner.provenance.try_emplace(std::string(key.str()), Provenance{});
    }
    if (probed == nullptr) return {};
    for (const auto& [key, node] : *probed) {
      if (key == redundancy_key && std::is_same_v<Owner, Device>) continue;  // read_redundancy_record
      const auto* known = find_field(fields, key.str());
      if (known == nullptr) return unknown_key(key, keys_of(fields));
      if (auto recorded = read_record(*known, node, owner); !recorded) return recorded;
    }
    return {};
  }

  /// Reads `{ value = ..., by = "measured", low = ..., high = ..., settled = false }`. A value that equals its record
  /// came from the probe.
  template <class Owner>
  Result<void> read_record(const Field<Owner>& known, const toml::node& node, Owner& owner) {
    const auto* record = node.as_table();
    const toml::node* value = record == nullptr ? nullptr : record->get("value");
    const toml::node* by = record == nullptr ? nullptr : record->get("by");
    if (value == nullptr || by == nullptr)
      return refuse(node, "{}: expected {{ value = ..., by = \"measured\" }}", known.key);
    Owner probed = owner;
    if (auto set = known.set(probed, *value); !set) return refuse(*value, "{}: {}", known.key, set.error().message);
    const auto origin = enum_of(*by, probed_names);
    if (!origin) return refuse(*by, "by: {}", origin.error().message);
    for (const auto& [key, entry] : *record)
      if (key != "value" && key != "by" && key != "low" && key != "high" && key != "settled")
        return unknown_key(key, {"value", "by", "low", "high", "settled"});
    const auto current = owner.provenance.find(known.key);
    if (current == owner.provenance.end()) return {};  // the value was removed manually: it has its default
    Provenance& provenance = current->second;
    provenance.probed_text = known.show(probed);
    provenance.probed_origin = *origin;
    provenance.probed_low_text = (*record)["low"].value_or(std::string{});
    provenance.probed_high_text = (*record)["high"].value_or(std::string{});
    if (const toml::node* settled = record->get("settled")) {
      if (!settled->is_boolean()) return refuse(*settled, "settled: expected true or false");
      provenance.probed_settled = settled->value_or(true);
    }
    if (known.show(owner) == provenance.probed_text) provenance.origin = *origin;
    return {};
  }

  Result<void> read_policy(const toml::node& node, Storage& storage) {
    const auto* name = node.as_string();
    const auto policy = name == nullptr ? Result<Policy>(fail(ErrorKind::bad_input, "expected \"job\" or \"paper\""))
                                        : parse_policy(name->get());
    if (!policy) return refuse(node, "policy: {}", policy.error().message);
    storage.policy = *policy;
    return {};
  }

  Result<void> read_mount_point(const toml::table& table, Storage& storage) {
    MountPoint mount;
    mount.block_bytes = assumed_block_bytes;
    if (auto read = read_fields(table, mount_point_fields(), mount); !read) return read;
    if (mount.path.empty()) return refuse(table, "a mount point without path; expected path = \"/...\"");
    if (mount.device.empty())
      return refuse(table, "{}: expected device = \"...\", the name of a [[device]]", mount.path);
    if (storage.find_mount_point(mount.path) != nullptr)
      return refuse(table, "the mount point '{}' is described twice", printable(mount.path));
    if (!mount.provenance.contains("visibility") && is_shared_filesystem(mount.filesystem))
      mount.visibility = Visibility::global;
    if (!mount.max_file_bytes) mount.max_file_bytes = max_file_bytes_of(mount.filesystem);
    device_places_.emplace(mount.device, table.source().begin);
    storage.mount_points.push_back(std::move(mount));
    return {};
  }

  Result<void> read_server(const toml::table& table, Storage& storage) {
    Server server;
    if (auto read = read_fields(table, server_fields(), server); !read) return read;
    if (server.name.empty()) return refuse(table, "a server without name; expected name = \"...\"");
    if (server.server_class.empty())
      return refuse(table, "{}: expected class = \"...\", the same for all servers that count as equal",
                    printable(server.name));
    if (!server_places_.emplace(server.name, table.source().begin).second)
      return refuse(table, "the server '{}' is described twice", printable(server.name));
    if (!server.device.empty()) device_places_.emplace(server.device, table.source().begin);
    storage.servers.push_back(std::move(server));
    return {};
  }

  Result<void> read_network(const toml::node& node, Storage& storage) {
    const auto* table = node.as_table();
    if (table == nullptr) return refuse(node, "'network' is not a table; expected [network]");
    Network network;
    if (auto read = read_fields(*table, network_fields(), network); !read) return read;
    storage.network = std::move(network);
    return {};
  }

  /// Each server's mount point is described, and each of its times is given or follows from a device.
  Result<void> check_servers(const Storage& storage) {
    for (const Server& server : storage.servers) {
      const auto& place = server_places_.at(server.name);
      if (!server.mount_point.empty() && storage.find_mount_point(server.mount_point) == nullptr)
        return refuse_at(place, fmt::format("{}: there is no [[mount_point]] with the path '{}'",
                                            printable(server.name), printable(server.mount_point)));
      if (storage.device_of(server) != nullptr) continue;
      for (const auto& [key, is_given] : {std::pair{"read_startup", server.read_startup_s.has_value()},
                                          {"read_bandwidth", server.read_bytes_per_s.has_value()},
                                          {"write_startup", server.write_startup_s.has_value()},
                                          {"write_bandwidth", server.write_bytes_per_s.has_value()}})
        if (!is_given)
          return refuse_at(place, fmt::format("{}: expected {}, or the device or mount_point that has it",
                                              printable(server.name), key));
    }
    return {};
  }

  Result<void> read_device(const toml::table& table, Storage& storage) {
    const toml::node* kind = table.get("kind");
    if (kind == nullptr) return refuse(table, "a device without kind; expected kind = \"ssd\", hdd, ram, ...");
    const auto known_kind = enum_of(*kind, kind_names);
    if (!known_kind) return refuse(*kind, "kind: {}", known_kind.error().message);
    Device device = assumed_device(*known_kind);
    if (auto read = read_fields(table, device_fields(), device); !read) return read;
    if (device.name.empty()) return refuse(table, "a device without name; expected name = \"...\"");
    if (!device_numbers_.emplace(device.name, storage.devices.size()).second)
      return refuse(table, "the device '{}' is described twice", printable(device.name));
    if (device.ecc_bits >= device.sector_bits)
      return refuse(table, "{}: ecc_bits is {} but a sector has only {} bits", device.name, device.ecc_bits,
                    device.sector_bits);
    if (device.idle_power_w && device.active_power_w && *device.idle_power_w > *device.active_power_w)
      return refuse(table,
                    "{}: idle_power is {} but active_power only {}; active_power includes what the device draws "
                    "when idle",
                    device.name, watts_text(*device.idle_power_w), watts_text(*device.active_power_w));
    // An assumed limit must not contradict a known latency.
    if (device.provenance.contains("operation_latency") && !device.provenance.contains("max_iops"))
      device.max_iops.reset();
    if (const auto* redundancy = table["redundancy"].as_table()) {
      auto read = read_redundancy(*redundancy, device.name);
      if (!read) return pass_on(std::move(read.error()));
      if (const auto* members = (*redundancy)["members"].as_array())
        for (const toml::node& name : *members)
          device_places_.emplace(name.value_or(std::string{}), name.source().begin);
      device.redundancy = *std::move(read);
      device.provenance.try_emplace(std::string(redundancy_key), Provenance{});
    }
    if (auto read = read_redundancy_record(table, device); !read) return read;
    storage.devices.push_back(std::move(device));
    return {};
  }

  Result<Redundancy> read_redundancy(const toml::table& table, std::string_view device) {
    Redundancy redundancy;
    const toml::node* scheme = table.get("scheme");
    if (scheme == nullptr) return refuse(table, "redundancy without scheme; expected scheme = \"raid1\", mds, ...");
    const auto known = enum_of(*scheme, scheme_names);
    if (!known) return refuse(*scheme, "scheme: {}", known.error().message);
    redundancy.scheme = *known;
    for (const auto& [key, node] : table) {
      if (key == "data" || key == "parity" || key == "local_groups") {
        const auto count = count_of(node, 100000);
        if (!count) return refuse(node, "{}: {}", key.str(), count.error().message);
        (key == "data" ? redundancy.data : key == "parity" ? redundancy.parity : redundancy.local_groups) = *count;
      } else if (key == "members") {
        const auto* names = node.as_array();
        if (names == nullptr) return refuse(node, "members: expected a list of device names");
        for (const toml::node& name : *names) {
          const auto* text = name.as_string();
          if (text == nullptr) return refuse(name, "members: expected the name of a device");
          redundancy.members.push_back(text->get());
        }
      } else if (key != "scheme") {
        return pass_on(unknown_key(key, {"scheme", "data", "parity", "local_groups", "members"}).error());
      }
    }
    if (const auto code = code_of(redundancy); !code) return refuse(table, "{}: {}", device, code.error().message);
    return redundancy;
  }

  /// As read_record, for the redundancy table.
  Result<void> read_redundancy_record(const toml::table& table, Device& device) {
    const toml::node* record = table["probed"].as_table() == nullptr ? nullptr : table["probed"][redundancy_key].node();
    if (record == nullptr) return {};
    const auto* entries = record->as_table();
    const auto* value = entries == nullptr ? nullptr : (*entries)["value"].as_table();
    const toml::node* by = value == nullptr ? nullptr : entries->get("by");
    if (by == nullptr)
      return refuse(*record, "{}: expected {{ value = {{ scheme = ... }}, by = \"inspected\" }}", redundancy_key);
    for (const auto& [key, entry] : *entries)
      if (key != "value" && key != "by") return unknown_key(key, {"value", "by"});
    const auto origin = enum_of(*by, probed_names);
    if (!origin) return refuse(*by, "by: {}", origin.error().message);
    const auto probed = read_redundancy(*value, device.name);
    if (!probed) return pass_on(probed.error());
    const auto current = device.provenance.find(redundancy_key);
    if (current == device.provenance.end()) return {};
    current->second.probed_text = redundancy_text(*probed);
    current->second.probed_origin = *origin;
    if (*device.redundancy == *probed) current->second.origin = *origin;
    return {};
  }

  Result<void> check_references(const Storage& storage) {
    std::vector<std::string_view> names;
    for (const Device& device : storage.devices) names.push_back(device.name);
    for (const auto& [name, place] : device_places_)
      if (!device_numbers_.contains(name))
        return refuse_at(
            place, fmt::format("there is no [[device]] named '{}'{}", printable(name), did_you_mean(name, names)));
    for (const Device& device : storage.devices)
      if (const auto counted = count_parts(storage, device, 1); !counted) return pass_on(counted.error());
    return {};
  }

  /// The size of a composite: devices, counted as often as they are reached, and levels. Both are limited, because the
  /// computation of the reliability visits all of them.
  struct Parts {
    std::size_t devices = 0, levels = 0;  ///< 0: being counted; finding it again means a cycle
    std::set<std::string_view> disks{};   ///< names of the simple devices
  };
  Result<Parts> count_parts(const Storage& storage, const Device& device, std::size_t level) {
    constexpr std::size_t max_devices = 10000, max_levels = 8;
    const auto refuse = [&](std::string_view why) {
      auto mention = device_places_.find(device.name);
      if (mention == device_places_.end()) mention = device_places_.find(device.redundancy->members.front());
      return refuse_at(mention->second, fmt::format("the device '{}' {}", printable(device.name), why));
    };
    const auto [known, is_new] = parts_.try_emplace(&device);
    if (!is_new && known->second.devices == 0) return refuse("is a member of itself");
    if (!is_new) return known->second;
    if (level > max_levels) return refuse(fmt::format("is a member of members, more than {} deep", max_levels));
    Parts parts{1, 1};
    if (!device.redundancy || device.redundancy->members.empty()) parts.disks.insert(device.name);
    if (device.redundancy)
      for (const std::string& name : device.redundancy->members) {
        auto below = count_parts(storage, storage.devices[device_numbers_.find(name)->second], level + 1);
        if (!below) return below;
        for (const std::string_view disk : below->disks)
          if (!parts.disks.insert(disk).second && device.redundancy->scheme != RedundancyScheme::stripe)
            return refuse(
                fmt::format("has '{}' in two of its members, which would fail together; copies must not "
                            "share a device",
                            printable(disk)));
        parts.devices += below->devices;
        parts.levels = std::max(parts.levels, below->levels + 1);
        if (parts.levels > max_levels)
          return refuse(fmt::format("has members of members, more than {} deep", max_levels));
        if (parts.devices > max_devices) return refuse(fmt::format("stands on more than {} devices", max_devices));
      }
    return parts_[&device] = parts;
  }

  std::string_view source_;
  std::map<const Device*, Parts> parts_;
  std::unordered_map<std::string, std::size_t> device_numbers_;      ///< in Storage::devices
  std::multimap<std::string, toml::source_position> device_places_;  ///< every mention of a device
  std::map<std::string, toml::source_position> server_places_;
};

// ---- writing -------------------------------------------------------------------------------------------------------

/// Returns the line for `[*.probed]` of a key whose value is now `value`; "" if no probe found one.
std::string record_text(std::string_view key, const Provenance& known, const std::string& value) {
  const bool from_probe = known.origin == Origin::measured || known.origin == Origin::inspected;
  if (!from_probe && known.probed_text.empty()) return {};
  std::string record =
      fmt::format("{} = {{ value = {}, by = \"{}\"", key, known.probed_text.empty() ? value : known.probed_text,
                  name_of(from_probe ? known.origin : known.probed_origin, probed_names));
  if (!known.probed_low_text.empty())
    record +=
        fmt::format(", low = {}, high = {}", toml_string(known.probed_low_text), toml_string(known.probed_high_text));
  if (!known.probed_settled) record += ", settled = false";
  return record + " }\n";
}

template <class Owner>
void write_fields(const Owner& owner, const std::vector<Field<Owner>>& fields, std::string_view table,
                  std::string& text) {
  constexpr bool is_only = std::is_same_v<Owner, Network>;
  text += is_only ? fmt::format("\n[{}]\n", table) : fmt::format("\n[[{}]]\n", table);
  std::string records;
  for (const auto& each : fields) {
    const auto provenance = owner.provenance.find(each.key);
    const std::string value = each.show(owner);
    // A value without provenance is only the default, unless it identifies the entry.
    const bool is_identity =
        each.key == "name" || each.key == "path" || each.key == "device" || each.key == "kind" || each.key == "class";
    if (value.empty() || (provenance == owner.provenance.end() && !is_identity)) continue;
    if (provenance != owner.provenance.end() && provenance->second.origin == Origin::assumed) continue;
    text += fmt::format("{} = {}\n", each.key, value);
    if (provenance == owner.provenance.end()) continue;
    records += record_text(each.key, provenance->second, value);
  }
  if constexpr (std::is_same_v<Owner, Device>)
    if (owner.redundancy)
      if (const auto known = owner.provenance.find(redundancy_key); known != owner.provenance.end())
        records += record_text(redundancy_key, known->second, redundancy_text(*owner.redundancy));
  if (!records.empty()) text += fmt::format("[{}.probed]\n{}", table, records);
}

}  // namespace

Result<Storage> parse_storage(std::string_view text, std::string_view source) {
  const auto parsed = parse_toml(text, source);
  if (!parsed) return pass_on(parsed.error());
  return StorageReader(source).read(*parsed);
}

std::string storage_text(const Storage& storage) {
  std::string text = fmt::format(
      "# What this machine's storage is: see `man iosig-storage`. `iosig storage probe` writes it, people edit it.\n"
      "# The [*.probed] tables record what the probe found; a value that differs from its record is yours and stays.\n"
      "schema = \"{}\"\n",
      storage_schema);
  if (storage.policy) text += fmt::format("policy = \"{}\"\n", name_of(*storage.policy));
  for (const MountPoint& mount : storage.mount_points) write_fields(mount, mount_point_fields(), "mount_point", text);
  for (const Device& device : storage.devices) {
    write_fields(device, device_fields(), "device", text);
    if (device.redundancy)
      text += fmt::format("[device.redundancy]\n{}\n", fmt::join(redundancy_lines(*device.redundancy), "\n"));
  }
  for (const Server& server : storage.servers) write_fields(server, server_fields(), "server", text);
  if (storage.network) write_fields(*storage.network, network_fields(), "network", text);
  return text;
}

std::string value_text(const Device& device, std::string_view key) {
  if (key == redundancy_key) return device.redundancy ? redundancy_text(*device.redundancy) : std::string{};
  const auto* known = find_field(device_fields(), key);
  return known == nullptr ? std::string{} : known->show(device);
}
std::string value_text(const MountPoint& mount, std::string_view key) {
  const auto* known = find_field(mount_point_fields(), key);
  return known == nullptr ? std::string{} : known->show(mount);
}
std::string value_text(const Server& server, std::string_view key) {
  const auto* known = find_field(server_fields(), key);
  return known == nullptr ? std::string{} : known->show(server);
}
std::string value_text(const Network& network, std::string_view key) {
  const auto* known = find_field(network_fields(), key);
  return known == nullptr ? std::string{} : known->show(network);
}
const std::vector<std::string_view>& server_keys() {
  static const std::vector<std::string_view> keys = keys_of(server_fields());
  return keys;
}
const std::vector<std::string_view>& network_keys() {
  static const std::vector<std::string_view> keys = keys_of(network_fields());
  return keys;
}
const std::vector<std::string_view>& device_keys() {
  static const std::vector<std::string_view> keys = [] {
    auto all = keys_of(device_fields());
    all.push_back(redundancy_key);
    return all;
  }();
  return keys;
}
const std::vector<std::string_view>& mount_point_keys() {
  static const std::vector<std::string_view> keys = keys_of(mount_point_fields());
  return keys;
}

std::string scheme_text(RedundancyScheme scheme) { return name_of(scheme, scheme_names); }

}  // namespace iosig
