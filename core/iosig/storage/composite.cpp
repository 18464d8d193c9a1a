#include "iosig/storage/composite.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/storage/composite_readers.h"

namespace iosig {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_levels = 8, max_devices = 10000;  // limits of a description (format/storage_toml)
constexpr std::size_t max_steps = 16;                       // from a mount to a disk, including layers over one device

/// A device with everything below it.
struct Tree {
  Device device;
  std::vector<Device> below = {};
  std::set<std::string> disks = {};  ///< names of the simple devices in it
  std::size_t levels = 1;            ///< of devices, including itself
  bool is_volatile = false;
};

/// Assembles the levels.
class Builder {
 public:
  Builder(const std::vector<Mount>& mounts, const Machine& machine) : mounts_(mounts), machine_(machine) {}

  /// Returns the tree of `part`; nothing if it is unknown. `name` is for a composite without a name of its own.
  [[nodiscard]] std::optional<Tree> tree(const Part& part, const std::string& name) {
    if (steps_ == max_steps) return std::nullopt;  // also ends cycles
    ++steps_;
    std::optional<Tree> found;
    switch (part.kind) {
      case Part::Kind::block: found = block(part.name); break;
      case Part::Kind::elsewhere: found = elsewhere(part); break;
      case Part::Kind::composite: found = composite(part, part.name.empty() ? name : part.name); break;
    }
    --steps_;
    return found;
  }

 private:
  /// | partition | sysfs | its disk, if it is a member: two partitions of a disk fail together |
  [[nodiscard]] std::optional<Tree> block(const std::string& kernel_name) {
    std::error_code failure;
    fs::path directory = fs::canonical(fs::path(machine_.sysfs) / "class" / "block" / kernel_name, failure);
    if (failure) return std::nullopt;
    if (fs::exists(directory / "partition", failure)) directory = directory.parent_path();
    Hardware hardware = inspect_block_device(directory, mounts_);
    const std::string name = hardware.device.name;
    for (const auto read : block_readers) {
      const std::optional<Part> part = read(directory, machine_);
      std::optional<Tree> found = part ? tree(*part, name) : std::nullopt;
      if (!found) continue;
      if (found->device.name != name) return found;  // a layer over one device
      hardware.device.redundancy = std::move(found->device.redundancy);
      found->device = std::move(hardware.device);
      mark_composite(found->device);
      return found;
    }
    return Tree{.device = std::move(hardware.device), .disks = {name}, .is_volatile = hardware.is_volatile};
  }

  static Tree elsewhere(const Part& part) {
    Tree tree;
    tree.device.name = part.name;
    tree.device.path = part.path;
    tree.disks = {part.name};
    set_kind(tree.device, DeviceKind::network);
    if (!part.path.empty()) set_origin(tree.device.provenance, "path", Origin::inspected);
    return tree;
  }

  [[nodiscard]] std::optional<Tree> composite(const Part& part, const std::string& name) {
    Redundancy redundancy;
    redundancy.scheme = part.scheme;
    redundancy.data = part.data;
    redundancy.parity = part.parity;
    const bool is_stripe = part.scheme == RedundancyScheme::stripe;
    Tree whole;
    whole.device.name = name;
    std::optional<Tree> only;
    for (const Part& each : part.parts) {
      auto member = tree(each, fmt::format("{}-{}", name, redundancy.members.size()));
      if (!member) return std::nullopt;
      if (is_stripe && std::ranges::count(redundancy.members, member->device.name) > 0) continue;
      const auto is_shared = [&](const std::string& disk) { return whole.disks.contains(disk); };
      if (!is_stripe && std::ranges::any_of(member->disks, is_shared)) return std::nullopt;
      redundancy.members.push_back(member->device.name);
      add(*member, whole);
      only = std::move(member);
    }
    if (redundancy.members.size() == 1 && is_stripe) return only;
    if (!code_of(redundancy) || whole.below.size() >= max_devices || whole.levels > max_levels) return std::nullopt;
    if (part.parts.empty()) whole.disks = {name};
    whole.device.path = part.path;
    whole.device.redundancy = std::move(redundancy);
    mark_composite(whole.device);
    return whole;
  }

  static void add(const Tree& member, Tree& whole) {
    const auto add_device = [&](const Device& device) {
      if (std::ranges::find(whole.below, device.name, &Device::name) == whole.below.end())
        whole.below.push_back(device);
    };
    add_device(member.device);
    std::ranges::for_each(member.below, add_device);
    whole.disks.insert(member.disks.begin(), member.disks.end());
    whole.levels = std::max(whole.levels, member.levels + 1);
    whole.is_volatile |= member.is_volatile;
  }

  static void mark_composite(Device& device) {
    set_kind(device, DeviceKind::composite);
    set_origin(device.provenance, "redundancy", Origin::inspected);
    if (!device.path.empty()) set_origin(device.provenance, "path", Origin::inspected);
  }

  const std::vector<Mount>& mounts_;
  const Machine& machine_;
  std::size_t steps_ = 0;
};

/// Returns what `mount` is stored on, according to its file system or its block device.
std::optional<Part> part_of(const Mount& mount, const Machine& machine) {
  // Any user may mount a FUSE file system of any type; only mounts of root and this user may cause tools to run.
  if (is_mounted_by_untrusted_user(mount, ::getuid())) return std::nullopt;
  const auto reader = std::ranges::find(mount_readers, mount.filesystem, &decltype(mount_readers)::value_type::first);
  if (reader != mount_readers.end()) return reader->second(mount, machine);
  if (const auto directory = block_directory(mount, machine.sysfs)) return block_part(directory->filename().string());
  return std::nullopt;
}

}  // namespace

Part block_part(std::string name) { return {.kind = Part::Kind::block, .name = std::move(name)}; }

Part part_elsewhere(std::string name) { return {.kind = Part::Kind::elsewhere, .name = std::move(name)}; }

Part composite_part(RedundancyScheme scheme, std::vector<Part> parts) {
  return {.kind = Part::Kind::composite, .scheme = scheme, .parts = std::move(parts)};
}

std::optional<Part> tolerant_part(std::uint32_t losses, std::vector<Part> parts) {
  const auto count = static_cast<std::uint32_t>(parts.size());
  if (count <= losses) return std::nullopt;
  if (losses == 0) return composite_part(RedundancyScheme::stripe, std::move(parts));
  const bool is_remote = std::ranges::count(parts, Part::Kind::elsewhere, &Part::kind) == std::ssize(parts);
  if (count == losses + 1)
    return composite_part(is_remote ? RedundancyScheme::replica : RedundancyScheme::raid1, std::move(parts));
  Part code = composite_part(RedundancyScheme::mds, std::move(parts));
  code.data = count - losses;
  code.parity = losses;
  return code;
}

std::optional<Part> striped_groups(std::uint32_t losses, std::size_t each, std::vector<Part> parts) {
  if (each == 0 || parts.empty() || parts.size() % each != 0) return std::nullopt;
  std::vector<Part> groups;
  for (auto first = parts.begin(); first != parts.end(); first += static_cast<std::ptrdiff_t>(each)) {
    auto group = tolerant_part(losses, std::vector<Part>(first, first + static_cast<std::ptrdiff_t>(each)));
    if (!group) return std::nullopt;
    groups.push_back(*std::move(group));
  }
  if (groups.size() == 1) return std::move(groups.front());
  return composite_part(RedundancyScheme::stripe, std::move(groups));
}

bool is_plain(std::string_view word) {
  return !word.empty() && word.front() != '-' && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("._-:@[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::optional<std::string> ask(const Machine& machine, const Command& command) {
  auto output = machine.run(command);
  if (!output || !output->ends_with('\n')) return std::nullopt;
  return *std::move(output);
}

std::optional<Part> unnamed_part(RedundancyScheme scheme, std::uint32_t data, std::uint32_t parity) {
  constexpr std::uint32_t most = 1000;  // no real code is wider; a larger number is an error
  if (data == 0 || parity == 0 || data > most || parity > most) return std::nullopt;
  Part code = composite_part(scheme, {});
  code.data = data;
  code.parity = parity;
  return code;
}

Composed inspect_composition(const Mount& mount, const std::vector<Mount>& mounts, const Machine& machine) {
  Composed composed{inspect_hardware(mount, mounts, machine.sysfs), {}};
  const auto part = part_of(carrier_of(mount, mounts), machine);
  if (!part) return composed;
  Device& device = composed.whole.device;
  auto found = Builder(mounts, machine).tree(*part, device.name);
  if (!found || !found->device.redundancy) return composed;
  if (part->kind == Part::Kind::composite && found->device.name == (part->name.empty() ? device.name : part->name)) {
    device = std::move(found->device);  // made of devices none of which is the whole
  } else {
    device.redundancy = std::move(found->device.redundancy);
    set_kind(device, DeviceKind::composite);
    set_origin(device.provenance, "redundancy", Origin::inspected);
  }
  composed.whole.kind_is_sure = true;
  composed.whole.is_volatile |= found->is_volatile;
  composed.members = std::move(found->below);
  return composed;
}

}  // namespace iosig
