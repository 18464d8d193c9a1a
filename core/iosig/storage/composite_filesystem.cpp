// Composites that local file systems make of this machine's block devices.
//
// Sources: the kernel's Documentation/ABI/testing/sysfs-fs-btrfs and fs/btrfs/sysfs.c (allocation/, devices/,
// devinfo/); zpool-status(8), zpoolconcepts(7).
#include <algorithm>
#include <array>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/storage/composite_readers.h"
#include "iosig/storage/hardware.h"

namespace iosig {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(directory, failure), end; !failure && it != end; it.increment(failure))
    entries.push_back(it->path());
  if (failure) return {};
  std::ranges::sort(entries);
  return entries;
}

// ---- btrfs ----------------------------------------------------------------------------------------------------------

/// The profiles and the number of lost devices that each survives. Chunks choose their devices independently, so even a
/// mirror over many devices survives only as many losses as it has additional copies, in the worst case.
constexpr std::array<std::pair<std::string_view, std::uint32_t>, 9> profiles{{{"single", 0},
                                                                              {"dup", 0},
                                                                              {"raid0", 0},
                                                                              {"raid1", 1},
                                                                              {"raid10", 1},
                                                                              {"raid5", 1},
                                                                              {"raid6", 2},
                                                                              {"raid1c3", 2},
                                                                              {"raid1c4", 3}}};

/// Returns the losses that everything on the file system survives: data, metadata and system chunks of each profile in
/// use (several after an incomplete conversion). Returns nothing if a profile is unknown.
std::optional<std::uint32_t> survived_losses(const fs::path& allocation) {
  std::optional<std::uint32_t> least;
  std::error_code failure;
  for (const char* type : {"data", "metadata", "system", "mixed"})
    for (const fs::path& profile : entries_of(allocation / type)) {
      const auto bytes = read_count(profile / "total_bytes");
      if (bytes == 0u || !fs::is_directory(profile, failure)) continue;
      const auto known =
          std::ranges::find(profiles, profile.filename().string(), &decltype(profiles)::value_type::first);
      if (known == profiles.end() || !bytes) return std::nullopt;
      least = std::min(least.value_or(known->second), known->second);
    }
  return least;
}

/// Returns whether a device is missing or being replaced.
bool is_incomplete(const fs::path& filesystem) {
  return std::ranges::any_of(entries_of(filesystem / "devinfo"), [](const fs::path& device) {
    return read_count(device / "missing").value_or(0) != 0 || read_count(device / "replace_target").value_or(0) != 0;
  });
}

// ---- ZFS ------------------------------------------------------------------------------------------------------------

/// One line of the tree in `zpool status`, with its indentation.
struct Vdev {
  std::size_t indent = 0;
  std::string_view name, state;
};

/// Returns the lines below "config:" that belong to a tree, without the title.
std::vector<Vdev> vdevs_of(std::string_view status) {
  std::vector<Vdev> vdevs;
  bool is_config = false;
  for (const std::string_view line : split(status, '\n')) {
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (words.front().ends_with(':')) {
      is_config = words.front() == "config:";
      continue;
    }
    if (!is_config || words.front() == "NAME") continue;
    vdevs.push_back({line.find(words.front()), words.front(), words.size() > 1 ? words[1] : std::string_view{}});
  }
  return vdevs;
}

/// Returns the losses survived: 2 for "raidz2-0", 1 for "draid1:4d:9c:1s-0", all but one of `parts` for a mirror.
/// Nothing for other kinds.
std::optional<std::uint32_t> losses_of(std::string_view name, std::size_t parts) {
  if (name.starts_with("mirror-")) return static_cast<std::uint32_t>(parts) - 1;
  for (const std::string_view kind : {"raidz", "draid"}) {
    if (!name.starts_with(kind)) continue;
    const std::string_view rest = name.substr(kind.size());
    return rest.empty() || rest[0] < '1' || rest[0] > '3' ? std::nullopt : std::optional<std::uint32_t>(rest[0] - '0');
  }
  return std::nullopt;
}

/// Reads the vdev at `vdevs[next]` and those indented below it, and advances `next` past them. Returns nothing unless
/// all of them are ONLINE.
std::optional<Part> read_vdev(const std::vector<Vdev>& vdevs, std::size_t& next, const std::string& pool) {
  const Vdev& vdev = vdevs[next++];
  std::vector<Part> parts;
  while (next < vdevs.size() && vdevs[next].indent > vdev.indent) {
    auto part = read_vdev(vdevs, next, pool);
    if (!part) return std::nullopt;
    parts.push_back(*std::move(part));
  }
  if (vdev.state != "ONLINE") return std::nullopt;
  if (parts.empty() && vdev.name.starts_with("/dev/")) return block_part(fs::path(vdev.name).filename().string());
  if (parts.empty()) return std::nullopt;  // a file: the device that it is stored on is unknown
  const auto losses = losses_of(vdev.name, parts.size());
  auto code = losses ? tolerant_part(*losses, std::move(parts)) : std::nullopt;
  if (code) code->name = fmt::format("{}-{}", pool, vdev.name);
  return code;
}

}  // namespace

/// | btrfs | sysfs, `fs/btrfs/` | see below; the name of the device is `btrfs-` and the beginning of the UUID |
std::optional<Part> read_btrfs(const Mount& mount, const Machine& machine) {
  const auto directory = block_directory(mount, machine.sysfs);
  const std::string device = (directory ? *directory : fs::path(mount.source)).filename().string();
  std::error_code failure;
  for (const fs::path& filesystem : entries_of(fs::path(machine.sysfs) / "fs" / "btrfs")) {
    if (device.empty() || !fs::exists(filesystem / "devices" / device, failure)) continue;
    std::vector<Part> parts;
    for (const fs::path& member : entries_of(filesystem / "devices"))
      parts.push_back(block_part(member.filename().string()));
    const auto losses = survived_losses(filesystem / "allocation");
    if (!losses || is_incomplete(filesystem)) return std::nullopt;
    auto found = tolerant_part(*losses, std::move(parts));
    if (!found) return std::nullopt;
    const std::string uuid = filesystem.filename().string();
    found->name = "btrfs-" + uuid.substr(0, 8);
    found->path = "/dev/disk/by-uuid/" + uuid;
    return found;
  }
  return std::nullopt;
}

/// | ZFS | `zpool status` | mirrors as `raid1`, raidz and draid as `mds`; several vdevs, special ones too, as a
/// `stripe` of these; logs, caches and spares hold no data |
std::optional<Part> read_zfs(const Mount& mount, const Machine& machine) {
  const std::string pool = mount.source.substr(0, mount.source.find('/'));
  if (!is_plain(pool)) return std::nullopt;
  const auto status = ask(machine, {"zpool", "status", "-P", "-L", pool});
  if (!status || status->find("\nerrors:") == std::string::npos) return std::nullopt;  // its last line
  const std::vector<Vdev> vdevs = vdevs_of(*status);
  if (vdevs.empty() || vdevs.front().name != pool || vdevs.front().state != "ONLINE") return std::nullopt;
  const std::size_t root = vdevs.front().indent;
  std::vector<Part> parts;
  bool is_needed = true;
  for (std::size_t next = 1; next < vdevs.size();) {
    if (vdevs[next].indent <= root) {  // "logs", "cache" and "spares" hold no data; "special" and "dedup" do
      is_needed = vdevs[next].name == "special" || vdevs[next].name == "dedup";
      ++next;
    } else if (auto vdev = read_vdev(vdevs, next, pool)) {
      if (is_needed) parts.push_back(*std::move(vdev));
    } else if (is_needed) {
      return std::nullopt;
    }
  }
  if (parts.empty()) return std::nullopt;
  Part whole = parts.size() == 1 && parts.front().kind == Part::Kind::composite
                   ? std::move(parts.front())
                   : composite_part(RedundancyScheme::stripe, std::move(parts));
  whole.name = pool;
  return whole;
}

}  // namespace iosig
