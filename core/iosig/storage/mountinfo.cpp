#include "iosig/storage/mountinfo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/model/filesystem.h"
#include "iosig/model/storage.h"

namespace iosig {
namespace {

/// The kernel writes blank, tab, newline and backslash as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, byte, 8).ptr == &text[i + 1] + 3) {
      plain += static_cast<char>(byte);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && end == text.data() + text.size();
}

bool has_option(std::string_view options, std::string_view wanted) {
  return std::ranges::count(split(options, ','), wanted) > 0;
}

/// Parses a line such as: 36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 master:2 - ext3 /dev/root rw,errors=continue
std::optional<Mount> parse_line(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto front = split(line.substr(0, dash), ' '), back = split(line.substr(dash + 3), ' ');
  if (front.size() < 6 || back.size() < 2) return std::nullopt;
  const auto device = split(front[2], ':');
  Mount mount;
  if (!read_number(front[0], mount.id) || !read_number(front[1], mount.parent) || device.size() != 2 ||
      !read_number(device[0], mount.major) || !read_number(device[1], mount.minor))
    return std::nullopt;
  mount.root = unescaped(front[3]);
  mount.path = unescaped(front[4]);
  mount.filesystem = unescaped(back[0]);
  mount.source = unescaped(back[1]);
  // libfuse's form if it cannot pass the type to the kernel: fuse and mfs#server for fuse.mfs and server.
  if (const std::size_t type_end = mount.source.find('#');
      mount.filesystem == "fuse" && type_end != std::string::npos) {
    mount.filesystem += "." + mount.source.substr(0, type_end);
    mount.source.erase(0, type_end + 1);
  }
  if (back.size() > 2) mount.options = back[2];
  mount.upper_directory = option_of(mount, "upperdir").value_or("");
  mount.read_only = has_option(front[5], "ro") || option_of(mount, "ro").has_value();
  return mount;
}

/// FUSE file systems that do not show stored files.
constexpr std::array<std::string_view, 7> fuse_services{"fuse.gvfsd-fuse",    "fuse.portal",   "fuse.lxcfs",
                                                        "fuse.archivemount",  "fuse.snapfuse", "fuse.squashfuse",
                                                        "fuse.vmware-vmblock"};
/// Kernel interfaces. Their files store no data, or have side effects when written.
constexpr std::array<std::string_view, 24> kernel_interfaces{
    "proc",     "sysfs",     "cgroup",   "cgroup2",     "cpuset",  "debugfs", "tracefs",    "securityfs",
    "pstore",   "bpf",       "efivarfs", "configfs",    "fusectl", "mqueue",  "hugetlbfs",  "devpts",
    "devtmpfs", "selinuxfs", "smackfs",  "binfmt_misc", "nsfs",    "nfsd",    "rpc_pipefs", "autofs"};

bool is_kernel_interface(std::string_view type) {
  return std::ranges::find(kernel_interfaces, type) != kernel_interfaces.end();
}

/// If the kernel was not told the FUSE type either, the source is often the program's name.
bool is_fuse_service(const Mount& mount) {
  const std::string type = mount.filesystem == "fuse" ? "fuse." + mount.source : mount.filesystem;
  return std::ranges::find(fuse_services, type) != fuse_services.end();
}

bool is_known_to_store(const Mount& mount) {
  if (mount.major != 0 || mount.filesystem.starts_with("fuse.")) return true;
  const FilesystemType* const type = find_filesystem(mount.filesystem);
  return type != nullptr && (type->is.is_volatile || type->is.is_shared || type->is.has_no_device);
}

using FilesystemId = std::pair<unsigned, unsigned>;

/// Returns the tmpfs of the system's own files: /run, /dev, and those that contain mounts of cgroups or terminals.
std::set<FilesystemId> system_memory(const std::vector<Mount>& mounts) {
  static constexpr std::array<std::string_view, 3> places{"/run", "/dev", "/sys/fs/cgroup"};
  std::map<int, const Mount*> by_id;
  for (const Mount& mount : mounts) by_id.emplace(mount.id, &mount);
  std::set<FilesystemId> found;
  for (const Mount& mount : mounts) {
    if (is_volatile_filesystem(mount.filesystem) && mount.root == "/" &&
        std::ranges::find(places, mount.path) != places.end())
      found.emplace(mount.major, mount.minor);
    const std::string_view type = mount.filesystem;
    const auto parent = by_id.find(mount.parent);
    if ((type != "cgroup" && type != "cgroup2" && type != "devpts") || parent == by_id.end()) continue;
    const Mount& below = *parent->second;
    const bool is_directly_in = mount.path.substr(0, mount.path.rfind('/')) == below.path;
    if (is_directly_in && is_volatile_filesystem(below.filesystem)) found.emplace(below.major, below.minor);
  }
  return found;
}

bool is_system_directory(std::string_view path) {
  if (is_below(path, "/dev/shm") || is_below(path, "/run/media")) return false;
  static constexpr std::array<std::string_view, 5> of_system{"/proc", "/sys", "/run", "/boot", "/dev"};
  return std::ranges::any_of(of_system, [&](std::string_view directory) { return is_below(path, directory); });
}

/// Finds the mount of a path among thousands of mounts, possibly many on one directory.
class MountTree {
 public:
  /// Refers to `mounts`. Of several mounts at one place, the earlier line counts.
  explicit MountTree(const std::vector<Mount>& mounts) : max_steps_(mounts.size()) {
    std::set<int> ids;
    for (const Mount& mount : mounts) ids.insert(mount.id);
    for (const Mount& mount : mounts) {
      const bool is_entry = mount.parent == mount.id || !ids.contains(mount.parent);
      ByPath& place = is_entry ? entries_ : children_[mount.parent];
      place.emplace(mount.path, &mount);
    }
  }

  /// See mount_of.
  [[nodiscard]] const Mount* top(std::string_view path) const {
    const Mount* current = first_on_the_way(entries_, path);
    // Every step goes one mount deeper, so there are at most as many as mounts; the bound protects against inconsistent
    // text.
    for (std::size_t step = 1; current != nullptr && step <= max_steps_; ++step) {
      const auto children = children_.find(current->id);
      const Mount* next = children == children_.end() ? nullptr : first_on_the_way(children->second, path);
      if (next == nullptr) break;
      current = next;
    }
    return current;
  }

 private:
  using ByPath = std::map<std::string_view, const Mount*>;

  /// Returns the first of `mounts` on the way from the root to `path`.
  static const Mount* first_on_the_way(const ByPath& mounts, std::string_view path) {
    for (std::size_t end = 1; end <= path.size();) {  // "/", "/a", "/a/b"
      if (const auto found = mounts.find(path.substr(0, end)); found != mounts.end()) return found->second;
      end = end < path.size() ? std::min(path.find('/', end + 1), path.size()) : path.size() + 1;
    }
    return nullptr;
  }

  std::size_t max_steps_;
  ByPath entries_;
  std::unordered_map<int, ByPath> children_;
};

}  // namespace

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n'))
    if (auto mount = parse_line(line)) mounts.push_back(*std::move(mount));
  return mounts;
}

std::optional<std::string> option_of(const Mount& mount, std::string_view name) {
  for (const std::string_view option : split(mount.options, ','))
    if (option.starts_with(name) && (option.size() == name.size() || option[name.size()] == '='))
      return unescaped(option.substr(std::min(option.size(), name.size() + 1)));
  return std::nullopt;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) { return MountTree(mounts).top(path); }

bool is_mounted_by_untrusted_user(const Mount& mount, unsigned user) {
  const auto owner = option_of(mount, "user_id");
  return owner && *owner != "0" && *owner != fmt::format("{}", user);
}

std::string unsuitability(const Mount& mount, unsigned user) {
  const std::string type = printable(mount.filesystem);
  if (mount.filesystem == "fuse.iosig")
    return fmt::format("is a mount of iosig itself, which shows '{}'", printable(mount.source));
  if (is_mounted_by_untrusted_user(mount, user))
    return fmt::format("was mounted by user {}, whose program would see and serve your files",
                       printable(*option_of(mount, "user_id")));
  if (is_kernel_interface(mount.filesystem)) return fmt::format("is an interface of the kernel ({}), no storage", type);
  if (is_fuse_service(mount)) return fmt::format("shows something else than stored files ({})", type);
  if (!is_known_to_store(mount)) return fmt::format("has a file system that is not known to store files ({})", type);
  return {};
}

std::vector<std::vector<Mount>> destinations(const std::vector<Mount>& mounts, const std::vector<std::string>& wanted,
                                             unsigned user) {
  const std::set<FilesystemId> system = system_memory(mounts);
  const MountTree tree(mounts);
  std::map<std::string_view, const Mount*> tops;  // of the directories that are mount points
  for (const Mount& mount : mounts)
    if (const auto [top, is_new] = tops.emplace(mount.path, nullptr); is_new) top->second = tree.top(mount.path);
  std::vector<const Mount*> carriers;
  for (const std::string& directory : wanted) carriers.push_back(tree.top(directory));
  std::vector<std::vector<Mount>> groups;
  for (const Mount& mount : mounts) {
    if (mount.read_only || !unsuitability(mount, user).empty()) continue;
    if ((is_system_directory(mount.path) || system.contains({mount.major, mount.minor})) &&
        std::ranges::find(carriers, &mount) == carriers.end())
      continue;
    if (tops.at(mount.path) != &mount) continue;  // hidden below another mount
    const auto group =
        std::ranges::find_if(groups, [&](const auto& other) { return other.front().same_filesystem(mount); });
    if (group == groups.end())
      groups.push_back({mount});
    else
      group->push_back(mount);
  }
  for (auto& group : groups)
    std::ranges::stable_sort(
        group, {}, [](const Mount& mount) { return std::tuple(mount.root != "/", mount.path.size(), mount.path); });
  std::ranges::sort(groups, {}, [](const auto& group) { return group.front().path; });
  return groups;
}

}  // namespace iosig
