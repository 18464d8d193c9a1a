#include "iosig/enact/redirect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/enact/home.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/enact/link_check.h"
#include "iosig/enact/own_file.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

bool is_taken(const Place& place) {
  struct stat status {};
  return ::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<bool> lies_on(const Place& place, const std::string& mount_point) {
  struct stat status {};
  if (::stat(mount_point.c_str(), &status) != 0) return system_failure("inspect the mount point", mount_point);
  return status.st_dev == place.device;
}

Result<std::optional<JournalEntry>> make_link(const Place& place, const MountPoint& mount, const Signature& signature,
                                              RedirectedBy by) {
  const auto directory = open_user_directory(mount.path);
  if (!directory) return pass_on(directory.error());
  const auto room = reserve(*directory, mount, signature.total_bytes);
  if (!room) {
    // Processes that race for one path need the space only once: the winner has it, and the others follow.
    if (is_taken(place)) return std::nullopt;
    return pass_on(room.error());
  }
  auto entry = new_journal_entry(by);
  if (!entry) return pass_on(entry.error());
  entry->kind = RedirectKind::link;
  entry->path = place.path();
  record_home(*entry, place);
  entry->destination = fmt::format("{}/{}/{}", directory->path, entry->id, place.name);
  entry->mount_point = mount.path;
  entry->filesystem_id = filesystem_id(directory->fd);
  entry->signature = signature;
  if (auto recorded = record(*entry, by == RedirectedBy::prepare); !recorded) return pass_on(recorded.error());
  const auto give_up = [&] {
    (void)::unlinkat(directory->fd.get(), entry->id.c_str(), AT_REMOVEDIR);
    (void)forget(*entry);
  };
  if (auto made = make_destination(*directory, entry->id, place.name); !made) {
    give_up();
    return pass_on(made.error());
  }
  if (auto inherited = inherit_default_acl(place.directory, directory->fd, entry->id, entry->destination); !inherited) {
    give_up();
    return pass_on(inherited.error());
  }
  if (::symlinkat(entry->destination.c_str(), place.directory.get(), place.name.c_str()) != 0) {
    const int failure = errno;
    give_up();
    if (failure == EEXIST) return std::nullopt;
    return refused_link(place, failure);
  }
  if (auto leads = check_link(place, entry->destination); !leads) {
    (void)::unlinkat(place.directory.get(), place.name.c_str(), 0);
    give_up();
    return pass_on(std::move(leads.error()));
  }
  room->keep_for(*entry);
  return *std::move(entry);
}

Result<std::string> make_job_directory(const MountPoint& mount, const Signature& signature) {
  const auto directory = open_user_directory(mount.path);
  if (!directory) return pass_on(directory.error());
  const auto room = reserve(*directory, mount, signature.total_bytes);
  if (!room) return pass_on(room.error());
  auto entry = new_journal_entry(RedirectedBy::choose);
  if (!entry) return pass_on(entry.error());
  const std::string name = entry->id + ".job";
  entry->kind = RedirectKind::directory;
  entry->path = entry->destination = directory->path + "/" + name;
  entry->mount_point = mount.path;
  entry->filesystem_id = filesystem_id(directory->fd);
  entry->signature = signature;
  entry->signature.lifetime = Lifetime::temp;
  if (auto recorded = record(*entry, /*durable=*/true); !recorded) return pass_on(recorded.error());
  if (::mkdirat(directory->fd.get(), name.c_str(), 0700) != 0) {
    const auto failure = system_failure("make the directory", entry->path);
    (void)forget(*entry);
    return failure;
  }
  ensure_mode(directory->fd, name, 0700);
  room->keep_for(*entry);
  return entry->path;
}

}  // namespace iosig
