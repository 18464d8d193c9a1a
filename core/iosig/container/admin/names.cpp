#include "iosig/container/admin/names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/target_owner.h"

namespace iosig {
namespace {

constexpr int max_name_tries = 1000;  ///< limit of the retries while other processes change the same names

tl::unexpected<NameFailure> failed(int number, std::string message = {}) {
  return tl::unexpected(NameFailure{number, std::move(message)});
}

NameResult done_or(int number) {
  if (number == 0) return {};
  return failed(number);
}

bool look(const NameAt& at, struct stat& status) {
  return ::fstatat(at.directory, at.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

NameKind kind_of(const NameAt& at, struct stat& status) {
  const std::string manifest = fmt::format("{}/{}", at.path, container_manifest_name);
  for (int tries_left = max_name_tries; tries_left > 0; --tries_left) {
    struct stat found {
    }, now{};
    if (!look(at, status)) return NameKind::none;
    if (!S_ISDIR(status.st_mode)) return NameKind::other;
    if (::fstatat(at.directory, manifest.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode))
      return NameKind::container;
    if (look(at, now) && is_same_inode(now, status)) break;  // else the manifest was looked for in another file
  }
  return NameKind::directory;
}

/// Returns 0 or errno.
int move(const NameAt& from, const NameAt& to, unsigned flags) {
  if (::renameat2(from.directory, from.path.c_str(), to.directory, to.path.c_str(), flags) == 0) return 0;
  return errno;
}

/// Renames to a name that no other process uses. Returns 0 or errno.
int move_to_own(const NameAt& from, const NameAt& to) {
  const int failure = move(from, to, RENAME_NOREPLACE);
  return failure == EINVAL || failure == ENOSYS ? move(from, to, 0) : failure;  // the file system lacks the flag
}

NameAt beside(const NameAt& at) { return {at.directory, removed_name(at.path)}; }

/// Returns a path without a directory descriptor.
std::string reachable(const NameAt& at) {
  return at.directory == AT_FDCWD || at.path.starts_with('/')
             ? at.path
             : fmt::format("/proc/self/fd/{}/{}", at.directory, at.path);
}

/// Restores a file that another process had put in the container's place and that was renamed by mistake. Returns false
/// if that fails; the file then stays at `hidden`.
bool give_back(const NameAt& hidden, const NameAt& to) { return move_to_own(hidden, to) == 0; }

NameFailure stranded(const NameAt& hidden, const NameAt& at) {
  return {EIO, fmt::format("'{}' was replaced by another process at the same moment; the replacement is now '{}'",
                           printable(at.path), printable(hidden.path))};
}

/// Deletes the container or file at a hidden name; a container only if no process holds it. Returns 0 or errno.
int discard(const NameAt& hidden) {
  struct stat status {};
  if (!look(hidden, status)) return errno == ENOENT ? 0 : errno;
  if (!S_ISDIR(status.st_mode)) return ::unlinkat(hidden.directory, hidden.path.c_str(), 0) == 0 ? 0 : errno;
  (void)discard_removed(hidden.directory, hidden.path);  // if it is held, its last holder deletes it
  return 0;
}

/// Removes the container at `at`, or a file that another process has put there meanwhile.
NameResult unlink_container_at(const NameAt& at) {
  const NameAt hidden = beside(at);
  const Fd seen = open_file_at(at.directory, at.path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  struct stat container {
  }, status{};
  const bool is_known = seen && kind_of({seen.get(), "."}, container) == NameKind::container;
  if (const int failure = move_to_own(at, hidden); failure != 0) return failed(failure);
  // A container that its last holder is deleting now has no manifest any more, but is still the one that was seen.
  const bool is_seen = is_known && look(hidden, status) && is_same_inode(status, container);
  if (is_seen || kind_of(hidden, status) != NameKind::directory) return done_or(discard(hidden));
  if (!give_back(hidden, at)) return tl::unexpected(stranded(hidden, at));
  return failed(EISDIR);
}

/// Empties the directory `at`, before it is removed or replaced, of containers that were removed while open: deletes or
/// moves them. Returns 0 or errno; ENOTEMPTY if the directory contains anything else.
int clear_of_removed(const NameAt& at) {
  const Fd directory = open_file_at(at.directory, at.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return errno;
  const auto names = names_in(directory);
  if (!names) return ENOTEMPTY;
  struct stat status {};
  for (const std::string& name : *names)
    if (!is_removed_name(name) || !look({directory.get(), name}, status) || !S_ISDIR(status.st_mode)) return ENOTEMPTY;
  const std::string parent = split_path(at.path).directory;
  for (const std::string& name : *names) {
    if (discard_removed(directory.get(), name)) continue;
    const int failure =
        move({directory.get(), name}, {at.directory, fmt::format("{}/{}", parent, name)}, RENAME_NOREPLACE);
    if (failure != 0 && failure != ENOENT) return ENOTEMPTY;
  }
  return 0;
}

bool is_not_empty(int failure) { return failure == ENOTEMPTY || failure == EEXIST; }

int remove_directory(const NameAt& at) {
  const auto remove = [&] { return ::unlinkat(at.directory, at.path.c_str(), AT_REMOVEDIR) == 0 ? 0 : errno; };
  int failure = remove();
  for (int tries_left = 4; is_not_empty(failure) && tries_left > 0; --tries_left) {
    if (clear_of_removed(at) != 0) return failure;
    failure = remove();
  }
  return failure;
}

/// The plain rename(2). Treats a target directory that contains only removed containers as empty.
int rename_plainly(const NameAt& from, const NameAt& to, unsigned flags) {
  // Without flags it calls renameat(), which all kernels and file systems support, unlike renameat2().
  const auto rename = [&] {
    if (flags != 0) return move(from, to, flags);
    return ::renameat(from.directory, from.path.c_str(), to.directory, to.path.c_str()) == 0 ? 0 : errno;
  };
  int failure = rename();
  for (int tries_left = 4; flags == 0 && is_not_empty(failure) && tries_left > 0; --tries_left) {
    if (clear_of_removed(to) != 0) return failure;
    failure = rename();
  }
  return failure;
}

enum class Replaced { yes, changed };  ///< changed: another process has changed a name first; nothing was done

/// Replaces the file at `to`, with the status `there`, by the file at `from`, with the status `here`. At least one of
/// them is a container.
tl::expected<Replaced, NameFailure> replace(const NameAt& from, const struct stat& here, const NameAt& to,
                                            const struct stat& there) {
  if (const int failure = move(from, to, RENAME_EXCHANGE); failure != 0) {
    if (failure == ENOENT) return Replaced::changed;
    return failed(failure);
  }
  struct stat left {
  }, placed{};
  const bool is_as_wanted =
      look(from, left) && is_same_inode(left, there) && look(to, placed) && is_same_inode(placed, here);
  if (!is_as_wanted) {
    if (const int failure = move(from, to, RENAME_EXCHANGE); failure != 0 && failure != ENOENT) return failed(failure);
    return Replaced::changed;
  }
  // The hidden name is beside `to`, because `iosig gc` searches there for the container of data on a target.
  const NameAt hidden = beside(to);
  if (const int failure = move_to_own(from, hidden); failure != 0) {
    if (failure == ENOENT) return Replaced::yes;  // another process has removed it from there
    (void)move(from, to, RENAME_EXCHANGE);
    return failed(failure);
  }
  if (look(hidden, left) && !is_same_inode(left, there)) {  // another process has replaced it there
    if (!give_back(hidden, from)) return tl::unexpected(stranded(hidden, from));
    return Replaced::yes;
  }
  if (const int failure = discard(hidden); failure != 0) return failed(failure);
  return Replaced::yes;
}

}  // namespace

tl::unexpected<Error> as_error(const NameFailure& failure, std::string_view doing, std::string_view path) {
  return failure.message.empty() ? system_failure(doing, path, failure.number)
                                 : fail_with_errno(failure.number, ErrorKind::infeasible, "{}", failure.message);
}

NameKind kind_at(const NameAt& name) {
  struct stat status {};
  return kind_of(name, status);
}

NameResult unlink_at(const NameAt& name, int flags) {
  for (int tries_left = max_name_tries;; --tries_left) {
    NameResult done;
    switch (kind_at(name)) {
      case NameKind::container:
        if ((flags & AT_REMOVEDIR) != 0) return failed(ENOTDIR);
        done = unlink_container_at(name);
        break;
      case NameKind::directory:
        if ((flags & AT_REMOVEDIR) != 0)
          done = done_or(remove_directory(name));
        else
          return failed(EISDIR);
        break;
      case NameKind::none:
      case NameKind::other:
        done = done_or(::unlinkat(name.directory, name.path.c_str(), flags) == 0 ? 0 : errno);
        break;
    }
    // EISDIR for a file: another process has made a container there meanwhile.
    if (done || done.error().number != EISDIR || (flags & AT_REMOVEDIR) != 0 || tries_left == 0) return done;
  }
}

NameResult rename_at(const NameAt& from, const NameAt& to, unsigned flags) {
  for (int tries_left = max_name_tries; tries_left > 0; --tries_left) {
    struct stat here {
    }, there{};
    const NameKind source = kind_of(from, here);
    const int source_failure = source == NameKind::none ? errno : 0;
    const NameKind target = kind_of(to, there);
    const int target_failure = target == NameKind::none ? errno : 0;
    const bool meets_container = source == NameKind::container || target == NameKind::container;
    if (meets_container && (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return failed(EINVAL);
    if (!meets_container || flags != 0) {
      const int failure = rename_plainly(from, to, flags);
      // A file that was not the directory of a container when its kind was found.
      const bool has_changed = (failure == EISDIR || failure == ENOTDIR) && flags == 0 &&
                               source != NameKind::directory && target != NameKind::directory &&
                               source_failure != ENOTDIR && target_failure != ENOTDIR && !from.path.ends_with('/') &&
                               !to.path.ends_with('/');
      if (has_changed) continue;
      return done_or(failure);
    }
    if (source == NameKind::none) return failed(source_failure);
    if (target == NameKind::none) {
      if (target_failure != ENOENT) return failed(target_failure);
      // RENAME_NOREPLACE: if another process makes a file at the free name, the kernel must not treat the container as
      // a directory.
      const int failure = move_to_own(from, to);
      if (failure == EEXIST) continue;
      return done_or(failure);
    }
    if (is_same_inode(here, there)) return {};
    if (target == NameKind::directory) return failed(EISDIR);
    if (source == NameKind::directory) return failed(ENOTDIR);
    if (source == target && share_data(reachable(from), reachable(to)))
      return failed(EROFS, fmt::format("'{}' and '{}' are copies of each other with the same data: remove one",
                                       printable(from.path), printable(to.path)));
    const auto replaced = replace(from, here, to, there);
    if (!replaced) return tl::unexpected(replaced.error());
    if (*replaced == Replaced::yes) return {};
  }
  return failed(EBUSY, fmt::format("'{}' keeps changing; giving up", printable(to.path)));
}

NameResult replace_at(const NameAt& draft, const NameAt& name, const Fd& alone) {
  struct stat locked {
  }, left{};
  if (::fstat(alone.get(), &locked) != 0) return failed(errno);
  if (const int failure = move(draft, name, RENAME_EXCHANGE); failure != 0)
    return failed(failure == ENOENT ? ESTALE : failure);
  if (!look(draft, left) || !is_same_inode(left, locked)) {
    if (const int failure = move(draft, name, RENAME_EXCHANGE); failure != 0) return failed(failure);
    return failed(ESTALE);
  }
  const NameAt hidden = beside(name);
  if (const int failure = move_to_own(draft, hidden); failure != 0) return failed(failure);
  delete_removed(hidden.directory, hidden.path);
  return {};
}

}  // namespace iosig
