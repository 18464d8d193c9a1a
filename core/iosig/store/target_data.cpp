#include "iosig/store/target_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/store/container_folder.h"

namespace iosig {
namespace {

constexpr std::uint64_t most_manifest_bytes = 1u << 20;
constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

/// Of the container or the target `name` in `parent`; nothing: there is no sound one.
std::optional<ContainerManifest> manifest_in(const Fd& parent, const std::string& name) {
  const Fd folder(::openat(parent.get(), name.c_str(), folder_flags));
  if (!folder) return {};
  const auto text = read_file_in(folder, std::string(container_manifest_name), name, most_manifest_bytes);
  if (!text) return {};
  auto manifest = parse_container_manifest(*text, name);
  if (!manifest) return {};
  return *std::move(manifest);
}

/// Adds up what is in `name`; what cannot be looked at counts nothing.
void add_up(const Fd& parent, const std::string& name, TargetData& data) {
  struct stat status {};
  if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  data.changed_unix_s = std::max<std::int64_t>(data.changed_unix_s, status.st_mtim.tv_sec);
  if (S_ISREG(status.st_mode)) data.data_bytes += static_cast<std::uint64_t>(status.st_size);
  const Fd folder(S_ISDIR(status.st_mode) ? ::openat(parent.get(), name.c_str(), folder_flags) : -1);
  const auto names = folder ? names_in(folder) : std::vector<std::string>();
  for (const std::string& inner : names.value_or(std::vector<std::string>())) add_up(folder, inner, data);
}

/// Looks for the container where it was made, then under another name in the same folder.
void find_container(const ContainerManifest& manifest, TargetData& data) {
  if (!manifest.owner) return;
  data.container = manifest.owner->path;
  const SplitPath at = split_path(data.container);
  const Fd parent(::open(at.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto is_it = [&](const std::string& name) {
    const auto found = manifest_in(parent, name);
    return found && found->id == manifest.id;
  };
  const auto names = parent ? names_in(parent) : Result<std::vector<std::string>>(std::vector<std::string>());
  if (!parent || !names) return;
  const auto found = is_it(at.name) ? std::ranges::find(*names, at.name) : std::ranges::find_if(*names, is_it);
  data.state = found == names->end() ? TargetData::State::orphaned : TargetData::State::used;
  if (found != names->end()) data.container = fmt::format("{}/{}", at.folder, *found);
}

}  // namespace

Result<std::vector<TargetData>> target_data_in(const std::string& folder) {
  const Fd opened(::open(folder.c_str(), folder_flags));
  if (!opened) return system_failure("open", folder);
  auto names = names_in(opened);
  if (!names) return pass_on(std::move(names.error()));
  std::ranges::sort(*names);
  std::vector<TargetData> all;
  for (const std::string& name : *names) {
    const auto manifest = manifest_in(opened, name);
    if (!manifest || manifest->id != name) continue;
    TargetData data;
    data.path = fmt::format("{}/{}", folder, name);
    add_up(opened, name, data);
    find_container(*manifest, data);
    all.push_back(std::move(data));
  }
  return all;
}

Result<void> remove_target_data(const TargetData& data) {
  const SplitPath at = split_path(data.path);
  const Fd folder(::open(at.folder.c_str(), folder_flags));
  const auto manifest = folder ? manifest_in(folder, at.name) : std::nullopt;
  TargetData now;
  if (manifest && manifest->id == at.name) find_container(*manifest, now);
  if (now.state != TargetData::State::orphaned)
    return fail(ErrorKind::usage, "'{}': its container is there", printable(data.path));
  std::error_code failure;
  std::filesystem::remove_all(data.path, failure);  // follows no links
  if (failure) return system_failure("remove", data.path, failure.value());
  return {};
}

}  // namespace iosig
