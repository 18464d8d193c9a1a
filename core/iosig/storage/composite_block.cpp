// Composites of this machine's block devices.
//
// Sources: the kernel's Documentation/admin-guide/md.rst (directory md/ in sysfs),
// Documentation/admin-guide/device-mapper/ (lines of tables), Documentation/admin-guide/bcache.rst.
#include <algorithm>
#include <span>

#include "iosig/base/text.h"
#include "iosig/storage/composite_readers.h"
#include "iosig/storage/hardware.h"

namespace iosig {
namespace {

namespace fs = std::filesystem;
using Words = std::span<const std::string_view>;

constexpr std::uint64_t max_disks = 4096;

/// Returns the block device, by kernel name, to which `link` in sysfs leads.
std::optional<Part> linked_block(const fs::path& link) {
  std::error_code failure;
  const fs::path directory = fs::canonical(link, failure);
  if (failure) return std::nullopt;
  return block_part(directory.filename().string());
}

/// Returns RAID level 5 or 6; over the minimum of two or three devices they are mirrors.
std::optional<Part> parity_part(RedundancyScheme scheme, std::uint32_t parity, std::vector<Part> parts) {
  if (parts.size() < parity + 2) return tolerant_part(parity, std::move(parts));
  return composite_part(scheme, std::move(parts));
}

/// Returns RAID 10. With `near` copies on consecutive disks it is a stripe of mirrors. Otherwise (odd number of disks,
/// far copies) each disk shares data with several others, and only as many losses as there are additional copies are
/// certain to be survived.
std::optional<Part> raid10_part(std::uint32_t near, std::uint32_t far, std::vector<Part> parts) {
  if (near == 0 || far == 0 || near > max_disks || far > max_disks) return std::nullopt;
  if (far != 1 || parts.size() % near != 0 || near == 1 || parts.size() == near)
    return tolerant_part(near * far - 1, std::move(parts));
  if (near == 2) return composite_part(RedundancyScheme::raid10, std::move(parts));
  return striped_groups(near - 1, near, std::move(parts));
}

// ---- device-mapper --------------------------------------------------------------------------------------------------

/// The words of a segment of a table after the target's name. Targets name devices as "8:16".
class Segment {
 public:
  Segment(Words words, const Machine& machine) : words_(words), sysfs_(machine.sysfs) {}

  [[nodiscard]] std::string_view word(std::size_t i) const { return i < words_.size() ? words_[i] : ""; }
  [[nodiscard]] std::optional<std::uint32_t> count(std::size_t i) const {
    const auto count = parse_count(word(i));
    return count && *count <= max_disks ? count : std::nullopt;
  }
  [[nodiscard]] std::optional<Part> device(std::size_t i) const {
    const auto number = split(word(i), ':');
    if (number.size() != 2 || !parse_count(number[0]) || !parse_count(number[1])) return std::nullopt;
    return linked_block(fs::path(sysfs_) / "dev" / "block" / word(i));
  }
  /// Returns `count` devices, one every `step` words.
  [[nodiscard]] std::optional<std::vector<Part>> devices(std::size_t first, std::size_t count, std::size_t step) const {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < count; ++i) {
      auto part = device(first + i * step);
      if (!part) return std::nullopt;  // "-" is a missing device
      parts.push_back(*std::move(part));
    }
    return parts;
  }
  /// Returns a composite that needs all of the devices.
  [[nodiscard]] std::optional<Part> all(std::initializer_list<std::size_t> places) const {
    std::vector<Part> parts;
    for (const std::size_t place : places) {
      auto part = device(place);
      if (!part) return std::nullopt;
      parts.push_back(*std::move(part));
    }
    return composite_part(RedundancyScheme::stripe, std::move(parts));
  }

 private:
  Words words_;
  fs::path sysfs_;
};

/// striped: <#stripes> <chunk> [<device> <offset>]...
std::optional<Part> read_striped(const Segment& segment) {
  auto parts = segment.devices(2, segment.count(0).value_or(0), 2);
  return parts && !parts->empty() ? tolerant_part(0, *std::move(parts)) : std::nullopt;
}

/// mirror: <log> <#log words> <log words>... <#mirrors> [<device> <offset>]...
std::optional<Part> read_mirror(const Segment& segment) {
  const auto log = segment.count(1);
  const auto count = log ? segment.count(2 + *log) : std::nullopt;
  if (!count || *count == 0) return std::nullopt;
  auto parts = segment.devices(3 + *log, *count, 2);
  return parts ? tolerant_part(*count - 1, *std::move(parts)) : std::nullopt;
}

/// raid: <type> <#words> <words>... <#devices> [<metadata device> <device>]...
std::optional<Part> read_raid(const Segment& segment) {
  const std::string_view type = segment.word(0);
  const auto words = segment.count(1);
  const auto count = words ? segment.count(2 + *words) : std::nullopt;
  auto parts = count ? segment.devices(4 + *words, *count, 2) : std::nullopt;
  if (!parts || parts->empty()) return std::nullopt;
  if (type == "raid0") return tolerant_part(0, *std::move(parts));
  if (type == "raid1") return tolerant_part(*count - 1, *std::move(parts));
  if (type == "raid4" || type.starts_with("raid5")) return parity_part(RedundancyScheme::raid5, 1, *std::move(parts));
  if (type.starts_with("raid6")) return parity_part(RedundancyScheme::raid6, 2, *std::move(parts));
  if (!type.starts_with("raid10")) return std::nullopt;
  std::uint32_t copies = 2;
  bool is_near = true;
  for (std::size_t i = 2; i + 1 < 2 + *words; ++i) {
    if (segment.word(i) == "raid10_copies") copies = segment.count(i + 1).value_or(0);
    if (segment.word(i) == "raid10_format") is_near = segment.word(i + 1) == "near";
  }
  return is_near ? raid10_part(copies, 1, *std::move(parts)) : raid10_part(1, copies, *std::move(parts));
}

/// cache: <metadata> <cache> <origin> <block size> <#features> <features>...
std::optional<Part> read_cache(const Segment& segment) {
  const auto features = segment.count(4);
  if (!features) return std::nullopt;
  for (std::size_t i = 5; i < 5 + *features; ++i)
    if (segment.word(i) == "writethrough" || segment.word(i) == "passthrough") return segment.device(2);
  return segment.all({2, 1, 0});
}

std::optional<Part> read_segment(std::string_view target, const Segment& segment) {
  if (target == "linear" || target == "integrity" || target == "delay" || target == "snapshot-origin" ||
      target == "thin")
    return segment.device(0);
  if (target == "crypt") return segment.device(3);         // <cipher> <key> <iv offset> <device> <offset>
  if (target == "snapshot") return segment.all({0, 1});    // <origin> <changes> ...
  if (target == "thin-pool") return segment.all({1, 0});   // <metadata> <data> ...
  if (target == "writecache") return segment.all({1, 2});  // s|p <origin> <cache> ...
  if (target == "striped") return read_striped(segment);
  if (target == "mirror") return read_mirror(segment);
  if (target == "raid") return read_raid(segment);
  if (target == "cache") return read_cache(segment);
  return std::nullopt;  // multipath is one device over several paths; others are unknown
}

/// Returns whether `dmsetup status` reports failed ("D") or rebuilding ("a" among "A") devices in a RAID segment, as
/// in: 0 4096 raid raid1 2 AA 4096/4096 idle 0
bool is_degraded(std::string_view status) {
  for (const std::string_view line : split(status, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 6 || words[2] != "raid") continue;
    if (words[5].empty() || words[5].find_first_not_of(words[5].front()) != std::string_view::npos) return true;
    if (words[5].front() != 'A' && words[5].front() != 'a') return true;
  }
  return false;
}

/// Returns the single device below, which is all that is visible without root.
std::optional<Part> single_slave(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> slaves;
  for (fs::directory_iterator it(directory / "slaves", failure), end; !failure && it != end; it.increment(failure))
    slaves.push_back(it->path());
  const std::string uuid = read_word(directory / "dm" / "uuid").value_or("");
  if (failure || slaves.size() != 1 || uuid.starts_with("mpath-")) return std::nullopt;
  return linked_block(slaves.front());
}

}  // namespace

/// | md | sysfs, `md/` | `stripe` (linear, raid0), `raid1`, `raid5` (and 4), `raid6`, `raid10` (near copies on pairs;
/// other layouts as `mds` with one parity less than there are copies) |
std::optional<Part> read_md(const fs::path& directory, const Machine&) {
  const auto level = read_word(directory / "md" / "level");
  const auto disks = read_count(directory / "md" / "raid_disks");
  if (!level || !disks || *disks == 0 || *disks > max_disks) return std::nullopt;
  if (read_count(directory / "md" / "degraded").value_or(0) != 0) return std::nullopt;
  std::vector<Part> parts;
  for (std::uint64_t i = 0; i < *disks; ++i) {
    const fs::path disk = directory / "md" / fmt::format("rd{}", i);
    const std::string state = read_word(disk / "state").value_or("");
    const auto states = split(state, ',');
    auto part = linked_block(disk / "block");
    if (!part || std::ranges::count(states, "in_sync") == 0 || std::ranges::count(states, "faulty") > 0)
      return std::nullopt;
    parts.push_back(*std::move(part));
  }
  const auto losses = static_cast<std::uint32_t>(*disks) - 1;
  if (*level == "linear" || *level == "raid0") return tolerant_part(0, std::move(parts));
  if (*level == "raid1") return tolerant_part(losses, std::move(parts));
  if (*level == "raid4" || *level == "raid5") return parity_part(RedundancyScheme::raid5, 1, std::move(parts));
  if (*level == "raid6") return parity_part(RedundancyScheme::raid6, 2, std::move(parts));
  const auto layout = read_count(directory / "md" / "layout");
  if (*level != "raid10" || !layout) return std::nullopt;
  return raid10_part(*layout & 0xff, (*layout >> 8) & 0xff, std::move(parts));
}

/// | device-mapper, LVM | `dmsetup table` and `status` (root); else `slaves/`, if there is one | over one device
/// (linear, crypt, thin, ...): as that device; `striped`, several segments, caches that write back: `stripe`; `mirror`,
/// `raid`: as md |
std::optional<Part> read_device_mapper(const fs::path& directory, const Machine& machine) {
  std::error_code failure;
  if (!fs::exists(directory / "dm", failure)) return std::nullopt;
  const std::string number_text = read_word(directory / "dev").value_or("");
  const auto number = split(number_text, ':');
  if (number.size() != 2 || !parse_count(number[0]) || !parse_count(number[1])) return std::nullopt;
  const auto dmsetup = [&](const char* what) {
    return ask(machine, {"dmsetup", what, "-j", std::string(number[0]), "-m", std::string(number[1])});
  };
  const auto table = dmsetup("table");
  if (!table) return single_slave(directory);
  std::vector<Part> segments;
  std::uint64_t sectors = 0;
  bool is_raid = false;
  for (const std::string_view line : split(*table, '\n')) {
    const auto words = words_of(line);
    if (words.empty()) continue;
    if (words.size() < 4 || words[0] != std::to_string(sectors)) return std::nullopt;
    sectors += parse_count<std::uint64_t>(words[1]).value_or(0);
    auto segment = read_segment(words[2], Segment(Words(words).subspan(3), machine));
    if (!segment) return std::nullopt;
    is_raid |= words[2] == "raid";
    segments.push_back(*std::move(segment));
  }
  if (is_raid)
    if (const auto status = dmsetup("status"); !status || is_degraded(*status)) return std::nullopt;
  if (segments.empty() || sectors != read_count(directory / "size")) return std::nullopt;
  if (segments.size() == 1) return std::move(segments.front());
  return composite_part(RedundancyScheme::stripe, std::move(segments));
}

/// | bcache | sysfs | its backing device; with a cache that writes back, a `stripe` of both |
std::optional<Part> read_bcache(const fs::path& directory, const Machine&) {
  const auto mode = read_word(directory / "bcache" / "cache_mode");  // "writethrough [writeback] writearound none"
  std::error_code failure;
  std::optional<Part> backing;
  std::vector<Part> needed;
  for (fs::directory_iterator it(directory / "slaves", failure), end; !failure && it != end; it.increment(failure)) {
    auto part = linked_block(it->path());
    if (!mode || !part) return std::nullopt;
    if (fs::exists(it->path() / "bcache" / "cache_mode", failure)) backing = part;
    needed.push_back(*std::move(part));
  }
  if (failure || !backing || needed.size() > 2) return std::nullopt;
  if (mode->find("[writeback]") == std::string::npos) return backing;
  std::ranges::sort(needed, {}, &Part::name);
  return composite_part(RedundancyScheme::stripe, std::move(needed));
}

}  // namespace iosig
