// `iosig storage`: the storage description of this machine. probe finds and measures the storage and writes the
// description; list and show read it.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "commands.h"
#include "interruption.h"
#include "iosig/base/files.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/base/units.h"
#include "iosig/config/host_files.h"
#include "iosig/config/resolve_links.h"
#include "iosig/config/storage_file.h"
#include "iosig/config/system_storage.h"
#include "iosig/cost/reliability.h"
#include "iosig/format/storage_toml.h"
#include "iosig/storage/activity.h"
#include "iosig/storage/probe.h"
#include "storage_json.h"
#include "storage_network.h"
#include "storage_servers.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

ordered_json file_json(const std::string& file) { return file.empty() ? ordered_json(nullptr) : ordered_json(file); }

/// Why the file applies; null: no file.
ordered_json applies_json(const StorageSource& source) {
  return source.file.empty() ? ordered_json(nullptr) : ordered_json(name_of(source.found.reason));
}

// ---- tables ---------------------------------------------------------------------------------------------------------

std::string about_free(const MountPoint& mount) {
  if (mount.forbidden) return "forbidden";
  if (!mount.free_bytes) return "-";
  std::string free = about_bytes(static_cast<double>(allowed_bytes(mount)));
  if (mount.reserved_bytes != 0)
    free += fmt::format(", {} reserved", about_bytes(static_cast<double>(mount.reserved_bytes)));
  if (mount.withheld_bytes != 0)
    free += fmt::format(", {} withheld", about_bytes(static_cast<double>(mount.withheld_bytes)));
  return free;
}

Table storage_table(const Storage& storage) {
  Table table({"MOUNT POINT", "DEVICE", "KIND", "FILE SYSTEM", "FREE", "READ", "WRITE", "LATENCY", "SEEK", "IOPS",
               "VISIBLE", "PERSISTENT"});
  for (const MountPoint& mount : storage.mount_points) {
    const Device& device = *storage.find_device(mount.device);
    table.add({printable(mount.path), printable(device.name), unquoted(value_text(device, "kind")),
               printable(mount.filesystem), about_free(mount), about_rate(device.read_bytes_per_s),
               about_rate(device.write_bytes_per_s), about_seconds(device.operation_latency_s),
               about_seconds(device.seek_latency_s), device.max_iops ? fmt::format("{:.0f}", *device.max_iops) : "-",
               mount.visibility == Visibility::global ? "global" : "local", mount.persistent ? "yes" : "no"});
  }
  return table;
}

/// Adds the rows of one mount point or device: value, origin, and the result of the probe if it differs.
template <class Owner>
void add_values(const Owner& owner, const std::vector<std::string_view>& keys, Table& table) {
  for (const std::string_view key : keys) {
    std::string value = unquoted(value_text(owner, key)), remark;
    const auto known = owner.provenance.find(key);
    if (value.empty()) continue;
    if (key == "free" || key == "capacity" || key == "max_file_size")  // rounded; the file has the exact bytes
      if (const auto bytes = parse_bytes(value)) value = about_bytes(static_cast<double>(*bytes));
    if constexpr (std::is_same_v<Owner, MountPoint>)
      if (key == "free" && owner.withheld_bytes != 0)
        remark = fmt::format("{} of it withheld by max_share", about_bytes(static_cast<double>(owner.withheld_bytes)));
    if (known != owner.provenance.end()) {
      const Provenance& provenance = known->second;
      if (!provenance.probed_low_text.empty())
        remark = fmt::format("{} .. {}{}", provenance.probed_low_text, provenance.probed_high_text,
                             provenance.probed_settled ? "" : ", not settled");
      if (provenance.origin == Origin::config && !provenance.probed_text.empty())
        remark = fmt::format("{} found {}{}{}", origin_name(provenance.probed_origin), unquoted(provenance.probed_text),
                             remark.empty() ? "" : ", ", remark);
    }
    table.add({"  " + std::string(key), printable(value), origin_name(origin_of(owner.provenance, key)), remark});
  }
}

// ---- probe ----------------------------------------------------------------------------------------------------------

struct ProbeFlags {
  bool quick = false, dry_run = false, force = false, this_host = false;

  /// Whether a busy machine may be a reason not to write.
  [[nodiscard]] bool guards_description() const { return !force && !dry_run; }
  std::string output;
  std::optional<std::string> hosts;
  std::vector<std::string> mounts;
  NetworkFlags network;
};

/// Returns the current description, or an empty one. Does not read free space, because it may list dead mounts.
Result<Storage> current_storage(const std::string& file) {
  const bool is_named = !is_standard_storage_file(file);
  if (::access(file.c_str(), F_OK) != 0)
    return is_named ? Storage{} : check_directory(file).map([] { return Storage{}; });
  return read_configuration(file, is_named ? Configuration::named : Configuration::found)
      .and_then([&](const std::string& text) { return parse_storage(text, file); });
}

/// Keeps the mount points and devices that were not probed.
void keep_others(const Storage& current, Storage& storage) {
  for (const MountPoint& mount : current.mount_points)
    if (storage.find_mount_point(mount.path) == nullptr) storage.mount_points.push_back(mount);
  for (const Device& device : current.devices)
    if (storage.find_device(device.name) == nullptr) storage.devices.push_back(device);
}

/// Writes `text` to `file`. Keeps the old content as FILE~.
Result<void> write_with_backup(const std::string& file, const std::string& text, Console& console) {
  const auto before = read_file(file);
  if (before && *before == text) {
    console.note(fmt::format("{} is up to date", printable(file)));
    return {};
  }
  if (before) {
    if (auto kept = replace_file(file + "~", *before); !kept) return kept;
    console.note(fmt::format("the former description is kept: {}~", printable(file)));
  }
  if (auto written = write_output(file, text); !written) return written;
  console.note(fmt::format("wrote {}; remove it to undo", printable(file)));
  return {};
}

/// Locks the directory of `file`, which keeps other probes from replacing the file, until the returned descriptor is
/// closed. Returns no descriptor if the directory cannot be opened.
Result<Fd> lock_directory_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : file.substr(0, std::max<std::size_t>(slash, 1));
  if (const auto made = make_directories(directory); !made) return pass_on(made.error());
  Fd locked(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!locked) return locked;  // the directory may be writable but not readable
  constexpr std::chrono::milliseconds between_tries{10};
  constexpr int max_tries = 1000;
  int tries = 0;
  // If the file system does not support locks (some network file systems), continues without: the measurements must not
  // be lost.
  while (::flock(locked.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && ++tries < max_tries)
    std::this_thread::sleep_for(between_tries);
  if (tries == max_tries)
    return fail(ErrorKind::system, "'{}' stays locked by another program, so {} was not written; probe again",
                printable(directory), printable(file));
  return locked;
}

/// Merges the probe's result into the current description and writes it, unless that would replace good values by those
/// of a busy machine. `before`: the description when the probe began. Keeps what other probes have written since.
Result<Storage> merge_and_write(const ProbeFlags& flags, const std::string& file, const Storage& before,
                                const Probe& probe, Console& console) {
  const auto lock = flags.dry_run ? Fd() : lock_directory_of(file);
  if (!lock) return pass_on(lock.error());
  const auto current = current_storage(file);
  if (!current) return pass_on(current.error());
  if (flags.guards_description())
    if (const auto allowed = may_overwrite(*current, probe.activity); !allowed) return pass_on(allowed.error());
  Storage storage = merge_probe(*current, probe.storage);
  Storage others = *current;
  if (flags.mounts.empty()) {  // the probe covered all mount points in `before`: those not found are dropped
    std::erase_if(others.mount_points,
                  [&](const MountPoint& mount) { return before.find_mount_point(mount.path) != nullptr; });
    if (others.mount_points.empty()) others.devices.clear();
  }
  keep_others(others, storage);
  if (flags.dry_run) return storage;
  const std::string text = storage_text(storage);
  if (const auto readable = parse_storage(text, file); !readable)
    return fail(ErrorKind::system, "what was found cannot be described, so {} was not written: {}", printable(file),
                readable.error().message);
  if (const auto written = write_with_backup(file, text, console); !written) return pass_on(written.error());
  return storage;
}

/// Returns the file that the probe writes: the named one, that of the given hosts, or the user's file that applies
/// here.
Result<std::string> file_to_write(const ProbeFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  if (user_storage_file().empty())
    return fail(ErrorKind::usage, "there is no home directory to write storage.toml to; give --output FILE");
  if (!flags.this_host && !flags.hosts)
    return find_user_storage_file().map([](const auto& found) { return found ? found->path : user_storage_file(); });
  const std::string host = host_name(), hosts = flags.hosts.value_or(host);
  if (covers_host(hosts, host)) return host_storage_file(hosts);
  return fail(ErrorKind::usage,
              "'{}' does not cover this host, '{}', which is what the probe measures; expected its name or a pattern "
              "such as '{}*'",
              printable(hosts), printable(host), printable(host.substr(0, 1)));
}

/// Notes if another of the user's files applies on this host than the one that was written for it.
void note_what_applies(const ProbeFlags& flags, const std::string& written, Console& console) {
  if (!flags.this_host && !flags.hosts) return;
  const auto found = find_user_storage_file();
  if (found && *found && (*found)->path != written)
    console.note(fmt::format("on this host, {} applies instead ({})", printable((*found)->path), reason_text(**found)));
}

/// Returns what tells why a directory must not be probed: the machine's description forbids it. If that description
/// cannot be read, says so; then nothing is forbidden.
std::function<std::string(const std::string&)> forbidden_by_administrator(const Console& console) {
  if (::access(system_storage_file, F_OK) != 0) return {};
  auto system = read_storage_file(system_storage_file, FreeSpace::leave);
  if (!system) {
    console.note(system.error().message + "; so its limits do not count; tell the administrator");
    return {};
  }
  return [system = *std::move(system), resolve = link_resolver()](const std::string& path) {
    return is_forbidden_by(system, path, resolve)
               ? fmt::format("is forbidden by the administrator ({})", system_storage_file)
               : std::string{};
  };
}

/// Every measured value whose mean is not known as well as wanted.
ordered_json unsettled_json(const Storage& storage) {
  ordered_json unsettled = ordered_json::array();
  for (const Device& device : storage.devices)
    for (const auto& [key, known] : device.provenance)
      if (!known.probed_settled)
        unsettled.push_back(
            {{"device", device.name}, {"key", key}, {"low", known.probed_low_text}, {"high", known.probed_high_text}});
  return unsettled;
}

/// Rank 0 writes; the other processes of the launcher only take part.
int run_network_probe(const ProbeFlags& flags, const std::string& file, Console& console) {
  if (flags.quick || !flags.mounts.empty())
    return console.fail({ErrorKind::usage, "--network measures no storage; leave out --quick and --mount"});
  const auto probe = measured_network(flags.network, console);
  if (!probe && interruption() != 0) {
    console.note("interrupted; nothing was written");
    return interrupted_status + interruption();
  }
  if (!probe) return console.fail(probe.error());
  if (!*probe) return yes;
  const auto lock = flags.dry_run ? Fd() : lock_directory_of(file);
  if (!lock) return console.fail(lock.error());
  const auto current = current_storage(file);
  if (!current) return console.fail(current.error());
  Storage measured, storage = *current;
  measured.network = network_of(**probe);
  storage.network = merge_probe(*current, measured).network;
  if (flags.dry_run)
    console.note(fmt::format("dry run: {} was not written", printable(file)));
  else if (const auto done = write_with_backup(file, storage_text(storage), console); !done)
    return console.fail(done.error());
  say_network(**probe, storage, flags.dry_run ? "" : file, console);
  return yes;
}

int run_probe(const ProbeFlags& flags, Console& console) {
  const auto written = file_to_write(flags);
  if (!written) return console.fail(written.error());
  const std::string& file = *written;
  if (flags.network.is_wanted) return run_network_probe(flags, file, console);
  const auto current = current_storage(file);
  if (!current) return console.fail(current.error());

  ProbeOptions options;
  if (flags.quick) options.limits = quick_limits;
  options.only = flags.mounts;
  for (const MountPoint& mount : current->mount_points) options.directories.push_back(mount.path);
  options.refusal = forbidden_by_administrator(console);
  if (flags.guards_description() && std::ranges::any_of(current->devices, is_worth_keeping))
    options.first_look = [&](const auto& seen) { return may_overwrite(*current, seen); };
  auto probe = probe_storage(options, [&](std::string_view what) { console.progress(what); });
  console.end_progress();
  if (!probe) return console.fail(probe.error());
  for (const Skipped& skipped : probe->skipped)
    console.note(fmt::format("skipped {}: {}", printable(skipped.path), skipped.reason));
  for (const std::string& note : probe->notes) console.note(note);
  if (probe->storage.mount_points.empty())
    return console.fail({ErrorKind::infeasible, "no file system was found on which you can create files"});

  auto merged = merge_and_write(flags, file, *current, *probe, console);
  if (!merged) return console.fail(merged.error());
  if (!flags.dry_run) note_what_applies(flags, file, console);
  Storage& storage = *merged;
  refresh_free_space(storage);
  if (console.json) {
    ordered_json document = storage_json(storage);
    document["file"] = file_json(flags.dry_run ? std::string() : file);
    document["skipped"] = ordered_json::array();
    for (const Skipped& skipped : probe->skipped)
      document["skipped"].push_back({{"path", skipped.path}, {"reason", skipped.reason}});
    document["unsettled"] = unsettled_json(probe->storage);
    console.say_json("iosig.storage/1", document);
  } else {
    console.say(storage_table(storage));
    if (flags.dry_run) console.note(fmt::format("dry run: {} was not written", printable(file)));
  }
  return yes;
}

// ---- list and show --------------------------------------------------------------------------------------------------

int run_list(const std::string& file, Console& console) {
  const auto source = load_storage(file, console);
  if (!source) return console.fail(source.error());
  if (!source->file.empty()) console.note(fmt::format("storage description: {}", about_file(*source)));
  if (!console.json) {
    const Storage& storage = source->storage;
    if (!storage.mount_points.empty() || storage.servers.empty()) console.say(storage_table(storage));
    return say_servers(storage, console);
  }
  ordered_json document = storage_json(source->storage);
  document["file"] = file_json(source->file);
  document["applies"] = applies_json(*source);
  document["policy"] = name_of(source->storage.policy.value_or(Policy::job));
  console.say_json("iosig.storage/1", document);
  return yes;
}

/// The data sizes for which the reliability is shown.
constexpr std::array<std::pair<std::uint64_t, const char*>, 3> shown_sizes{
    {{GiB, "1 GB"}, {100 * GiB, "100 GB"}, {TiB, "1 TB"}}};

/// Returns all direct and indirect members of `device`, each once.
std::vector<const Device*> members_of(const Storage& storage, const Device& device) {
  std::vector<const Device*> found{&device};
  for (std::size_t i = 0; i < found.size(); ++i)  // `found` grows in the loop
    if (found[i]->redundancy)
      for (const std::string& name : found[i]->redundancy->members)
        if (const Device* member = storage.find_device(name); std::ranges::count(found, member) == 0)
          found.push_back(member);
  found.erase(found.begin());
  return found;
}

/// The keys that are shown for a member. Speeds are not among them, because they are measured for the whole composite.
const std::vector<std::string_view> member_keys{"kind", "path",        "transport", "capacity", "mttf",
                                                "ber",  "sector_bits", "ecc_bits",  "mttr",     "redundancy"};

/// Adds the values that are computed from the description.
void add_computed(const Storage& storage, const Device& device, Table& table) {
  if (const auto uber = largest_uber(storage, device); uber && *uber > 0)
    table.add(
        {"  UBER", fmt::format("{:.3g}", *uber), origin_name(Origin::computed), "uncorrectable bit errors per bit"});
  for (const auto& [size_bytes, size_text] : shown_sizes) {
    const auto mttdl = mttdl_s(storage, device, size_bytes);
    const bool is_eq2 = mttdl && *mttdl == eq2_mttdl_s(storage, device, size_bytes).value_or(0);
    const char* meaning = is_eq2 ? "mean time to data loss, by Eq. 2" : "mean time to data loss";
    table.add({fmt::format("  MTTDL of {}", size_text), mttdl ? about_seconds(*mttdl) : "-",
               mttdl ? origin_name(Origin::computed) : "", mttdl ? meaning : mttdl.error().message});
    if (!mttdl) break;  // the reason is the same for every size
  }
}

ordered_json shown_json(const Storage& storage, const MountPoint& mount, const Device& device) {
  ordered_json shown = mount_point_json(mount);
  shown["device"] = device_json(device);
  const auto uber = largest_uber(storage, device);
  ordered_json mttdl = ordered_json::array();
  for (const auto& [size_bytes, size_text] : shown_sizes) {
    const auto seconds = mttdl_s(storage, device, size_bytes);
    mttdl.push_back(
        {{"size_bytes", size_bytes}, {"mttdl_s", seconds ? ordered_json(*seconds) : ordered_json(nullptr)}});
  }
  shown["computed"] = {
      {"uncorrectable_bit_error_rate", uber && *uber > 0 ? ordered_json(*uber) : ordered_json(nullptr)},
      {"mttdl_of_1GB_s", mttdl[0]["mttdl_s"]},
      {"mttdl", std::move(mttdl)}};
  shown["members"] = ordered_json::array();
  for (const Device* member : members_of(storage, device)) shown["members"].push_back(device_json(*member));
  ordered_json spreads = ordered_json::object();
  for (const auto& [key, provenance] : device.provenance)
    if (!provenance.probed_low_text.empty())
      spreads[key] = {{"low", provenance.probed_low_text},
                      {"high", provenance.probed_high_text},
                      {"settled", provenance.probed_settled}};
  shown["spreads"] = std::move(spreads);
  return shown;
}

int run_show(const std::string& path, const std::string& file, Console& console) {
  const auto source = load_storage(file, console);
  if (!source) return console.fail(source.error());
  if (!source->file.empty()) console.note(fmt::format("storage description: {}", about_file(*source)));
  const Storage& storage = source->storage;
  const MountPoint* wanted = nullptr;  // null: all
  if (!path.empty()) {
    const auto known = described_mount_point(storage, path);
    if (!known) return console.fail(known.error());
    wanted = *known;
  }
  ordered_json shown = ordered_json::array();
  Table table({"VALUE", "", "ORIGIN", "SPREAD OR REMARK"});
  for (const MountPoint& mount : storage.mount_points) {
    if (wanted != nullptr && &mount != wanted) continue;
    const Device& device = *storage.find_device(mount.device);
    shown.push_back(shown_json(storage, mount, device));
    table.add({"mount point", printable(mount.path), "", ""});
    add_values(mount, mount_point_keys(), table);
    table.add({"device", printable(device.name), "", ""});
    add_values(device, device_keys(), table);
    add_computed(storage, device, table);
    for (const Device* member : members_of(storage, device)) {
      table.add({"member", printable(member->name), "", ""});
      add_values(*member, member_keys, table);
    }
  }
  if (path.empty()) {
    for (const Server& server : storage.servers) {
      table.add({"server", printable(server.name), "", ""});
      add_values(server, server_keys(), table);
    }
    if (storage.network) {
      table.add({"network", "", "", ""});
      add_values(*storage.network, network_keys(), table);
    }
  }
  if (console.json)
    console.say_json("iosig.storage.values/1", {{"file", file_json(source->file)},
                                                {"applies", applies_json(*source)},
                                                {"mount_points", std::move(shown)},
                                                {"servers", servers_json(storage)},
                                                {"network", network_json(storage)}});
  else
    console.say(table);
  return yes;
}

}  // namespace

void add_storage(Verb app, Action& action) {
  const Verb storage = app.add_verb("storage", "Describe the storage of this machine");
  storage.require_verb();
  storage.footer("Example: iosig storage probe --quick && iosig storage list");
  const auto file = std::make_shared<std::string>();
  const auto add = [&](const char* name, const char* what, const char* example) {
    const Verb verb = storage.add_verb(name, what);
    verb.footer(std::string("Example: ") + example);
    return verb;
  };
  const Verb probe = add("probe", "Find and measure the storage where you can put files, and write storage.toml",
                         "iosig storage probe --quick --dry-run");
  const auto flags = std::make_shared<ProbeFlags>();
  probe.add_flag("--quick", flags->quick, "2 to 4 s and 64 MB for each mount point instead of 10 to 20 s and 256 MB");
  const auto output =
      probe.add_option("--output", flags->output, "file to write instead of the user's description").type_name("FILE");
  const auto this_host =
      probe.add_flag("--this-host", flags->this_host, "describe this host alone, for a home directory that hosts share")
          .excludes(output);
  probe.add_option("--hosts", flags->hosts, "describe the hosts that this glob pattern covers, e.g. 'node*'")
      .type_name("PATTERN")
      .excludes(output)
      .excludes(this_host);
  probe.add_option("--mount", flags->mounts, "probe only this directory (repeatable); the rest of the file stays")
      .type_name("PATH")
      .repeatable();
  probe.add_flag("--force", flags->force, "replace the description even if other programs keep the machine busy");
  probe.add_flag("--dry-run", flags->dry_run, "measure and show, but write nothing");
  add_network_options(probe, flags->network);
  probe.when_chosen(action, "iosig.storage/1", [flags](Console& console) { return run_probe(*flags, console); });

  const Verb list = add("list", "One line for each mount point", "iosig storage list --storage storage.toml");
  add_storage_option(list, *file);
  list.when_chosen(action, "iosig.storage/1", [file](Console& console) { return run_list(*file, console); });

  const Verb show = add("show", "Every value, where it came from, and how far the measurements spread",
                        "iosig storage show /dev/shm");
  const auto path = std::make_shared<std::string>();
  show.add_option("MOUNTPOINT", *path, "only this mount point").type_name("PATH");
  add_storage_option(show, *file);
  show.when_chosen(action, "iosig.storage.values/1",
                   [path, file](Console& console) { return run_show(*path, *file, console); });
}

}  // namespace iosig::cli
