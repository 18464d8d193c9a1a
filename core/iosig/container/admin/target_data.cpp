#include "iosig/container/admin/target_data.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"

namespace iosig {
namespace {

/// Returns the manifest of the container or target directory `name` in `parent`, or nothing if there is no valid one.
std::optional<ContainerManifest> manifest_in(const Fd& parent, const std::string& name) {
  const Fd directory = open_file_at(parent.get(), name.c_str(), directory_flags);
  if (!directory) return {};
  const auto text = read_file_in(directory, std::string(container_manifest_name), name, max_manifest_bytes);
  if (!text) return {};
  auto manifest = parse_container_manifest(*text, name);
  if (!manifest) return {};
  return *std::move(manifest);
}

/// Adds the sizes of all files in `name` to `data`. Ignores files that cannot be inspected.
void add_up(const Fd& parent, const std::string& name, TargetData& data) {
  struct stat status {};
  if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  data.changed_unix_s = std::max<std::int64_t>(data.changed_unix_s, status.st_mtim.tv_sec);
  if (S_ISREG(status.st_mode)) data.data_bytes += static_cast<std::uint64_t>(status.st_size);
  const Fd directory(S_ISDIR(status.st_mode) ? open_file_at(parent.get(), name.c_str(), directory_flags) : Fd());
  const auto names = directory ? names_in(directory) : std::vector<std::string>();
  for (const std::string& inner : names.value_or(std::vector<std::string>())) add_up(directory, inner, data);
}

bool is_held(const Fd& container) {
  return container && ::flock(container.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Returns the name of the container with this `id` in `directory`: `wanted`, or else a name for which fits(name) is
/// true. Returns "" if there is none.
template <class Fits>
std::string name_of_container(const Fd& directory, const std::string& id, const std::string& wanted, Fits fits) {
  const auto is_it = [&](const std::string& name) {
    const auto found = manifest_in(directory, name);
    return found && found->id == id;
  };
  if (!wanted.empty() && is_it(wanted)) return wanted;
  const auto names = names_in(directory);
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (fits(name) && is_it(name)) return name;
  return {};
}

/// Searches for the container at the path at which it was made, then under other names in the same directory, then in
/// the directories above: if a container is removed while open, and then its directory, it moves to the parent.
void find_container(const ContainerManifest& manifest, TargetData& data) {
  if (!manifest.owner) return;
  data.container = manifest.owner->path;
  SplitPath at = split_path(data.container);
  bool is_first = true;
  for (std::string wanted = at.name;; at = split_path(at.directory), wanted.clear(), is_first = false) {
    const Fd directory = open_file_at(AT_FDCWD, at.directory.c_str(), O_RDONLY | O_DIRECTORY);
    const auto fits = [&](const std::string& name) { return is_first || is_removed_name(name); };
    if (directory && is_first) data.state = TargetData::State::orphaned;
    const std::string name = directory ? name_of_container(directory, manifest.id, wanted, fits) : std::string();
    if (!name.empty()) {
      data.state = is_removed_name(name) ? TargetData::State::removed : TargetData::State::used;
      data.container = fmt::format("{}/{}", at.directory, name);
      data.is_held = is_held(open_file_at(directory.get(), name.c_str(), directory_flags));
      return;
    }
    if (at.directory == "/" || at.directory == ".") return;
  }
}

bool is_left(const std::string& name, const Fd& directory) {
  if (is_removed_name(name)) return true;
  return is_hidden_name(name) && name.find(".iosig-flat-") != std::string::npos && manifest_in(directory, name);
}

void find_removed(const Fd& directory, const std::string& path, dev_t device, std::vector<RemovedContainer>& found) {
  auto names = names_in(directory);
  if (!names) return;
  std::ranges::sort(*names);
  for (const std::string& name : *names) {
    struct stat status {};
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string here = fmt::format("{}/{}", path == "/" ? "" : path, name);
    const Fd inner(S_ISDIR(status.st_mode) ? open_file_at(directory.get(), name.c_str(), directory_flags) : Fd());
    if (is_left(name, directory)) {
      TargetData counted;
      add_up(directory, name, counted);
      const std::int64_t changed = std::max<std::int64_t>(counted.changed_unix_s, status.st_ctim.tv_sec);
      found.push_back({here, counted.data_bytes, changed, is_held(inner)});
    } else if (inner && status.st_dev == device && !is_container(here)) {
      find_removed(inner, here, device, found);
    }
  }
}

}  // namespace

Result<std::vector<TargetData>> target_data_in(const std::string& directory) {
  const Fd opened = open_file_at(AT_FDCWD, directory.c_str(), directory_flags);
  if (!opened) return system_failure("open", directory);
  auto names = names_in(opened);
  if (!names) return pass_on(std::move(names.error()));
  std::ranges::sort(*names);
  std::vector<TargetData> all;
  for (const std::string& name : *names) {
    const auto manifest = manifest_in(opened, name);
    if (!manifest || manifest->id != name) continue;
    TargetData data;
    data.path = fmt::format("{}/{}", directory, name);
    add_up(opened, name, data);
    find_container(*manifest, data);
    all.push_back(std::move(data));
  }
  return all;
}

Result<void> remove_target_data(const TargetData& data) {
  const SplitPath at = split_path(data.path);
  const Fd directory = open_file_at(AT_FDCWD, at.directory.c_str(), directory_flags);
  const auto manifest = directory ? manifest_in(directory, at.name) : std::nullopt;
  TargetData now;
  if (manifest && manifest->id == at.name) find_container(*manifest, now);
  if (now.state == TargetData::State::removed)
    if (auto removed = remove_removed(now.container); !removed) return removed;
  if (now.state != TargetData::State::orphaned && now.state != TargetData::State::removed)
    return fail(ErrorKind::usage, "'{}': its container is there", printable(data.path));
  std::error_code failure;
  std::filesystem::remove_all(data.path, failure);  // does not follow symbolic links
  if (failure) return system_failure("remove", data.path, failure.value());
  return {};
}

Result<std::vector<RemovedContainer>> removed_below(const std::string& directory) {
  const Fd opened = open_file_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return system_failure("open", directory);
  std::vector<RemovedContainer> found;
  find_removed(opened, std::string(without_trailing_slashes(directory)), status.st_dev, found);
  return found;
}

Result<void> remove_removed(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISDIR(status.st_mode)) {
    if (::unlink(path.c_str()) != 0) return system_failure("remove", path);
    return {};
  }
  if (discard_removed(AT_FDCWD, path) || ::lstat(path.c_str(), &status) != 0) return {};
  return fail(ErrorKind::usage, "'{}': a process has it open, or not all of it can be removed", printable(path));
}

}  // namespace iosig
