#include "iosig/storage/mountinfo.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <tuple>

#include "iosig/base/text.h"
#include "iosig/model/storage.h"

namespace iosig {
namespace {

/// The kernel writes blank, tab, line end and backslash as three octal digits.
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

/// 36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 master:2 - ext3 /dev/root rw,errors=continue
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
  // As libfuse has it where it cannot tell the kernel the type: fuse and mfs#server for fuse.mfs and server.
  if (const std::size_t type_end = mount.source.find('#');
      mount.filesystem == "fuse" && type_end != std::string::npos) {
    mount.filesystem += "." + mount.source.substr(0, type_end);
    mount.source.erase(0, type_end + 1);
  }
  if (back.size() > 2) mount.options = back[2];
  mount.upper_folder = option_of(mount, "upperdir").value_or("");
  mount.read_only = has_option(front[5], "ro") || option_of(mount, "ro").has_value();
  return mount;
}

/// FUSE file systems that show something else than stored files.
constexpr std::array<std::string_view, 6> fuse_services{"fuse.gvfsd-fuse",   "fuse.portal",   "fuse.lxcfs",
                                                        "fuse.archivemount", "fuse.snapfuse", "fuse.squashfuse"};
/// Real file systems without a block device of their own in mountinfo.
constexpr std::array<std::string_view, 9> unnumbered{"btrfs", "overlay",  "zfs",    "bcachefs", "ubifs",
                                                     "aufs",  "virtiofs", "vboxsf", "fuse"};

bool stores_files(const Mount& mount) {
  const std::string_view type = mount.filesystem;
  if (mount.major != 0 || is_volatile_filesystem(type) || is_shared_filesystem(type)) return true;
  if (std::ranges::find(unnumbered, type) != unnumbered.end()) return true;
  return type.starts_with("fuse.") && std::ranges::find(fuse_services, type) == fuse_services.end();
}

bool is_system_folder(std::string_view path) {
  if (is_below(path, "/dev/shm") || is_below(path, "/run/media")) return false;
  static constexpr std::array<std::string_view, 5> folders{"/proc", "/sys", "/run", "/boot", "/dev"};
  return std::ranges::any_of(folders, [&](std::string_view folder) { return is_below(path, folder); });
}

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

bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const auto is_known = [&](int id) { return std::ranges::find(mounts, id, &Mount::id) != mounts.end(); };
  const auto is_entry = [&](const Mount& mount) { return mount.parent == mount.id || !is_known(mount.parent); };
  const Mount* current = nullptr;
  // Every step goes one mount deeper, so there are at most as many as mounts; the bound guards against a torn text.
  for (std::size_t step = 0; step <= mounts.size(); ++step) {
    const Mount* next = nullptr;
    for (const Mount& mount : mounts) {
      if (!is_below(path, mount.path)) continue;  // first, for a container host has thousands of mounts
      const bool is_child = current == nullptr ? is_entry(mount) : mount.parent == current->id && &mount != current;
      if (!is_child) continue;
      if (next == nullptr || mount.path.size() < next->path.size()) next = &mount;
    }
    if (next == nullptr) break;
    current = next;
  }
  return current;
}

std::vector<std::vector<Mount>> destinations(const std::vector<Mount>& mounts, const std::vector<std::string>& wanted) {
  std::vector<const Mount*> carriers;
  for (const std::string& folder : wanted) carriers.push_back(mount_of(mounts, folder));
  std::vector<std::vector<Mount>> groups;
  for (const Mount& mount : mounts) {
    if (mount.read_only || !stores_files(mount)) continue;
    if (is_system_folder(mount.path) && std::ranges::find(carriers, &mount) == carriers.end()) continue;
    if (mount_of(mounts, mount.path) != &mount) continue;  // hidden below another mount
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
