#include "iosig/container/admin/manifest_rescue.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_index_bytes = std::uint64_t{1} << 32;
constexpr std::uint32_t usual_subdirectories = 16;

struct FoundIndex {
  std::int64_t id = 0;
  std::uint32_t subdirectory = 0;
  IndexHead head;
  bool is_traditional = false;
  unsigned mode = 0;
};

struct FoundIndices {
  std::vector<FoundIndex> sound;  ///< with a valid head
  std::size_t count = 0;          ///< of all index droppings
};

/// Finds the index droppings in any subdirectory.
FoundIndices find_indices(const Fd& directory, const std::string& path) {
  FoundIndices found;
  const auto subdirectories = names_in(directory);
  for (const std::string& name : subdirectories.value_or(std::vector<std::string>())) {
    std::uint32_t number = 0;
    const auto [end, failure] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (failure != std::errc() || end != name.data() + name.size() || name != subdirectory_name(number)) continue;
    const Fd subdirectory = open_file_at(directory.get(), name.c_str(), directory_flags);
    const auto names = subdirectory ? names_in(subdirectory) : Result<std::vector<std::string>>();
    for (const std::string& each : names.value_or(std::vector<std::string>())) {
      const auto dropping = parse_dropping_name(each);
      if (!dropping || dropping->kind != Dropping::index) continue;
      ++found.count;
      const auto text = read_file_in(subdirectory, each, path, max_index_bytes);
      struct stat status {};
      if (!text || ::fstatat(subdirectory.get(), each.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const auto index = read_index({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()});
      if (!index || index->head.id != dropping->id) continue;
      const bool is_traditional =
          std::ranges::any_of(index->writes, [](const IndexedWrites& writes) { return !writes.entries.empty(); });
      found.sound.push_back({dropping->id, number, index->head, is_traditional, status.st_mode & 0777});
    }
  }
  return found;
}

/// Returns the number of subdirectories with which each dropping lies in the right one; 0 if there is none.
std::uint32_t subdirectories_of(const std::vector<FoundIndex>& indices) {
  const auto fits = [&](std::uint32_t count) {
    return std::ranges::all_of(indices, [&](const FoundIndex& each) { return each.id % count == each.subdirectory; });
  };
  if (fits(usual_subdirectories)) return usual_subdirectories;
  for (std::uint32_t count = 1; count <= max_subdirectories; ++count)
    if (fits(count)) return count;
  return 0;
}

Result<RescuedManifest> from_indices(const std::vector<FoundIndex>& indices, const std::string& path) {
  const FoundIndex& first = indices.front();
  for (const FoundIndex& each : indices) {
    if (each.head.container != first.head.container)
      return fail(ErrorKind::bad_input, "'{}' holds indices of several containers: {} and {}", printable(path),
                  first.head.container, each.head.container);
    if (each.head.target >= 0)
      return fail(
          ErrorKind::bad_input,
          "'{}': its data are on targets, which hold copies of its manifest; name one of these directories with "
          "--target (it holds a directory called {})",
          printable(path), first.head.container);
  }
  RescuedManifest rescued;
  rescued.manifest.id = first.head.container;
  rescued.manifest.version = 1;
  for (const FoundIndex& each : indices)
    rescued.manifest.version = std::max(rescued.manifest.version, static_cast<std::uint32_t>(each.head.version));
  rescued.manifest.index =
      std::ranges::any_of(indices, &FoundIndex::is_traditional) ? IndexKind::traditional : IndexKind::pattern;
  rescued.manifest.subdirectories = subdirectories_of(indices);
  rescued.manifest.mode = first.mode;
  if (rescued.manifest.subdirectories == 0)
    return fail(ErrorKind::bad_input, "'{}': index droppings were moved between the directories d0, d1, ...",
                printable(path));
  rescued.from = fmt::format("{} index dropping{}", indices.size(), indices.size() == 1 ? "" : "s");
  return rescued;
}

/// Returns the copy of the manifest on a target.
std::optional<RescuedManifest> from_target(const std::string& target, const std::vector<FoundIndex>& indices) {
  for (const FoundIndex& each : indices) {
    const std::string directory_path = fmt::format("{}/{}", without_trailing_slashes(target), each.head.container);
    const Fd directory = open_file_at(AT_FDCWD, directory_path.c_str(), directory_flags);
    const auto text =
        directory ? read_file_in(directory, std::string(container_manifest_name), directory_path, max_manifest_bytes)
                  : Result<std::string>(fail(ErrorKind::system, "none"));
    auto manifest = text ? parse_container_manifest(*text, directory_path) : pass_on(text.error());
    if (!manifest || manifest->id != each.head.container) continue;
    manifest->owner.reset();
    return RescuedManifest{*std::move(manifest), fmt::format("the copy in '{}'", printable(directory_path))};
  }
  return {};
}

/// Whether the manifest is that of another container than the one that wrote the droppings.
bool is_of_another(const ContainerDirectory& directory, const FoundIndices& indices) {
  const std::string& id = directory.manifest().id;
  if (indices.sound.empty() || 2 * indices.sound.size() <= indices.count) return false;
  const std::string& other = indices.sound.front().head.container;
  const auto names_other = [&](const FoundIndex& each) { return each.head.container == other; };
  if (other == id || !std::ranges::all_of(indices.sound, names_other)) return false;
  const auto names = names_in(directory.fd());
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (!name.starts_with(closed_writers_prefix)) continue;
    const auto text = read_file_in(directory.fd(), name, directory.path(), max_index_bytes);
    if (!text) return false;
    const auto records = read_closed_writers({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()});
    if (std::ranges::find(records.writers, id, &ClosedWriter::container) != records.writers.end() ||
        std::ranges::find(records.synced, id, &SyncedWriter::container) != records.synced.end())
      return false;
  }
  return true;
}

}  // namespace

Result<std::optional<RescuedManifest>> rescue_manifest(const std::string& path,
                                                       const std::vector<std::string>& targets) {
  const auto own = ContainerDirectory::open(path);
  const Fd directory = open_file_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory) return std::nullopt;
  const auto text = read_file_in(directory, std::string(container_manifest_name), path, max_manifest_bytes);
  if (!own && text && is_newer_container_manifest(*text)) return pass_on(own.error());
  const FoundIndices found = find_indices(directory, path);
  const std::vector<FoundIndex>& indices = found.sound;
  if (indices.empty() || (own && !is_of_another(**own, found))) return std::nullopt;
  for (const std::string& target : targets)
    if (auto copy = from_target(target, indices)) return copy;
  return from_indices(indices, path).map([](RescuedManifest rescued) { return std::optional(std::move(rescued)); });
}

Result<void> put_manifest(const std::string& path, const ContainerManifest& manifest) {
  const Fd directory = open_file_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory) return system_failure("open", path);
  const std::string name(container_manifest_name),
      shown = path + "/" + name, quarantine = fmt::format("{}{}", quarantine_prefix, unix_ns() / 1000);
  const auto keep_old = [&](int) -> Result<void> {
    if (::linkat(directory.get(), name.c_str(), directory.get(), quarantine.c_str(), 0) != 0 && errno != ENOENT)
      return system_failure("keep a copy of", shown);
    return {};
  };
  return replace_file_in(
      directory, name, container_manifest_text(manifest),
      {.draft = quarantine + "-new", .mode = manifest.mode | 0600, .shown = shown, .before_sync = keep_old});
}

}  // namespace iosig
