#include "iosig/format/storage_toml.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig {
namespace {

constexpr std::string_view schema = "iosig.storage/1";

// ---- values: TOML node <-> C++, without place; the caller adds it ------------------------------------------------

template <class T>
Result<T> in_range(const Result<T>& value, double low, double high, std::string_view range) {
  if (!value) return value;
  const double number = static_cast<double>(*value);
  if (!(number >= low && number <= high)) return fail(ErrorKind::bad_input, "is out of range; expected {}", range);
  return value;
}

Result<std::string> text_of(const toml::node& node, std::string_view expected) {
  if (const auto* text = node.as_string()) return text->get();
  return fail(ErrorKind::bad_input, "expected {}", expected);
}

Result<std::uint64_t> bytes_of(const toml::node& node) {
  if (const auto* count = node.as_integer()) {
    if (count->get() < 0) return fail(ErrorKind::bad_input, "is negative; expected a size of at least 0");
    return static_cast<std::uint64_t>(count->get());
  }
  const auto text = text_of(node, "a size such as \"4KB\"");
  return text ? parse_bytes(*text) : pass_on(text.error());
}

Result<double> rate_of(const toml::node& node) {
  const auto text = text_of(node, "a rate such as \"1.7GB/s\"");
  return text ? in_range(parse_bytes_per_s(*text), 1, 0x1p60, "1B/s to 1EB/s") : pass_on(text.error());
}

Result<double> seconds_of(const toml::node& node) {
  const auto text = text_of(node, "a time such as \"0.1ms\"");
  return text ? parse_seconds(*text) : pass_on(text.error());
}

Result<double> number_of(const toml::node& node) {
  if (const auto number = node.value<double>(); number && std::isfinite(*number) && !node.is_boolean()) return *number;
  return fail(ErrorKind::bad_input, "expected a number");
}

Result<std::uint32_t> count_of(const toml::node& node, std::uint32_t most) {
  const auto* number = node.as_integer();
  if (number == nullptr) return fail(ErrorKind::bad_input, "expected a whole number");
  if (number->get() < 0 || number->get() > most)
    return fail(ErrorKind::bad_input, "is out of range; expected 0 to {}", most);
  return static_cast<std::uint32_t>(number->get());
}

Result<bool> truth_of(const toml::node& node) {
  if (const auto* truth = node.as_boolean()) return truth->get();
  return fail(ErrorKind::bad_input, "expected true or false");
}

std::string quoted(std::string_view text) {
  std::string shown = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (shown += '\\') += c;
    else if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\u{:04x}", byte);
    else
      shown += c;
  }
  return shown + '"';
}

template <class Enum, std::size_t N>
using Names = std::array<std::pair<std::string_view, Enum>, N>;

constexpr Names<DeviceKind, 6> kind_names{{{"ram", DeviceKind::ram},
                                           {"nvram", DeviceKind::nvram},
                                           {"ssd", DeviceKind::ssd},
                                           {"hdd", DeviceKind::hdd},
                                           {"network", DeviceKind::network},
                                           {"composite", DeviceKind::composite}}};
constexpr Names<Visibility, 2> visibility_names{{{"local", Visibility::local}, {"global", Visibility::global}}};
constexpr Names<RedundancyScheme, 8> scheme_names{{{"mds", RedundancyScheme::mds},
                                                   {"replica", RedundancyScheme::replica},
                                                   {"stripe", RedundancyScheme::stripe},
                                                   {"raid0", RedundancyScheme::stripe},
                                                   {"raid1", RedundancyScheme::raid1},
                                                   {"raid5", RedundancyScheme::raid5},
                                                   {"raid6", RedundancyScheme::raid6},
                                                   {"raid10", RedundancyScheme::raid10}}};
constexpr Names<Origin, 2> probed_names{{{"measured", Origin::measured}, {"inspected", Origin::inspected}}};

template <class Enum, std::size_t N>
Result<Enum> enum_of(const toml::node& node, const Names<Enum, N>& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) known.push_back(name);
  const auto text = text_of(node, fmt::format("one of \"{}\"", fmt::join(known, "\" \"")));
  if (!text) return pass_on(text.error());
  for (const auto& [name, value] : names)
    if (*text == name) return value;
  return fail(ErrorKind::bad_input, "'{}' is none of {}{}", printable(*text), fmt::join(known, " "),
              did_you_mean(*text, known));
}

template <class Enum, std::size_t N>
std::string name_of(Enum value, const Names<Enum, N>& names) {
  const auto it = std::ranges::find(names, value, [](const auto& entry) { return entry.second; });
  return it == names.end() ? std::string{} : std::string(it->first);
}

// ---- fields: one row per key ---------------------------------------------------------------------------------------

template <class Owner>
struct Field {
  std::string_view key;
  std::function<Result<void>(Owner&, const toml::node&)> set;
  std::function<std::string(const Owner&)> show;  ///< TOML text; "" when there is no value
  std::function<void(Owner&, const Owner&)> copy;
};

template <class T>
const T* value_if_any(const T& value) {
  return &value;
}
template <class T>
const T* value_if_any(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}
const std::string* value_if_any(const std::string& value) { return value.empty() ? nullptr : &value; }

template <class Owner, class Member, class Read, class Show>
Field<Owner> field(std::string_view key, Member Owner::*member, Read read, Show show) {
  return {key,
          [=](Owner& owner, const toml::node& node) -> Result<void> {
            auto value = read(node);
            if (!value) return pass_on(value.error());
            owner.*member = *value;
            return {};
          },
          [=](const Owner& owner) -> std::string {
            const auto* value = value_if_any(owner.*member);
            return value == nullptr ? std::string{} : show(*value);
          },
          [=](Owner& to, const Owner& from) { to.*member = from.*member; }};
}

std::string quoted_bytes(std::uint64_t bytes) { return quoted(bytes_text(bytes)); }
std::string quoted_rate(double rate) { return quoted(rate_text(rate)); }
std::string quoted_seconds(double seconds) { return quoted(seconds_text(seconds)); }
std::string truth_text(bool truth) { return truth ? "true" : "false"; }
/// A TOML float or integer: "9000" or "1e-06" both read back as the number.
std::string toml_number(double number) { return fmt::format("{}", number); }

template <auto Parse>
auto ranged(double low, double high, std::string_view range) {
  return [=](const toml::node& node) { return in_range(Parse(node), low, high, range); };
}

Result<std::string> name_text(const toml::node& node) {
  auto text = text_of(node, "a text");
  if (text && text->empty()) return fail(ErrorKind::bad_input, "is empty; expected a name");
  return text;
}

Result<std::string> absolute_path(const toml::node& node) {
  auto text = text_of(node, "a path");
  if (text && (text->empty() || text->front() != '/' || text->find('\0') != std::string::npos))
    return fail(ErrorKind::bad_input, "'{}' is not an absolute path", printable(*text));
  return text;
}

const std::vector<Field<Device>>& device_fields() {
  using D = Device;
  constexpr double century_s = 100 * year_s;
  static const std::vector<Field<D>> fields{
      field("name", &D::name, name_text, quoted),
      field(
          "kind", &D::kind, [](const toml::node& n) { return enum_of(n, kind_names); },
          [](DeviceKind kind) { return quoted(name_of(kind, kind_names)); }),
      field("path", &D::path, name_text, quoted),
      field("transport", &D::transport, name_text, quoted),
      field("capacity", &D::capacity_bytes, bytes_of, quoted_bytes),
      field("rotational", &D::rotational, truth_of, truth_text),
      field("read_bandwidth", &D::read_bytes_per_s, rate_of, quoted_rate),
      field("write_bandwidth", &D::write_bytes_per_s, rate_of, quoted_rate),
      field("operation_latency", &D::operation_latency_s, ranged<seconds_of>(0, 3600, "0s to 1h"), quoted_seconds),
      field("read_operation_latency", &D::read_operation_latency_s, ranged<seconds_of>(0, 3600, "0s to 1h"),
            quoted_seconds),
      field("seek_latency", &D::seek_latency_s, ranged<seconds_of>(0, 3600, "0s to 1h"), quoted_seconds),
      field("max_iops", &D::max_iops, ranged<number_of>(1e-6, 1e12, "a number above 0, up to 1e12"), toml_number),
      field("mttf", &D::mttf_s, ranged<seconds_of>(1, 1e6 * century_s, "at least 1s"), quoted_seconds),
      field("ber", &D::bit_error_rate, ranged<number_of>(0, 0.5, "0 to 0.5 bit errors per bit"), toml_number),
      field(
          "sector_bits", &D::sector_bits,
          [](const toml::node& n) { return in_range(count_of(n, 1u << 20), 1, 1 << 20, "1 to 1048576"); },
          [](std::uint32_t count) { return fmt::format("{}", count); }),
      field(
          "ecc_bits", &D::ecc_bits, [](const toml::node& n) { return count_of(n, 1u << 20); },
          [](std::uint32_t count) { return fmt::format("{}", count); }),
      field("mttr", &D::mttr_s, ranged<seconds_of>(1e-3, century_s, "1ms to 100y"), quoted_seconds),
  };
  return fields;
}

const std::vector<Field<MountPoint>>& mount_point_fields() {
  using M = MountPoint;
  static const std::vector<Field<M>> fields{
      field("path", &M::path, absolute_path, quoted),
      field("device", &M::device, name_text, quoted),
      field("filesystem", &M::filesystem, name_text, quoted),
      field("block_size", &M::block_bytes, ranged<bytes_of>(1, GiB, "1B to 1GB"), quoted_bytes),
      field("free", &M::free_bytes, bytes_of, quoted_bytes),
      field("max_file_size", &M::max_file_bytes, ranged<bytes_of>(1, 0x1p63, "at least 1B"), quoted_bytes),
      field(
          "visibility", &M::visibility, [](const toml::node& n) { return enum_of(n, visibility_names); },
          [](Visibility visibility) { return quoted(name_of(visibility, visibility_names)); }),
      field("persistent", &M::persistent, truth_of, truth_text),
      field("archive", &M::archive, truth_of, truth_text),
      field("tamperproof", &M::tamperproof, truth_of, truth_text),
  };
  return fields;
}

template <class Owner>
const Field<Owner>* find_field(const std::vector<Field<Owner>>& fields, std::string_view key) {
  const auto it = std::ranges::find(fields, key, &Field<Owner>::key);
  return it == fields.end() ? nullptr : &*it;
}

template <class Owner>
std::vector<std::string_view> keys_of(const std::vector<Field<Owner>>& fields) {
  std::vector<std::string_view> keys;
  for (const auto& each : fields) keys.push_back(each.key);
  return keys;
}

// ---- reading -------------------------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  Result<Storage> read(const toml::table& root) {
    const auto* said = root["schema"].as_string();
    if (said == nullptr) return refuse(root, "expected schema = \"{}\" at the top", schema);
    if (said->get() != schema)
      return refuse(*said, "this is '{}'; this iosig reads '{}' only", printable(said->get()), schema);
    Storage storage;
    for (const auto& [key, node] : root) {
      Result<void> read{};
      if (key == "mount_point")
        read = read_each(node, key.str(), [&](const toml::table& table) { return read_mount_point(table, storage); });
      else if (key == "device")
        read = read_each(node, key.str(), [&](const toml::table& table) { return read_device(table, storage); });
      else if (key != "schema")
        read = unknown_key(key, {{"schema", "mount_point", "device"}});
      if (!read) return pass_on(read.error());
    }
    if (storage.mount_points.empty()) return refuse(root, "there is no [[mount_point]]; expected at least one");
    if (auto checked = check_references(storage); !checked) return pass_on(checked.error());
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

  /// Reads every field of `table` into `owner`, and its record of what a probe found.
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
      const auto* known = find_field(fields, key.str());
      if (known == nullptr) return unknown_key(key, keys_of(fields));
      if (auto recorded = read_record(*known, node, owner); !recorded) return recorded;
    }
    return {};
  }

  /// `{ value = ..., by = "measured", low = ..., high = ... }`. A value that equals its record came from the probe.
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
      if (key != "value" && key != "by" && key != "low" && key != "high")
        return unknown_key(key, {"value", "by", "low", "high"});
    const auto current = owner.provenance.find(known.key);
    if (current == owner.provenance.end()) return {};  // the value was taken out by hand: it has its default
    Provenance& provenance = current->second;
    provenance.probed_text = known.show(probed);
    provenance.probed_origin = *origin;
    provenance.probed_low_text = (*record)["low"].value_or(std::string{});
    provenance.probed_high_text = (*record)["high"].value_or(std::string{});
    if (known.show(owner) == provenance.probed_text) provenance.origin = *origin;
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
    if (!mount.provenance.contains("persistent")) mount.persistent = !is_volatile_filesystem(mount.filesystem);
    if (!mount.max_file_bytes) mount.max_file_bytes = max_file_bytes_of(mount.filesystem);
    device_places_.emplace(mount.device, table.source().begin);
    storage.mount_points.push_back(std::move(mount));
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
    if (storage.find_device(device.name) != nullptr)
      return refuse(table, "the device '{}' is described twice", printable(device.name));
    if (device.ecc_bits >= device.sector_bits)
      return refuse(table, "{}: ecc_bits is {} but a sector has only {} bits", device.name, device.ecc_bits,
                    device.sector_bits);
    // An assumed limit must not contradict a latency that somebody knows.
    if (device.provenance.contains("operation_latency") && !device.provenance.contains("max_iops"))
      device.max_iops.reset();
    if (const auto* redundancy = table["redundancy"].as_table()) {
      if (auto read = read_redundancy(*redundancy, device); !read) return read;
    }
    storage.devices.push_back(std::move(device));
    return {};
  }

  Result<void> read_redundancy(const toml::table& table, Device& device) {
    Redundancy redundancy;
    const toml::node* scheme = table.get("scheme");
    if (scheme == nullptr) return refuse(table, "redundancy without scheme; expected scheme = \"raid1\", mds, ...");
    const auto known = enum_of(*scheme, scheme_names);
    if (!known) return refuse(*scheme, "scheme: {}", known.error().message);
    redundancy.scheme = *known;
    for (const auto& [key, node] : table) {
      if (key == "data" || key == "parity") {
        const auto count = count_of(node, 100000);
        if (!count) return refuse(node, "{}: {}", key.str(), count.error().message);
        (key == "data" ? redundancy.data : redundancy.parity) = *count;
      } else if (key == "members") {
        const auto* names = node.as_array();
        if (names == nullptr) return refuse(node, "members: expected a list of device names");
        for (const toml::node& name : *names) {
          const auto* text = name.as_string();
          if (text == nullptr) return refuse(name, "members: expected the name of a device");
          redundancy.members.push_back(text->get());
          device_places_.emplace(text->get(), name.source().begin);
        }
      } else if (key != "scheme") {
        return unknown_key(key, {"scheme", "data", "parity", "members"});
      }
    }
    if (const auto code = code_of(redundancy); !code) return refuse(table, "{}: {}", device.name, code.error().message);
    device.redundancy = std::move(redundancy);
    return {};
  }

  Result<void> check_references(const Storage& storage) {
    std::vector<std::string_view> names;
    for (const Device& device : storage.devices) names.push_back(device.name);
    for (const auto& [name, place] : device_places_)
      if (storage.find_device(name) == nullptr)
        return refuse_at(
            place, fmt::format("there is no [[device]] named '{}'{}", printable(name), did_you_mean(name, names)));
    for (const Device& device : storage.devices) {
      std::set<std::string_view> above;
      if (contains_itself(storage, device, above))
        return fail(ErrorKind::bad_input, "{}: the device '{}' is a member of itself", source_, printable(device.name));
    }
    return {};
  }

  static bool contains_itself(const Storage& storage, const Device& device, std::set<std::string_view>& above) {
    if (!above.insert(device.name).second) return true;
    bool found = false;
    if (device.redundancy)
      for (const std::string& member : device.redundancy->members)
        found = found || contains_itself(storage, *storage.find_device(member), above);
    above.erase(device.name);
    return found;
  }

  std::string_view source_;
  std::multimap<std::string, toml::source_position> device_places_;  ///< every mention of a device
};

// ---- writing -------------------------------------------------------------------------------------------------------

template <class Owner>
void write_fields(const Owner& owner, const std::vector<Field<Owner>>& fields, std::string_view table,
                  std::string& text) {
  text += fmt::format("\n[[{}]]\n", table);
  std::string records;
  for (const auto& each : fields) {
    const auto provenance = owner.provenance.find(each.key);
    const std::string value = each.show(owner);
    // A value without provenance was set by a caller, unless it is only the default.
    const bool is_identity = each.key == "name" || each.key == "path" || each.key == "device" || each.key == "kind";
    if (value.empty() || (provenance == owner.provenance.end() && !is_identity)) continue;
    if (provenance != owner.provenance.end() && provenance->second.origin == Origin::assumed) continue;
    text += fmt::format("{} = {}\n", each.key, value);
    if (provenance == owner.provenance.end()) continue;
    const Provenance& known = provenance->second;
    const bool from_probe = known.origin == Origin::measured || known.origin == Origin::inspected;
    if (!from_probe && known.probed_text.empty()) continue;
    const Origin by = from_probe ? known.origin : known.probed_origin;
    records += fmt::format("{} = {{ value = {}, by = \"{}\"", each.key,
                           known.probed_text.empty() ? value : known.probed_text, name_of(by, probed_names));
    if (!known.probed_low_text.empty())
      records += fmt::format(", low = {}, high = {}", quoted(known.probed_low_text), quoted(known.probed_high_text));
    records += " }\n";
  }
  if (!records.empty()) text += fmt::format("[{}.probed]\n{}", table, records);
}

void write_redundancy(const Redundancy& redundancy, std::string& text) {
  text += fmt::format("[device.redundancy]\nscheme = {}\n", quoted(name_of(redundancy.scheme, scheme_names)));
  if (redundancy.data != 0) text += fmt::format("data = {}\n", redundancy.data);
  if (redundancy.parity != 0) text += fmt::format("parity = {}\n", redundancy.parity);
  if (redundancy.members.empty()) return;
  std::vector<std::string> names;
  for (const std::string& member : redundancy.members) names.push_back(quoted(member));
  text += fmt::format("members = [{}]\n", fmt::join(names, ", "));
}

// ---- merging -------------------------------------------------------------------------------------------------------

template <class Owner>
bool edited_by_hand(const Owner& owner) {
  return std::ranges::any_of(owner.provenance, [](const auto& entry) { return entry.second.origin == Origin::config; });
}

/// `update` with every hand-set value of `current`; what the probe found stays in the record.
template <class Owner>
Owner with_hand_values(const Owner& current, Owner update, const std::vector<Field<Owner>>& fields) {
  for (const auto& each : fields) {
    const auto kept = current.provenance.find(each.key);
    if (kept == current.provenance.end() || kept->second.origin != Origin::config) continue;
    Provenance provenance;
    if (const auto probed = update.provenance.find(each.key); probed != update.provenance.end()) {
      provenance = probed->second;
      provenance.probed_origin = provenance.origin;
      provenance.probed_text = each.show(update);
      provenance.origin = Origin::config;
    }
    each.copy(update, current);
    update.provenance[std::string(each.key)] = provenance;
  }
  return update;
}

}  // namespace

Result<Storage> parse_storage(std::string_view text, std::string_view source) {
  const toml::parse_result parsed = toml::parse(text, source);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(ErrorKind::bad_input, "{}:{}:{}: {}", source, error.source().begin.line, error.source().begin.column,
                error.description());
  }
  return Reader(source).read(parsed.table());
}

std::string storage_text(const Storage& storage) {
  std::string text = fmt::format(
      "# What this machine's storage is: see `man iosig-storage`. `iosig storage probe` writes it, people edit it.\n"
      "# The [*.probed] tables record what the probe found; a value that differs from its record is yours and stays.\n"
      "schema = \"{}\"\n",
      schema);
  for (const MountPoint& mount : storage.mount_points) write_fields(mount, mount_point_fields(), "mount_point", text);
  for (const Device& device : storage.devices) {
    write_fields(device, device_fields(), "device", text);
    if (device.redundancy) write_redundancy(*device.redundancy, text);
  }
  return text;
}

std::string value_text(const Device& device, std::string_view key) {
  const auto* known = find_field(device_fields(), key);
  return known == nullptr ? std::string{} : known->show(device);
}
std::string value_text(const MountPoint& mount, std::string_view key) {
  const auto* known = find_field(mount_point_fields(), key);
  return known == nullptr ? std::string{} : known->show(mount);
}
const std::vector<std::string_view>& device_keys() {
  static const std::vector<std::string_view> keys = keys_of(device_fields());
  return keys;
}
const std::vector<std::string_view>& mount_point_keys() {
  static const std::vector<std::string_view> keys = keys_of(mount_point_fields());
  return keys;
}

Storage merge_probe(const Storage& current, const Storage& update) {
  Storage merged;
  for (const MountPoint& mount : update.mount_points) {
    const MountPoint* old = current.find_mount_point(mount.path);
    merged.mount_points.push_back(old == nullptr ? mount : with_hand_values(*old, mount, mount_point_fields()));
  }
  for (const MountPoint& mount : current.mount_points)
    if (merged.find_mount_point(mount.path) == nullptr && edited_by_hand(mount)) merged.mount_points.push_back(mount);
  for (const Device& device : update.devices) {
    const Device* old = current.find_device(device.name);
    merged.devices.push_back(old == nullptr ? device : with_hand_values(*old, device, device_fields()));
    if (old != nullptr && old->redundancy) merged.devices.back().redundancy = old->redundancy;
  }
  const auto is_needed = [&](const Device& device) {
    if (edited_by_hand(device) || device.redundancy) return true;
    return std::ranges::find(merged.mount_points, device.name, &MountPoint::device) != merged.mount_points.end() ||
           std::ranges::any_of(current.devices, [&](const Device& other) {
             return other.redundancy && std::ranges::count(other.redundancy->members, device.name) > 0;
           });
  };
  for (const Device& device : current.devices)
    if (merged.find_device(device.name) == nullptr && is_needed(device)) merged.devices.push_back(device);
  return merged;
}

}  // namespace iosig
