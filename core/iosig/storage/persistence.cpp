#include "iosig/storage/persistence.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/model/filesystem.h"
#include "iosig/model/storage.h"
#include "iosig/storage/hardware.h"

namespace iosig {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_depth = 16;  // from a mount to a disk

/// What a path refers to, determined in another process since its server may not respond.
struct Standing {
  char real[PATH_MAX] = {};  ///< without symbolic links; empty: does not exist
  mode_t mode = 0;
  dev_t device = 0;  ///< of a device file
};

Standing look_at(const std::string& path) {
  const auto standing = call_with_timeout([&] {
    Standing found;
    struct stat status {};
    if (::realpath(path.c_str(), found.real) == nullptr || ::stat(found.real, &status) != 0) {
      found.real[0] = '\0';
      return found;
    }
    found.mode = status.st_mode;
    found.device = status.st_rdev;
    return found;
  });
  return standing ? *standing : Standing{};
}

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host == "[::1]" || host == host_name();
}

/// Returns PATH of [USER@]HOST:PATH if HOST is this machine and PATH is absolute.
std::optional<std::string> own_path(std::string_view source) {
  const std::size_t colon = source.find(":/");
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = source.substr(0, colon);
  if (const std::size_t at = host.find('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
  if (!is_this_machine(host)) return std::nullopt;
  return std::string(source.substr(colon + 1));
}

/// Returns the paths of a FUSE source: one, or a union's branches ("/a=RW:/b=RO"). Empty if it names no paths.
std::vector<std::string> paths_of(const std::string& source) {
  if (source.starts_with('/') && look_at(source).real[0] != '\0') return {source};
  std::vector<std::string> paths;
  for (const std::string_view branch : split(source, ':')) {
    if (!branch.starts_with('/')) return {};
    paths.emplace_back(branch.substr(0, branch.find('=')));
  }
  return paths;
}

BackingStore worse(BackingStore a, BackingStore b) {
  const auto rank = [](const BackingStore& each) {
    return each.persistence == Persistence::lost ? 2 : each.persistence == Persistence::unknown ? 1 : 0;
  };
  return rank(a) >= rank(b) ? a : b;
}

class Descent {
 public:
  Descent(std::vector<Mount> mounts, const std::string& sysfs) : mounts_(std::move(mounts)), sysfs_(sysfs) {}

  // `here` is a copy: the caller's may be in mounts_, which shrinks.
  BackingStore mount(Mount here) {
    const std::string_view type = here.filesystem;
    if (is_volatile_filesystem(type)) return {Persistence::lost, true, fmt::format("is on {}", type)};
    if (type == simulated_disk) return {};
    // The mount itself may cover its own source, so it is removed from the lookup.
    std::erase_if(mounts_, [&](const Mount& each) { return each.id == here.id; });
    if (!here.upper_directory.empty() || type == "overlay") {
      if (!here.upper_directory.starts_with('/'))
        return unknown("is an overlay whose upper directory is not visible here");
      return path(here.upper_directory, "is an overlay whose upper directory is not visible here");
    }
    if (const auto directory = block_directory(here, sysfs_)) return block(*directory);
    if (is_shared_filesystem(type)) {
      const auto own = own_path(here.source);
      return own ? path(*own, "is served by this machine from a directory that is not visible here") : BackingStore{};
    }
    if (type != "fuse" && !type.starts_with("fuse.") && type != "ecryptfs" && type != "aufs") return {};
    const std::string why_unknown = fmt::format("is {}, which does not tell where its files lie", printable(type));
    const auto paths = paths_of(here.source);
    if (paths.empty()) return unknown(why_unknown);
    BackingStore all;
    for (const std::string& each : paths) all = worse(std::move(all), path(each, why_unknown));
    return all;
  }

 private:
  static BackingStore unknown(std::string why) { return {Persistence::unknown, false, std::move(why)}; }

  BackingStore path(const std::string& wanted, const std::string& why_unknown) {
    const Standing standing = look_at(wanted);
    if (standing.real[0] == '\0') return unknown(why_unknown);
    if (S_ISBLK(standing.mode)) return numbered_block(standing.device);
    if (!S_ISDIR(standing.mode) && !S_ISREG(standing.mode)) return unknown(why_unknown);
    return carrier(standing.real, why_unknown);
  }

  BackingStore carrier(std::string_view real, const std::string& why_unknown) {
    const Mount* found = mount_of(mounts_, real);
    if (found == nullptr) return unknown(why_unknown);
    if (depth_ == max_depth) return unknown("is on too many layers");
    const std::vector<Mount> kept = mounts_;  // another branch may go through the same mounts
    ++depth_;
    BackingStore below = mount(*found);
    --depth_;
    mounts_ = kept;
    if (below.is_memory) below.why = fmt::format("is on '{}', which is in memory", printable(real));
    return below;
  }

  BackingStore numbered_block(dev_t device) {
    std::error_code failure;
    const fs::path directory =
        fs::canonical(fmt::format("{}/dev/block/{}:{}", sysfs_, ::major(device), ::minor(device)), failure);
    return failure ? BackingStore{} : block(directory);
  }

  BackingStore block(const fs::path& directory) {
    std::error_code failure;
    const fs::path disk = fs::exists(directory / "partition", failure) ? directory.parent_path() : directory;
    const std::string name = disk.filename().string();
    if (name.starts_with("zram") || name.starts_with("ram"))
      return {Persistence::lost, true, fmt::format("is on {} in memory", name)};
    if (const auto file = read_word(disk / "loop" / "backing_file")) {
      if (file->ends_with(" (deleted)"))
        return {Persistence::lost, false, fmt::format("is in the deleted file {}", printable(*file))};
      const std::string why_unknown = fmt::format("is in '{}', which is not visible here", printable(*file));
      // The file may be in another mount namespace; its directory may still be visible here.
      return look_at(*file).real[0] != '\0' ? path(*file, why_unknown) : carrier(*file, why_unknown);
    }
    if (depth_ == max_depth) return unknown("is on too many layers");
    BackingStore all;
    ++depth_;
    for (fs::directory_iterator slave(disk / "slaves", failure), end; !failure && slave != end;
         slave.increment(failure)) {
      std::error_code missing;
      const fs::path below = fs::canonical(slave->path(), missing);
      if (!missing) all = worse(std::move(all), block(below));
    }
    --depth_;
    return all;
  }

  std::vector<Mount> mounts_;  ///< without those already followed
  std::string sysfs_;
  std::size_t depth_ = 0;
};

}  // namespace

BackingStore backing_store_of(const Mount& mount, const std::vector<Mount>& mounts, const std::string& sysfs) {
  return Descent(mounts, sysfs).mount(mount);
}

}  // namespace iosig
