// Composites behind network file systems, as reported by their clients' own tools.
//
// Servers are not asked for more: what a brick, a target or an OST is made of is unknown unless the user adds it to the
// description. If the servers of a file system are not known individually, only the code of its data is reported.
// Sources: each file system's manual, and the source of its tool where the manual does not show the output; each case
// in tests/data/composites names its own.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/storage/composite_readers.h"

namespace iosig {
namespace {

using nlohmann::ordered_json;

constexpr int max_json_depth = 64;
constexpr std::size_t max_servers = 10000;

/// Returns the rest of the first line that starts with `key`, or nothing.
std::optional<std::string_view> line_after(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n'))
    if (const std::string_view body = trimmed(line); body.starts_with(key)) return trimmed(body.substr(key.size()));
  return std::nullopt;
}

Part named(Part part, std::string name, std::string path) {
  part.name = std::move(name);
  part.path = std::move(path);
  return part;
}

std::optional<Part> named(std::optional<Part> part, std::string name, std::string path) {
  if (!part) return part;
  return named(*std::move(part), std::move(name), std::move(path));
}

/// Returns a stripe over devices elsewhere, or nothing if there are none.
std::optional<Part> stripe_of(const std::vector<std::string>& names) {
  if (names.empty() || names.size() > max_servers) return std::nullopt;
  std::vector<Part> parts;
  for (const std::string& name : names) parts.push_back(part_elsewhere(name));
  return composite_part(RedundancyScheme::stripe, std::move(parts));
}

// ---- GlusterFS ------------------------------------------------------------------------------------------------------

/// "2 x 3 = 6", "1 x (4 + 2) = 6" or "6": the number of groups, and of each group's data bricks and other bricks.
struct Shape {
  std::uint32_t groups = 0, data = 0, more = 0;
};

std::optional<Shape> shape_of(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  std::string form;
  for (const std::string_view word : words_of(text)) {
    std::string_view digits = word;
    while (digits.starts_with('(')) digits.remove_prefix(1);
    while (digits.ends_with(')')) digits.remove_suffix(1);
    if (const auto number = parse_count(digits)) {
      if (*number == 0 || *number > max_servers) return std::nullopt;
      numbers.push_back(*number);
      form += 'n';
    } else {
      form += word;
    }
  }
  Shape shape;
  if (form == "n")
    shape = {numbers[0], 1, 0};
  else if (form == "nxn=n")
    shape = {numbers[0], numbers[1], 0};
  else if (form == "nx(n+n)=n" || form == "nxn+n=n")
    shape = {numbers[0], numbers[1], numbers[2]};
  else
    return std::nullopt;
  if (std::uint64_t{shape.groups} * (shape.data + shape.more) != numbers.back()) return std::nullopt;
  return shape;
}

/// Returns bricks such as "server1:/data/brick (arbiter)" by number; nothing unless they are numbered 1 to `count`.
std::optional<std::vector<std::string_view>> bricks_of(std::string_view info, std::size_t count) {
  std::map<std::string_view, std::string_view> values;  // "Brick1" and the text after its colon
  for (const std::string_view line : split(info, '\n')) {
    const std::string_view body = trimmed(line);
    if (const std::size_t colon = body.find(':'); body.starts_with("Brick") && colon != std::string_view::npos)
      values.emplace(body.substr(0, colon), trimmed(body.substr(colon + 1)));
  }
  std::vector<std::string_view> bricks;
  for (std::size_t i = 1; i <= count; ++i) {
    const auto brick = values.find(fmt::format("Brick{}", i));
    if (brick == values.end() || brick->second.find(":/") == std::string_view::npos) return std::nullopt;
    bricks.push_back(brick->second);
  }
  return bricks;
}

// ---- what tools print as JSON ---------------------------------------------------------------------------------------

/// Returns the document that a tool prints; nothing if it failed, or printed something else.
std::optional<ordered_json> ask_json(const Machine& machine, const Command& command) {
  const auto answer = machine.run(command);
  if (!answer) return std::nullopt;
  ordered_json document = parse_json(*answer, max_json_depth);
  if (document.is_discarded()) return std::nullopt;
  return document;
}

std::string text_at(const ordered_json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

/// Returns the number at `key`, also of a string: Ceph's profiles have "k": "4".
std::uint32_t count_at(const ordered_json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (it == object.end()) return 0;
  if (it->is_number_unsigned())
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(it->get<std::uint64_t>(), 1u << 20));
  return it->is_string() ? parse_count(it->get<std::string>()).value_or(0) : 0;
}

// ---- CephFS ---------------------------------------------------------------------------------------------------------

std::optional<ordered_json> ask_ceph(const Machine& machine, std::vector<std::string> words) {
  Command command{"ceph"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"--connect-timeout", "2", "--format", "json"});
  return ask_json(machine, command);
}

/// Returns the name from "admin@<fsid>.NAME=/" or an option; "" if the mount has none.
std::string ceph_filesystem(const Mount& mount) {
  for (const char* option : {"fs", "mds_namespace", "client_fs"})
    if (auto name = option_of(mount, option)) return *name;
  const std::size_t at = mount.source.find('@'), dot = mount.source.find('.', at), end = mount.source.find('=', dot);
  return end == std::string::npos ? "" : mount.source.substr(dot + 1, end - dot - 1);
}

/// Returns the pool of new files below the mount.
std::string ceph_pool(const Mount& mount, const Machine& machine) {
  const auto layout =
      machine.run({"getfattr", "--absolute-names", "--only-values", "-n", "ceph.dir.layout.pool", mount.path});
  if (layout && !trimmed(*layout).empty()) return std::string(trimmed(*layout));
  const auto filesystems = ask_ceph(machine, {"fs", "ls"});
  if (!filesystems || !filesystems->is_array()) return {};
  const std::string wanted = ceph_filesystem(mount);
  const ordered_json* found = nullptr;
  for (const ordered_json& filesystem : *filesystems) {
    if (!wanted.empty() && text_at(filesystem, "name") != wanted) continue;
    if (found != nullptr) return {};
    found = &filesystem;
  }
  const auto pools =
      found != nullptr && found->is_object() ? found->find("data_pools") : ordered_json::const_iterator{};
  if (found == nullptr || pools == found->end() || !pools->is_array() || pools->size() != 1) return {};
  return pools->front().is_string() ? pools->front().get<std::string>() : std::string{};
}

/// Other plugins (lrc, shec) are not MDS codes.
constexpr std::array<std::string_view, 3> mds_plugins{"jerasure", "isa", "clay"};

// ---- BeeGFS ---------------------------------------------------------------------------------------------------------

/// Returns the rows of numbers below the ruler "====  ====" of a table.
std::vector<std::vector<std::string_view>> rows_of(std::string_view table) {
  std::vector<std::vector<std::string_view>> rows;
  bool is_below = false;
  for (const std::string_view line : split(table, '\n')) {
    auto words = words_of(line);
    if (words.empty()) continue;
    if (words.front().find_first_not_of('=') == std::string_view::npos)
      is_below = true;
    else if (is_below && parse_count(words.front()))
      rows.push_back(std::move(words));
  }
  return rows;
}

}  // namespace

/// | GlusterFS | `gluster volume info` | bricks: `stripe` (distribute) of `replica` or `mds` (disperse); an arbiter
/// holds no data |
std::optional<Part> read_glusterfs(const Mount& mount, const Machine& machine) {
  const std::size_t colon = mount.source.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string server = mount.source.substr(0, colon);
  std::string volume = mount.source.substr(colon + 1);
  if (volume.starts_with('/')) volume.erase(0, 1);
  volume = volume.substr(0, volume.find('/'));  // a subdirectory may be mounted
  if (!is_plain(server) || !is_plain(volume)) return std::nullopt;
  const auto info = ask(machine, {"gluster", "--mode=script", "--log-file=/dev/null", "--remote-host=" + server,
                                  "volume", "info", volume});
  if (!info || line_after(*info, "Volume Name:") != volume) return std::nullopt;
  const auto type = line_after(*info, "Type:"), number = line_after(*info, "Number of Bricks:");
  const auto shape = number ? shape_of(*number) : std::nullopt;
  if (!type || !shape) return std::nullopt;
  const std::size_t each = shape->data + shape->more;
  const auto bricks = bricks_of(*info, shape->groups * each);
  if (!bricks) return std::nullopt;
  // An arbiter, the last of its group, votes but holds no data.
  const bool is_replicated = type->ends_with("Replicate"), has_arbiter = is_replicated && shape->more != 0;
  std::vector<Part> parts;
  for (std::size_t i = 0; i < bricks->size(); ++i) {
    if (has_arbiter && i % each >= shape->data) continue;
    const std::string_view brick = (*bricks)[i].substr(0, (*bricks)[i].find(" ("));
    parts.push_back(part_elsewhere(std::string(brick)));
    parts.back().path = brick;
  }
  std::optional<Part> whole;
  if (*type == "Distribute" && each == 1)
    whole = tolerant_part(0, std::move(parts));
  else if (is_replicated && shape->data > 1)
    whole = striped_groups(shape->data - 1, shape->data, std::move(parts));
  else if (type->ends_with("Disperse") && shape->more != 0)
    whole = striped_groups(shape->more, each, std::move(parts));
  return named(std::move(whole), volume, mount.source);
}

/// | CephFS | `getfattr`, `ceph` | the data pool's code, without members: `replica` or `mds` |
std::optional<Part> read_cephfs(const Mount& mount, const Machine& machine) {
  const std::string pool_name = ceph_pool(mount, machine);
  const auto pools = pool_name.empty() ? std::nullopt : ask_ceph(machine, {"osd", "pool", "ls", "detail"});
  if (!pools || !pools->is_array()) return std::nullopt;
  for (const ordered_json& pool : *pools) {
    if (text_at(pool, "pool_name") != pool_name) continue;
    const std::string profile = text_at(pool, "erasure_code_profile");
    std::optional<Part> whole;
    if (count_at(pool, "type") == 1 && count_at(pool, "size") > 1) {
      whole = unnamed_part(RedundancyScheme::replica, 1, count_at(pool, "size") - 1);
    } else if (count_at(pool, "type") == 3 && is_plain(profile)) {
      const auto code = ask_ceph(machine, {"osd", "erasure-code-profile", "get", profile});
      if (code && std::ranges::count(mds_plugins, text_at(*code, "plugin")) > 0)
        whole = unnamed_part(RedundancyScheme::mds, count_at(*code, "k"), count_at(*code, "m"));
    }
    return named(std::move(whole), "ceph-" + pool_name, mount.source);
  }
  return std::nullopt;
}

/// | Lustre | `lfs` | `stripe` of the OSTs, or of those of the default pool; with mirrored files `mds`. MDTs are left
/// out |
std::optional<Part> read_lustre(const Mount& mount, const Machine& machine) {
  const std::size_t colon = mount.source.find(":/");
  if (colon == std::string::npos) return std::nullopt;
  std::string name = mount.source.substr(mount.source.rfind(":/") + 2);
  name = name.substr(0, name.find('/'));  // a subdirectory may be mounted
  const auto usage = ask(machine, {"lfs", "df", mount.path});
  const auto layout = ask(machine, {"lfs", "getstripe", "-d", mount.path});
  if (!is_plain(name) || !usage || !layout || !line_after(*usage, "filesystem_summary:")) return std::nullopt;
  std::vector<std::string> targets;
  const auto add_target = [&](std::string_view uuid) {  // lustre-OST0000_UUID
    if (uuid.starts_with(name + "-OST")) targets.emplace_back(uuid.substr(0, uuid.find("_UUID")));
  };
  // In a default layout of several components (each with "pool:") the pools may differ; then all targets count.
  const std::size_t pool_at = layout->find("pool:");
  if (pool_at != std::string::npos && layout->find("pool:", pool_at + 1) == std::string::npos) {
    const auto words = words_of(std::string_view(*layout).substr(pool_at + 5));
    if (words.empty() || !is_plain(words.front())) return std::nullopt;
    const auto members = ask(machine, {"lfs", "pool_list", fmt::format("{}.{}", name, words.front())});
    if (!members) return std::nullopt;
    for (const std::string_view line : split(*members, '\n')) add_target(trimmed(line));
  } else {
    for (const std::string_view line : split(*usage, '\n'))
      if (line.find("inactive device") == std::string_view::npos)
        if (const auto words = words_of(line); !words.empty()) add_target(words.front());
  }
  std::optional<Part> whole = stripe_of(targets);
  const std::uint32_t mirrors = parse_count(line_after(*layout, "lcm_mirror_count:").value_or("1")).value_or(0);
  if (whole && mirrors != 1) whole = mirrors == 0 ? std::nullopt : tolerant_part(mirrors - 1, std::move(whole->parts));
  return named(std::move(whole), name, mount.source);
}

/// | BeeGFS | `beegfs-ctl` | `stripe` of targets or, with buddy mirrors, of `replica`s |
std::optional<Part> read_beegfs(const Mount& mount, const Machine& machine) {
  const auto entry = ask(machine, {"beegfs-ctl", "--getentryinfo", mount.path});
  const auto type = entry ? line_after(*entry, "+ Type:") : std::nullopt;
  const std::string name = "beegfs" + mount.path;  // the client reports no name of the management servers
  const auto list = [&](const char* what) {
    return ask(machine, {"beegfs-ctl", what, "--nodetype=storage", "--mount=" + mount.path});
  };
  const auto target = [&](std::string_view id) { return part_elsewhere(fmt::format("{}-target-{}", name, id)); };
  std::vector<Part> parts;
  if (type == "RAID0") {
    const auto table = list("--listtargets");
    if (!table) return std::nullopt;
    for (const auto& row : rows_of(*table)) parts.push_back(target(row[0]));
    return named(parts.empty() ? std::nullopt : tolerant_part(0, std::move(parts)), name, mount.source);
  }
  if (type != "Buddy Mirror") return std::nullopt;
  const auto table = list("--listmirrorgroups");
  if (!table) return named(unnamed_part(RedundancyScheme::replica, 1, 1), name, mount.source);
  for (const auto& row : rows_of(*table)) {
    if (row.size() < 3) return std::nullopt;
    parts.insert(parts.end(), {target(row[1]), target(row[2])});
  }
  return named(striped_groups(1, 2, std::move(parts)), name, mount.source);
}

/// | GPFS | `mmlsfs` | `replica`, without members, from two default copies of data and metadata on |
std::optional<Part> read_gpfs(const Mount& mount, const Machine& machine) {
  const std::string name = mount.source.substr(mount.source.rfind('/') + 1);  // gpfs0 or /dev/gpfs0
  if (!is_plain(name)) return std::nullopt;
  std::uint32_t copies = 0;
  for (const std::string flag : {"-m", "-r"}) {  // default number of copies of metadata, of data
    const auto table = ask(machine, {"mmlsfs", name, flag});
    const auto row = table ? line_after(*table, flag + " ") : std::nullopt;
    const auto words = words_of(row.value_or(""));
    const auto count = words.empty() ? std::nullopt : parse_count(words.front());
    if (!count || *count < 2) return std::nullopt;
    copies = copies == 0 ? *count : std::min(copies, *count);
  }
  return named(unnamed_part(RedundancyScheme::replica, 1, copies - 1), name, mount.source);
}

/// | MooseFS | `mfsgetsclass`, `mfslistsclass` | `replica`, without members: the copies of the storage class, the
/// fewest once archived |
std::optional<Part> read_moosefs(const Mount& mount, const Machine& machine) {
  const auto answer = ask(machine, {"mfsgetsclass", mount.path});  // "/mnt/mfs: 'archive'", "/mnt/mfs: 3"
  const auto classes = ask(machine, {"mfslistsclass", "-l", mount.path});
  std::string_view name = answer ? line_after(*answer, mount.path + ":").value_or("") : "";
  if (name.size() > 2 && name.front() == '\'' && name.back() == '\'') name = name.substr(1, name.size() - 2);
  const auto definition = classes && !name.empty() ? line_after(*classes, fmt::format("{} : ", name)) : std::nullopt;
  if (!definition) return std::nullopt;
  // "2 ; admin_only: NO ; ... ; keep_labels: [A] , [A] ; archive_labels: [B]": one copy for each label.
  std::optional<std::uint32_t> copies;
  for (const std::string_view field : split(*definition, ';'))
    if (const std::string_view labels = trimmed(field);
        labels.starts_with("keep_labels:") || labels.starts_with("archive_labels:")) {
      const auto count = static_cast<std::uint32_t>(std::ranges::count(labels, '['));
      copies = std::min(copies.value_or(count), count);
    }
  if (!copies || *copies < 2) return std::nullopt;
  return named(unnamed_part(RedundancyScheme::replica, 1, *copies - 1), "", mount.source);
}

/// | OrangeFS | `pvfs2-statfs` | `stripe` of its I/O servers |
std::optional<Part> read_orangefs(const Mount& mount, const Machine& machine) {
  const auto statistics = ask(machine, {"pvfs2-statfs", "-m", mount.path});
  const std::size_t begin = statistics ? statistics->find("I/O server statistics:") : std::string::npos;
  if (begin == std::string::npos) return std::nullopt;
  std::vector<std::string> servers;
  for (const std::string_view line : split(std::string_view(*statistics).substr(begin), '\n'))
    if (line.starts_with("server:")) servers.emplace_back(trimmed(line.substr(7)));
  return named(stripe_of(servers), "orangefs-" + mount.source.substr(mount.source.rfind('/') + 1), mount.source);
}

}  // namespace iosig
