#include "storage_source.h"

#include <set>

#include "iosig/base/text.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/reserve.h"
#include "iosig/storage/discover.h"

namespace iosig::cli {

Result<StorageSource> load_storage(const std::string& option, const Console& console) {
  const auto file = find_storage_file(option);
  if (!file) return pass_on(file.error());
  if (*file) {
    auto storage = read_storage_file((*file)->path, FreeSpace::leave);
    if (!storage) return pass_on(storage.error());
    ask_room(*storage);
    return StorageSource{*std::move(storage), (*file)->path, **file};
  }
  auto storage = inspect_storage();
  if (!storage) return pass_on(storage.error());
  ask_room(*storage);
  console.note(
      "there is no storage description: this is a quick look with conservative defaults; "
      "'iosig storage probe' measures");
  return StorageSource{*std::move(storage), {}, {}};
}

std::string about_file(const StorageSource& source) {
  return fmt::format("{} ({})", printable(source.file), reason_text(source.found));
}

void add_storage_option(Verb verb, std::string& file) {
  verb.add_option("--storage", file, "storage description instead of $IOSIG_STORAGE or the user's file")
      .type_name("FILE");
}

Result<const MountPoint*> described_mount_point(const Storage& storage, const std::string& path) {
  if (const MountPoint* mount = storage.find_mount_point(without_trailing_slashes(path))) return mount;
  std::vector<std::string_view> known;
  for (const MountPoint& mount : storage.mount_points) known.push_back(mount.path);
  return fail(ErrorKind::usage, "'{}' is not a mount point of the description{}; it has {}", printable(path),
              did_you_mean(path, known), fmt::join(known, ", "));
}

std::vector<std::string> known_mount_points(const Journal& journal, const Console& console) {
  std::set<std::string> paths;
  for (const JournalEntry& entry : journal.entries) paths.insert(entry.mount_point);
  const auto file = find_storage_file();
  if (file && !*file) return {paths.begin(), paths.end()};
  const auto storage =
      file.and_then([](const auto& found) { return read_storage_file(found->path, FreeSpace::leave); });
  if (storage)
    for (const MountPoint& mount : storage->mount_points) paths.insert(mount.path);
  else
    console.note(storage.error().message);
  return {paths.begin(), paths.end()};
}

}  // namespace iosig::cli
