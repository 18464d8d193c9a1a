#include "iosig/storage/discover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/base/units.h"
#include "iosig/model/filesystem.h"
#include "iosig/storage/composite.h"
#include "iosig/storage/hardware.h"
#include "iosig/storage/mountinfo.h"
#include "iosig/storage/persistence.h"
#include "iosig/storage/scratch.h"

namespace iosig {
namespace {

/// Returns the type of the file system at "/" for a process that cannot see the mount of its root (chroot).
std::string root_filesystem() {
  struct statfs status {};
  if (::statfs("/", &status) != 0) return "unknown";
  const FilesystemType* const type = find_filesystem(static_cast<std::uint32_t>(status.f_type));
  return type == nullptr ? "unknown" : std::string(type->name);
}

Result<std::vector<Mount>> mounts_of_this_process() {
  const auto text = read_file("/proc/self/mountinfo");
  std::vector<Mount> mounts = parse_mountinfo(text ? *text : "");
  if (mount_of(mounts, "/") != nullptr) return mounts;
  struct stat root {};
  if (::stat("/", &root) != 0) return system_failure("inspect", "/");
  Mount mount;
  mount.id = -1;
  mount.parent = -2;
  mount.major = ::major(root.st_dev);
  mount.minor = ::minor(root.st_dev);
  mount.root = mount.path = "/";
  mount.filesystem = root_filesystem();
  // Mounts without a visible parent belong below this root.
  for (Mount& other : mounts)
    if (std::ranges::find(mounts, other.parent, &Mount::id) == mounts.end()) other.parent = mount.id;
  mounts.push_back(std::move(mount));
  return mounts;
}

/// What one mount reported. Plain bytes, because it comes from another process.
struct Answer {
  int failure = 0;  ///< errno of the first failure
  bool is_directory = false, read_only = false;
  bool follows_links = true;  ///< in that directory, below
  std::uint64_t capacity_bytes = 0, free_bytes = 0, block_bytes = 0;
  char directory[PATH_MAX] = {};         ///< where a file could be created; empty: nowhere
  std::optional<Visibility> visibility;  ///< of that directory, if a convention defines it
  char unsafe[512] = {};                 ///< why untrusted users could replace files in a directory that was rejected
  bool not_utf8 = false;                 ///< a directory was rejected that no description can name
  /// The file system of that directory, by stat and statfs, if it is not that of the mount: /proc does not tell the
  /// mounts, or not all.
  struct Other {
    dev_t device = 0;
    std::uint32_t type = 0;
  };
  std::optional<Other> other;
};

/// Directories that batch systems, burst buffers and sessions provide, by environment variable. Their visibility takes
/// precedence over that of the file system's type, which may be the same for both (DataWarp's dvs).
struct Convention {
  const char* variable;
  std::optional<Visibility> visibility;
};
constexpr std::array<Convention, 5> conventions{{{"DW_JOB_PRIVATE", Visibility::local},   // per node, for the job
                                                 {"DW_JOB_STRIPED", Visibility::global},  // of all nodes of the job
                                                 {"BBPATH", std::nullopt},
                                                 {"SLURM_TMPDIR", std::nullopt},
                                                 {"XDG_RUNTIME_DIR", std::nullopt}}};

/// Returns the directories of `conventions` that are set.
std::vector<std::string> offered_directories() {
  std::vector<std::string> directories;
  for (const Convention& convention : conventions)
    if (const char* directory = ::secure_getenv(convention.variable); directory != nullptr && directory[0] == '/')
      directories.emplace_back(directory);
  return directories;
}

/// Returns the visibility of `directory` if one of `conventions` defines it.
std::optional<Visibility> offered_visibility(std::string_view directory) {
  for (const Convention& convention : conventions)
    if (const char* offered = ::secure_getenv(convention.variable);
        convention.visibility && offered != nullptr && offered == directory)
      return convention.visibility;
  return std::nullopt;
}

/// Returns the directories on `mount` to try, in order. Roots of system file systems come last, and "/" not at all: it
/// is no place for IOSIG's directory.
std::vector<std::string> directories_to_try(const Mount& mount, const std::vector<std::string>& preferred) {
  std::vector<std::string> personal{home_directory()};
  if (const char* directory = ::secure_getenv("TMPDIR")) personal.emplace_back(directory);
  personal.insert(personal.end(), {"/var/tmp", "/tmp"});
  if (const char* user = ::secure_getenv("USER")) personal.push_back(mount.path + "/" + user);
  static constexpr std::array<std::string_view, 7> system{"/", "/home", "/root", "/var", "/usr", "/opt", "/etc"};
  std::vector<std::string> directories = preferred;
  const std::vector<std::string> offered = offered_directories();
  directories.insert(directories.end(), offered.begin(), offered.end());
  const bool is_system = std::ranges::find(system, mount.path) != system.end();
  if (!is_system) directories.push_back(mount.path);
  directories.insert(directories.end(), personal.begin(), personal.end());
  if (is_system && mount.path != "/") directories.push_back(mount.path);
  return directories;
}

bool is_utf8(std::string_view path) {
  while (!path.empty()) {
    const auto lead = static_cast<unsigned char>(path.front());
    const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || path.size() < length) return false;
    for (std::size_t i = 1; i < length; ++i)
      if ((static_cast<unsigned char>(path[i]) & 0xc0) != 0x80) return false;
    const auto second = static_cast<unsigned char>(length > 1 ? path[1] : 0);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
      return false;  // too long a form, a surrogate, or beyond U+10FFFF
    path.remove_prefix(length);
  }
  return true;
}

/// Returns the file system of `directory` if it is not that of `mount`. The device tells that only for the mount that
/// mounts_of_this_process() makes up: subvolumes of btrfs have devices of their own.
std::optional<Answer::Other> other_filesystem(const std::string& directory, const Mount& mount) {
  struct stat status {};
  struct statfs filesystem {};
  if (::stat(directory.c_str(), &status) != 0 || ::statfs(directory.c_str(), &filesystem) != 0) return std::nullopt;
  const auto type = static_cast<std::uint32_t>(filesystem.f_type);
  const FilesystemType* const told = find_filesystem(mount.filesystem);
  const FilesystemType* const real = find_filesystem(type);
  const bool is_made_up = mount.id == -1;
  const bool is_other_device = ::major(status.st_dev) != mount.major || ::minor(status.st_dev) != mount.minor;
  const bool is_other_type = told != nullptr && real != nullptr && told->magic != 0 && told->magic != real->magic;
  if (is_other_type || (is_made_up && is_other_device)) return Answer::Other{status.st_dev, type};
  return std::nullopt;
}

/// Inspects the mount. Runs in a separate process because it may hang on a dead server.
Answer examine(const Mount& mount, const std::vector<Mount>& mounts, const std::vector<std::string>& preferred) {
  Answer answer;
  struct stat status {};
  struct statvfs room {};
  if (::stat(mount.path.c_str(), &status) != 0 || ::statvfs(mount.path.c_str(), &room) != 0) {
    answer.failure = errno;
    return answer;
  }
  answer.is_directory = S_ISDIR(status.st_mode);
  answer.read_only = (room.f_flag & ST_RDONLY) != 0;
  answer.capacity_bytes = static_cast<std::uint64_t>(room.f_blocks) * room.f_frsize;
  answer.free_bytes = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  answer.block_bytes = room.f_bsize;
  if (!answer.is_directory || answer.read_only) return answer;
  const auto is_here = [&](std::string_view path) {
    const Mount* carrier = mount_of(mounts, path);
    return carrier != nullptr && carrier->same_filesystem(mount);
  };
  for (const std::string& directory : directories_to_try(mount, preferred)) {
    char real[PATH_MAX];
    // Check by name first: resolving a directory on another, dead mount would hang.
    if (!is_here(directory) || ::realpath(directory.c_str(), real) == nullptr || !is_here(real)) continue;
    if (!open_scratch_file(real)) continue;
    if (!is_utf8(real)) {
      answer.not_utf8 = true;
      continue;
    }
    if (const auto sound = check_directory(real); !sound) {
      sound.error().message.copy(answer.unsafe, sizeof answer.unsafe - 1);
      continue;
    }
    std::memcpy(answer.directory, real, std::strlen(real) + 1);
    answer.visibility = offered_visibility(directory);
    answer.other = other_filesystem(real, mount);
    answer.follows_links = follows_links(real, mount.filesystem);
    break;
  }
  return answer;
}

/// Calls examine() with a time limit; ETIMEDOUT if the mount does not respond.
Answer examine_in_time(const Mount& mount, const std::vector<Mount>& mounts,
                       const std::vector<std::string>& preferred) {
  const auto answer = call_with_timeout([&] { return examine(mount, mounts, preferred); });
  if (answer) return *answer;
  Answer none;
  none.failure = answer.error();
  return none;
}

/// Returns why the mount is not a destination, or "".
std::string shortcoming(const Answer& answer) {
  if (answer.failure == ETIMEDOUT)
    return fmt::format("did not answer within {} s (a dead server?)", answer_limit_ms / 1000);
  if (answer.failure != 0) return std::strerror(answer.failure);
  if (answer.read_only) return "is read-only";
  if (answer.capacity_bytes < smallest_capacity_bytes)
    return fmt::format("is too small: {}, a destination has at least {}",
                       about_bytes(static_cast<double>(answer.capacity_bytes)), bytes_text(smallest_capacity_bytes));
  if (answer.directory[0] == '\0' && answer.unsafe[0] != '\0') return fmt::format("is not safe: {}", answer.unsafe);
  if (answer.directory[0] == '\0' && answer.not_utf8) return "has a path that is not UTF-8";
  if (answer.directory[0] == '\0') return "has no directory in which you can create files";
  return {};
}

/// Returns the unit of allocation. Some network file systems report their transfer size as block size instead.
std::uint64_t sane_block_bytes(std::uint64_t reported) {
  return std::has_single_bit(reported) && reported >= 512 && reported <= 64 * KiB ? reported : assumed_block_bytes;
}

/// Returns the mount of a directory that /proc does not tell.
Mount unseen_mount(const Answer& answer) {
  Mount mount;
  mount.id = -1;
  mount.major = ::major(answer.other->device);
  mount.minor = ::minor(answer.other->device);
  mount.root = "/";
  mount.path = answer.directory;
  const FilesystemType* const type = find_filesystem(answer.other->type);
  mount.filesystem = type == nullptr ? "unknown" : std::string(type->name);
  return mount;
}

Found describe(const Mount& told, const Answer& answer, const std::vector<Mount>& mounts) {
  const Mount mount = answer.other ? unseen_mount(answer) : told;
  Composed composed = inspect_composition(mount, mounts);
  Hardware& hardware = composed.whole;
  Found found{.mount = {},
              .device = std::move(hardware.device),
              .members = std::move(composed.members),
              .remark = {},
              .kind_is_sure = hardware.kind_is_sure};
  if (!found.device.capacity_bytes) {
    found.device.capacity_bytes = answer.capacity_bytes;
    set_origin(found.device.provenance, "capacity", Origin::inspected);
  }
  MountPoint& point = found.mount;
  point.path = answer.directory;
  point.filesystem = mount.filesystem;
  point.block_bytes = sane_block_bytes(answer.block_bytes);
  point.free_bytes = answer.free_bytes;
  point.max_file_bytes = max_file_bytes_of(mount.filesystem);
  point.visibility =
      answer.visibility.value_or(is_shared_filesystem(mount.filesystem) ? Visibility::global : Visibility::local);
  const BackingStore backing = backing_store_of(mount, mounts);
  point.persistent = backing.persistence == Persistence::lasting && !hardware.is_volatile;
  if (backing.persistence == Persistence::unknown)
    found.remark = fmt::format("{} {}: its data do not count as persistent unless you write persistent = true for it",
                               printable(mount.path), backing.why);
  else if (!point.persistent && !is_volatile_filesystem(mount.filesystem) && !backing.why.empty())
    found.remark = fmt::format("{} {}: its data are not persistent", printable(mount.path), backing.why);
  if (answer.other) {
    point.persistent = false;
    found.remark = fmt::format(
        "{} is not on the mount that /proc/self/mountinfo tells: it is described by its type, {}, and its data do not "
        "count as persistent unless you write persistent = true for it",
        printable(mount.path), mount.filesystem);
  }
  if (backing.is_memory && (found.device.kind == DeviceKind::hdd || found.device.kind == DeviceKind::ssd)) {
    set_kind(found.device, DeviceKind::ram);
    found.kind_is_sure = true;
  }
  point.follows_links = answer.follows_links;
  // `free` and `max_file_size` do not belong in the file: the former changes, the latter follows from `filesystem`.
  for (const char* key : {"path", "device", "filesystem", "block_size", "visibility", "persistent", "follows_links"})
    set_origin(point.provenance, key, Origin::inspected);
  return found;
}

/// Makes device names unique. Exports of two servers or two tmpfs may have the same name, or a tmpfs that of a disk;
/// later ones, and those that are not disks, get the path appended.
void make_names_unique(std::vector<Found>& found) {
  const auto is_member = [&](const Device& device) {
    return std::ranges::any_of(found, [&](const Found& each) {
      return std::ranges::any_of(each.members, [&](const Device& member) {
        return member.name == device.name && (member.path.empty() || member.path != device.path);
      });
    });
  };
  for (auto it = found.begin(); it != found.end(); ++it) {
    const auto is_taken = [&](const std::string& name) {
      return std::any_of(found.begin(), it, [&](const Found& earlier) { return earlier.device.name == name; });
    };
    if (is_taken(it->device.name) || is_member(it->device)) {
      it->device.name += it->mount.path;
      std::ranges::replace(it->device.name, '/', '-');
    }
    it->mount.device = it->device.name;
    set_origin(it->device.provenance, "name", Origin::inspected);
    for (Device& member : it->members) set_origin(member.provenance, "name", Origin::inspected);
  }
}

}  // namespace

Result<Discovery> discover(const std::vector<std::string>& preferred) {
  const auto mounts = mounts_of_this_process();
  if (!mounts) return pass_on(mounts.error());
  Discovery discovery;
  for (const std::string& directory : preferred)
    if (const Mount* carrier = mount_of(*mounts, std::filesystem::absolute(directory).lexically_normal().string()))
      if (const std::string reason = unsuitability(*carrier, ::geteuid()); !reason.empty())
        discovery.skipped.push_back({std::string(without_trailing_slashes(directory)), reason});
  for (const std::vector<Mount>& places : destinations(*mounts, offered_directories(), ::geteuid())) {
    std::string why;
    for (const Mount& place : places) {
      const Answer answer = examine_in_time(place, *mounts, preferred);
      if (answer.failure == 0 && !answer.is_directory) continue;  // a container's /etc/hosts or similar
      const std::string reason = shortcoming(answer);
      if (reason.empty()) {
        discovery.found.push_back(describe(place, answer, *mounts));
        why.clear();
        break;
      }
      if (why.empty()) why = reason;
    }
    if (!why.empty()) discovery.skipped.push_back({places.front().path, why});
  }
  make_names_unique(discovery.found);
  return discovery;
}

Storage storage_of(std::vector<Found> found) {
  Storage storage;
  for (Found& each : found) {
    storage.mount_points.push_back(std::move(each.mount));
    storage.devices.push_back(std::move(each.device));
  }
  for (Found& each : found)
    for (Device& member : each.members)
      if (storage.find_device(member.name) == nullptr) storage.devices.push_back(std::move(member));
  return storage;
}

Result<Storage> inspect_storage() {
  auto discovery = discover();
  if (!discovery) return pass_on(discovery.error());
  return storage_of(std::move(discovery->found));
}

}  // namespace iosig
