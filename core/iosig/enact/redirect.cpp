#include "iosig/enact/redirect.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "iosig/enact/journal_folder.h"
#include "iosig/enact/user_folder.h"

namespace iosig {
namespace {

/// `id.name`, cut to what a file system takes, and not within a UTF-8 character (some check).
std::string destination_name(std::string_view id, std::string_view name) {
  std::string whole = fmt::format("{}.{}", id, name);
  if (whole.size() <= NAME_MAX) return whole;
  std::size_t end = NAME_MAX;
  while (end > id.size() + 1 && (static_cast<unsigned char>(whole[end]) & 0xc0) == 0x80) --end;
  whole.resize(end);
  return whole;
}

}  // namespace

Result<bool> lies_on(const Place& place, const std::string& mount_point) {
  struct stat status {};
  if (::stat(mount_point.c_str(), &status) != 0) return system_failure("inspect the mount point", mount_point);
  return status.st_dev == place.device;
}

Result<std::optional<JournalEntry>> make_link(const Place& place, const std::string& mount_point,
                                              const Signature& signature, RedirectedBy by) {
  const auto folder = open_user_folder(mount_point);
  if (!folder) return pass_on(folder.error());
  auto entry = new_journal_entry(by);
  if (!entry) return pass_on(entry.error());
  entry->kind = RedirectKind::link;
  entry->path = place.path();
  entry->destination = folder->path + "/" + destination_name(entry->id, place.name);
  entry->mount_point = mount_point;
  entry->filesystem_id = filesystem_id(folder->fd);
  entry->signature = signature;
  if (auto recorded = record(*entry, by == RedirectedBy::prepare); !recorded) return pass_on(recorded.error());
  if (::symlinkat(entry->destination.c_str(), place.folder.get(), place.name.c_str()) == 0) return *std::move(entry);
  const int failure = errno;
  (void)forget(*entry);
  if (failure == EEXIST) return std::nullopt;
  return system_failure("make a link at", entry->path, failure);
}

}  // namespace iosig
