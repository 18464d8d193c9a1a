#include "storage_source.h"

#include "iosig/enact/reserve.h"
#include "iosig/format/storage_file.h"
#include "iosig/storage/discover.h"

namespace iosig::cli {

Result<StorageSource> load_storage(const std::string& option, const Console& console) {
  if (const auto file = find_storage_file(option)) {
    auto storage = read_storage_file(*file, FreeSpace::leave);
    if (!storage) return pass_on(storage.error());
    ask_room(*storage);
    return StorageSource{*std::move(storage), *file};
  }
  auto storage = inspect_storage();
  if (!storage) return pass_on(storage.error());
  ask_room(*storage);
  console.note(
      "there is no storage description: this is a quick look with conservative defaults; "
      "'iosig storage probe' measures");
  return StorageSource{*std::move(storage), {}};
}

}  // namespace iosig::cli
