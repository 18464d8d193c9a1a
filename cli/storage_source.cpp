#include "storage_source.h"

#include <set>

#include "iosig/base/text.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/reserve.h"
#include "iosig/storage/discover.h"

namespace iosig::cli {
namespace {

void note_system_fault(const AppliedStorage& applied, const Console& console) {
  if (applied.system_fault.empty()) return;
  console.note(applied.system_fault + "; so its mount points and limits do not count; tell the administrator");
}

}  // namespace

Result<StorageSource> load_storage(const std::string& option, const Console& console) {
  auto applied = read_applied_storage(option);
  if (!applied) return pass_on(applied.error());
  if (*applied) {
    note_system_fault(**applied, console);
    ask_room((*applied)->storage);
    const StorageFile& file = (*applied)->file;
    return StorageSource{std::move((*applied)->storage), file.path, file, (*applied)->has_system};
  }
  auto storage = inspect_storage();
  if (!storage) return pass_on(storage.error());
  ask_room(*storage);
  console.note(
      "there is no storage description: this is a quick look with conservative defaults; "
      "'iosig storage probe' measures");
  return StorageSource{*std::move(storage), {}, {}, false};
}

std::string about_file(const StorageSource& source) {
  return fmt::format("{} ({}){}", printable(source.file), reason_text(source.found),
                     source.has_system ? fmt::format(", and {}", system_storage_file) : "");
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
              printable(did_you_mean(path, known)), printable(fmt::format("{}", fmt::join(known, ", "))));
}

std::vector<std::string> known_mount_points(const Journal& journal, const Console& console) {
  std::set<std::string> paths;
  for (const JournalEntry& entry : journal.entries) paths.insert(entry.mount_point);
  const auto applied = read_applied_storage();
  if (!applied) {
    console.note(applied.error().message);
  } else if (*applied) {
    note_system_fault(**applied, console);
    for (const MountPoint& mount : (*applied)->storage.mount_points) paths.insert(mount.path);
  }
  return {paths.begin(), paths.end()};
}

}  // namespace iosig::cli
