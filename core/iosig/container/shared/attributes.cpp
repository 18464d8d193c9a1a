#include "iosig/container/shared/attributes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/layout/target_owner.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/read/index_snapshot.h"

namespace iosig {
namespace {

/// Calls has_failed(directory, name, is_directory) for every dropping and, after each, its subdirectory. Returns 0 or
/// errno.
template <class HasFailed>
int change_droppings(const ContainerDirectory& container, HasFailed&& has_failed) {
  const ContainerDirectory::Listing listing = container.list();
  for (const auto& [kind, ids] : {std::pair(Dropping::data, &listing.data), std::pair(Dropping::index, &listing.index),
                                  std::pair(Dropping::tail, &listing.tail)}) {
    for (const std::int64_t id : *ids) {
      const auto subdirectory = container.open_subdirectory(kind, id);
      if (!subdirectory) continue;
      if (has_failed(subdirectory->get(), dropping_name(kind, id).c_str(), false)) return errno;
      if (has_failed(subdirectory->get(), ".", true)) return errno;
    }
  }
  return 0;
}

bool has_mode_of_container(const std::string& name) {
  return is_sequencer(name) || name == index_snapshot_name || name == manifest_copy_name ||
         name.starts_with(closed_writers_prefix);
}

/// Calls change(directory, name, is_directory), which returns 0 or sets errno, for the manifest, then for every
/// dropping, subdirectory, sequencer and copy, last for the container's directory. EPERM and EACCES count for the
/// manifest only: other users who may write the file own some of its pieces. So does ELOOP: `change` must not follow
/// symbolic links, and one in the place of a piece stays as it is.
///
/// Example: chmod 640 of a container that two users write. The manifest changes; the other user's droppings cannot be
/// changed, which is no failure, because the manifest decides what readers are told.
template <class Change>
int change_pieces(const ContainerDirectory& container, Change&& change) {
  const std::string manifest(container_manifest_name);
  if (change(container.fd().get(), manifest.c_str(), false) != 0) return errno;
  const auto has_failed = [&](int directory, const char* name, bool is_directory) {
    return change(directory, name, is_directory) != 0 && errno != ENOENT && errno != EPERM && errno != EACCES &&
           errno != ELOOP;
  };
  if (const int failure = change_droppings(container, has_failed); failure != 0) return failure;
  const auto names = names_in(container.fd());
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (has_mode_of_container(name) && has_failed(container.fd().get(), name.c_str(), false)) return errno;
  return has_failed(container.fd().get(), ".", true) ? errno : 0;
}

}  // namespace

void show_manifest(const struct stat& manifest, struct stat& status) {
  status.st_mode = S_IFREG | (manifest.st_mode & 07777);
  status.st_uid = manifest.st_uid;
  status.st_gid = manifest.st_gid;
  status.st_nlink = 1;
  status.st_blksize = 4096;
}

int set_piece_times(const ContainerDirectory& directory, const timespec times[2]) {
  return change_pieces(directory, [&](int place, const char* name, bool) {
    return ::utimensat(place, name, times, AT_SYMLINK_NOFOLLOW);
  });
}

int set_piece_modes(const ContainerDirectory& directory, unsigned mode, const FailureLog& log) {
  struct stat manifest {};
  if (const int failure = directory.stat_manifest(manifest); failure != 0) return failure;
  const bool is_owner = manifest.st_uid == ::geteuid() || ::geteuid() == 0;
  if (is_owner)
    if (const auto kept = keep_manifest_readable(directory.fd(), directory.path(), directory.manifest(), mode); !kept)
      return log(kept.error());
  return change_pieces(directory, [&](int place, const char* name, bool is_directory) {
    struct stat piece {};
    if (is_directory) {
      if (::fstatat(place, name, &piece, AT_SYMLINK_NOFOLLOW) != 0) return -1;
      return set_mode_at(place, name, directory_mode_for(mode) | (piece.st_mode & S_ISGID));
    }
    const bool is_manifest = name == container_manifest_name;
    return set_mode_at(place, name, is_manifest ? mode & 07777 : piece_mode_for(mode));
  });
}

int set_piece_owners(const ContainerDirectory& directory, uid_t user, gid_t group, const FailureLog& log) {
  const auto give = [&](int place, const char* name, bool) {
    return ::fchownat(place, name, user, group, AT_SYMLINK_NOFOLLOW);
  };
  if (const auto may = may_be_written(directory); !may) return log(may.error());
  if (const int failure = change_pieces(directory, give); failure != 0) return failure;
  for (const std::string& target : directory.manifest().targets)  // accessible only by their owner
    for (const std::string& path : {fmt::format("{}/{}", target, container_manifest_name), target})
      if (give(AT_FDCWD, path.c_str(), false) != 0 && errno != ENOENT) return errno;
  return 0;
}

/// Lets the kernel decide: changes the manifest without changing its bytes.
void drop_privileges(const ContainerDirectory& directory) {
  struct stat manifest {};
  if (directory.stat_manifest(manifest) != 0) return;
  const bool is_group_run = (manifest.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if ((manifest.st_mode & S_ISUID) == 0 && !is_group_run) return;
  const std::string name(container_manifest_name);
  const Fd fd = open_file_at(directory.fd().get(), name.c_str(), O_WRONLY | O_NOFOLLOW);
  if (fd)
    (void)!::ftruncate(fd.get(), manifest.st_size);
  else  // a user without write permission on the file never keeps the bits
    (void)set_mode_at(directory.fd().get(), name.c_str(),
                      manifest.st_mode & 07777 & ~static_cast<unsigned>(S_ISUID | (is_group_run ? S_ISGID : 0)));
}

}  // namespace iosig
