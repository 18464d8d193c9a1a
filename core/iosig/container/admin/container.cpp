#include "iosig/container/admin/container.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <system_error>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/read/regular_writers.h"
#include "iosig/container/write/container_writer.h"

namespace iosig {
namespace {

Result<std::string> new_id() {
  std::array<std::uint8_t, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return system_failure("draw", "a random number");
  std::string id;
  for (const std::uint8_t byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

/// Writes the manifest to the new file `name` in `directory`. The kernel applies the umask to the manifest's mode, and
/// `manifest.mode` is set to the result. A copy of the manifest has `copy_mode` instead.
Result<void> write_manifest(const Fd& directory, std::string_view shown_directory, std::string_view name,
                            ContainerManifest& manifest, std::optional<unsigned> copy_mode = {}) {
  const std::string shown = fmt::format("{}/{}", shown_directory, name);
  const Fd fd = open_file_at(directory.get(), std::string(name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                             copy_mode ? 0600 : manifest.mode);
  struct stat made {};
  if (!fd) return write_failure("make", shown, errno);
  if (copy_mode && ::fchmod(fd.get(), *copy_mode) != 0) return system_failure("set the permissions of", shown);
  if (::fstat(fd.get(), &made) != 0) return system_failure("inspect", shown);
  if (!copy_mode) manifest.mode = made.st_mode & 07777;
  const std::string text = container_manifest_text(manifest);
  if (exceeds_size_limit(static_cast<std::int64_t>(text.size()))) return write_failure("write", shown, EFBIG);
  if (auto written = write_all(fd.get(), text, shown); !written) return written;
  // Writing to the file has cleared these bits.
  if ((made.st_mode & (S_ISUID | S_ISGID)) != 0 && ::fchmod(fd.get(), made.st_mode & 07777) != 0)
    return system_failure("set the permissions of", shown);
  if (::fsync(fd.get()) != 0) return system_failure("sync", shown);
  return {};
}

/// Opens the new directory at `path`, and gives its owner all permissions, whatever the umask.
Result<Fd> open_made(const std::string& path) {
  const int flags = O_DIRECTORY | O_NOFOLLOW;
  const Fd place = open_file_at(AT_FDCWD, path.c_str(), O_PATH | flags);
  if (!place) return system_failure("open", path);
  const std::string found = fmt::format("/proc/self/fd/{}", place.get());
  Fd directory = open_file_at(AT_FDCWD, found.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat status {};
  if (::fstat(place.get(), &status) != 0) return system_failure("inspect", path);
  if ((status.st_mode & 0700) != 0700 && ::chmod(found.c_str(), 0700 | (status.st_mode & S_ISGID)) != 0)
    return system_failure("set the permissions of", path);
  if (!directory) directory = open_file_at(AT_FDCWD, found.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory) return system_failure("open", path);
  return directory;
}

void sync_directory_of(const std::string& path) {
  const Fd parent = open_file_at(AT_FDCWD, split_path(path).directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (parent) (void)::fsync(parent.get());
}

/// Renames the directory `draft` to `path`, which must not exist. Returns 0 or errno.
int put_in_place(const std::string& draft, const std::string& path) {
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system lacks the flag. mkdir() claims the name, and rename() then replaces the empty directory.
  if (::mkdir(path.c_str(), 0700) != 0) return errno;
  return ::rename(draft.c_str(), path.c_str()) == 0 ? 0 : errno;
}

/// The directories made so far; removed at the end of the scope unless the list is cleared.
struct Draft {
  std::vector<std::string> directories;
  ~Draft() {
    try {
      for (const std::string& directory : directories) remove_tree(directory);
    } catch (const std::bad_alloc&) {  // remaining directories have hidden names, as after a crash
    }
  }
};

tl::unexpected<Error> exists_already(const std::string& path) {
  return fail_with_errno(EEXIST, ErrorKind::usage, "'{}' exists already", printable(path));
}

/// Step 1 of create_container().
Result<void> make_targets(const std::vector<std::string>& targets, ContainerManifest& manifest, Draft& draft) {
  for (const std::string& target : targets) {
    if (!target.starts_with('/'))
      return fail(ErrorKind::usage, "the target '{}': expected an absolute path", printable(target));
    manifest.targets.push_back(fmt::format("{}/{}", without_trailing_slashes(target), manifest.id));
    if (::mkdir(manifest.targets.back().c_str(), 0700) != 0)
      return write_failure("make the target", manifest.targets.back(), errno);
    draft.directories.push_back(manifest.targets.back());
  }
  return {};
}

/// Step 2 of create_container(), after mkdir(2): writes the manifest into the directory `made`, and sets the mode of
/// both. The manifest gets its mode from the kernel. Returns the directory's inode.
Result<std::uint64_t> fill_directory(const std::string& made, ContainerManifest& manifest) {
  struct stat status {};
  const auto directory = open_made(made);
  if (!directory) return pass_on(directory.error());
  if (::fstat(directory->get(), &status) != 0) return system_failure("inspect", made);
  if (auto written = write_manifest(*directory, made, container_manifest_name, manifest); !written)
    return pass_on(std::move(written.error()));
  if (::fchmod(directory->get(), directory_mode_for(manifest.mode) | (status.st_mode & S_ISGID)) != 0)
    return system_failure("set the permissions of", made);
  if (auto kept = keep_manifest_readable(*directory, made, manifest, manifest.mode); !kept)
    return pass_on(std::move(kept.error()));
  return status.st_ino;
}

/// Step 3 of create_container().
Result<void> fill_targets(ContainerManifest& manifest) {
  for (const std::string& target : manifest.targets) {
    const auto opened = open_made(target);
    if (!opened) return pass_on(opened.error());
    const unsigned mode = piece_mode_for(manifest.mode);
    if (auto written = write_manifest(*opened, target, container_manifest_name, manifest, mode); !written)
      return pass_on(std::move(written.error()));
  }
  return {};
}

}  // namespace

/// Example: `out.h5` with one target `/nvme`, whose new id is 5f..e1.
///
/// 1. Make the directory `/nvme/5f..e1`.
/// 2. Make the hidden directory `.out.h5.iosig-new-<id>` with the manifest, which names the target.
/// 3. Write the manifest into `/nvme/5f..e1`, with the path and the inode of its owner.
/// 4. Rename the hidden directory to `out.h5`, if that is still free. Flush the parent directory.
///
/// A failure removes what was made. Killed before 4: nothing is at `path`; a hidden directory and the directories on
/// the targets are left, without data.
Result<std::shared_ptr<const ContainerDirectory>> create_container(const std::string& path,
                                                                   const ContainerOptions& options) {
  const std::string plain(without_trailing_slashes(path));
  struct stat status {};
  if (::lstat(plain.c_str(), &status) == 0) return exists_already(plain);
  auto id = new_id();
  if (!id) return pass_on(std::move(id.error()));
  ContainerManifest manifest{.id = *id,
                             .index = options.index,
                             .subdirectories = options.subdirectories,
                             .mode = options.mode & 07777,
                             .targets = {},
                             .owner = {}};
  Draft draft;
  if (auto made = make_targets(options.targets, manifest, draft); !made) return pass_on(std::move(made.error()));
  const std::string made = name_beside(plain, "new", id->substr(0, 16));
  if (::mkdir(made.c_str(), 0700) != 0) return write_failure("make", plain, errno);
  draft.directories.push_back(made);
  const auto inode = fill_directory(made, manifest);
  if (!inode) return pass_on(inode.error());
  std::error_code unknown;
  manifest.owner = ContainerOwner{std::filesystem::absolute(plain, unknown).string(), *inode};
  if (auto filled = fill_targets(manifest); !filled) return pass_on(std::move(filled.error()));
  const int failure = put_in_place(made, plain);
  if (failure == EEXIST) return exists_already(plain);
  if (failure != 0) return write_failure("make", plain, failure);
  draft.directories.clear();
  sync_directory_of(plain);
  return ContainerDirectory::open(plain);
}

Result<void> keep_manifest_readable(const Fd& directory, std::string_view shown, const ContainerManifest& manifest,
                                    unsigned mode) {
  if ((mode & 0400) != 0) return {};
  const std::string name(manifest_copy_name), copy_shown = fmt::format("{}/{}", shown, name);
  ContainerManifest copy = manifest;
  copy.mode = mode & 07777;
  const auto give_to_owner = [&](int fd) -> Result<void> {
    struct stat owner {};
    if (::fstat(directory.get(), &owner) != 0) return system_failure("inspect", shown);
    if (owner.st_uid != ::geteuid() && ::fchown(fd, owner.st_uid, owner.st_gid) != 0)
      return system_failure("change the owner of", copy_shown);
    return {};
  };
  return replace_file_in(directory, name, container_manifest_text(copy),
                         {.draft = std::string(manifest_copy_draft),
                          .mode = piece_mode_for(mode),
                          .shown = copy_shown,
                          .before_sync = give_to_owner});
}

Result<ContainerStatus> status_of(const ContainerDirectory& directory, bool* has_write_in_progress) {
  // The times of an empty container are those of its manifest. The directory's times would also change with sequencers
  // and index snapshots.
  struct stat manifest {};
  if (const int failure = directory.stat_manifest(manifest); failure != 0)
    return system_failure("inspect", fmt::format("{}/{}", directory.path(), container_manifest_name), failure);
  ContainerStatus known;
  if (has_write_in_progress != nullptr) *has_write_in_progress = false;
  if (const auto kept = read_index_snapshot(directory)) {
    known = kept->status;
  } else {
    const DirectoryState before = state_of(directory);
    ContainerDirectory::Listing listing = directory.list();
    if (auto regular = merge_regular_writers(directory, listing)) {
      known = regular->status;
      save_index_snapshot(directory, before, *regular);
    } else {
      const auto content = read_content(directory, ContentSource::records, std::move(listing));
      if (!content) return pass_on(content.error());
      known = content->status;
      known.size = content->size();
      save_index_snapshot(directory, before, *content);
      if (has_write_in_progress != nullptr) *has_write_in_progress = content->has_write_in_progress;
    }
  }
  known.modified_unix_ns = std::max(known.modified_unix_ns, unix_ns(manifest.st_mtim));
  known.accessed_unix_ns = std::max(known.accessed_unix_ns, unix_ns(manifest.st_atim));
  known.changed_unix_ns = std::max(known.changed_unix_ns, unix_ns(manifest.st_ctim));
  return known;
}

namespace {

/// Whether a truncation mark has made all droppings of a writer void, whose writes are all in `before`.
///
/// **The droppings of an active writer must stay.** A writer that is being opened has an index without writes, and no
/// tail yet. A writer that was opened after `before` was read has a tail now; or it has been closed since, and its
/// index has grown by its last writes.
bool is_void(const ContainerDirectory& directory, const WriterContent& before) {
  if (before.has_tail || (before.writes.empty() && before.marks.empty())) return false;
  if (directory.open_dropping(Dropping::tail, before.id, O_PATH) || errno != ENOENT) return false;
  struct stat index {};
  const Fd fd = directory.open_dropping(Dropping::index, before.id, O_PATH);
  return fd && ::fstat(fd.get(), &index) == 0 && index.st_size == before.index_bytes;
}

/// Returns the writers with ids below `end` of which no index tells what they wrote, and which were killed: whatever
/// they wrote is older than a truncation that begins now. A writer without a tail may be active: its droppings are
/// damaged. **Others with a tail stay**: on file systems whose locks each node has for itself, they may be another
/// node's active writers.
std::vector<std::int64_t> killed_lost_writers(const ContainerDirectory& directory, const ContainerContent& content,
                                              std::int64_t end) {
  std::vector<std::int64_t> killed;
  for (const LostWrites& lost : content.lost_writes) {
    if (lost.id < 0 || lost.id >= end) continue;
    const Fd tail = directory.open_dropping(Dropping::tail, lost.id, O_RDONLY | O_NONBLOCK);
    if (tail && !is_alive(tail)) killed.push_back(lost.id);
  }
  return killed;
}

/// **Deletes the droppings** of writers that a truncation has made void; the tails only of `killed` ones. The data go
/// first, also from the device if they lie on a target: data that came back after a power failure, without the index
/// that says that they are void, would make the container unreadable.
void delete_void_droppings(const ContainerDirectory& directory, std::vector<std::int64_t> closed,
                           std::vector<std::int64_t> killed) {
  std::map<std::pair<dev_t, ino_t>, Fd> on_targets;
  const auto has_data = [&](std::int64_t id) {
    if (directory.unlink_dropping(Dropping::data, id) != 0) return errno != ENOENT;
    if (directory.target_of(id) < 0) return false;
    auto subdirectory = directory.open_subdirectory(Dropping::data, id);
    struct stat status {};
    if (!subdirectory || ::fstat(subdirectory->get(), &status) != 0) return true;
    on_targets.try_emplace({status.st_dev, status.st_ino}, *std::move(subdirectory));
    return false;
  };
  std::erase_if(closed, has_data);
  std::erase_if(killed, has_data);
  for (const auto& [place, subdirectory] : on_targets)
    if (::fsync(subdirectory.get()) != 0) return;
  for (const std::int64_t id : closed) (void)directory.unlink_dropping(Dropping::index, id);
  for (const std::int64_t id : killed)  // the tail last, which names the writer until then
    if (directory.unlink_dropping(Dropping::index, id) == 0 || errno == ENOENT)
      (void)directory.unlink_dropping(Dropping::tail, id);
}

}  // namespace

Result<void> truncate_container(const std::shared_ptr<const ContainerDirectory>& directory, std::int64_t size) {
  std::optional<ContainerContent> before;
  auto writer = ContainerWriter::open(directory, 0, &before);
  if (!writer) return pass_on(std::move(writer.error()));
  if (size == 0 && !before) {
    auto content = read_content(*directory, ContentSource::records);
    if (!content) return pass_on(std::move(content.error()));
    before = *std::move(content);
  }
  // Before the mark is made: what a writer wrote after the mark counts, even if the writer has died since.
  std::vector<std::int64_t> killed;
  if (size == 0) killed = killed_lost_writers(*directory, *before, (*writer)->id());
  if (auto cut = (*writer)->truncate(size); !cut) return cut;
  if (size == 0) {
    // The mark must be durable before the droppings that it makes void are deleted.
    if (auto synced = (*writer)->sync(); !synced) return synced;
    // A record without droppings is a loss; droppings without their record are not. So the records go first.
    remove_closed_writers(*directory, (*writer)->id());
    // Droppings of writers with a greater id stay, even if they are void: check_container() reports a missing id after
    // that of the mark's writer as a loss.
    std::vector<std::int64_t> closed;
    for (const WriterContent& each : before->writers)
      if (each.id < (*writer)->id() && is_void(*directory, each)) closed.push_back(each.id);
    delete_void_droppings(*directory, std::move(closed), std::move(killed));
  }
  return (*writer)->close();
}

Result<void> rename_container(const std::string& from, const std::string& to) {
  const std::string source(without_trailing_slashes(from)), target(without_trailing_slashes(to));
  if (const auto directory = ContainerDirectory::open(source); !directory) return pass_on(directory.error());
  if (const auto renamed = rename_at({AT_FDCWD, source}, {AT_FDCWD, target}); !renamed)
    return as_error(renamed.error(), "rename", source);
  return {};
}

Result<void> remove_container(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  if (const auto directory = ContainerDirectory::open(plain); !directory) return pass_on(directory.error());
  struct stat status {};
  if (::lstat(plain.c_str(), &status) != 0) return system_failure("inspect", plain);
  if (S_ISLNK(status.st_mode)) return fail(ErrorKind::usage, "'{}' is a link", printable(plain));
  const std::string removed = removed_name(plain);
  if (::rename(plain.c_str(), removed.c_str()) != 0) return system_failure("remove", plain);
  delete_removed(AT_FDCWD, removed);
  return {};
}

}  // namespace iosig
