// Operations on names, of containers and of ordinary files: remove, rename, exchange, replace. The C interface, the
// preloaded library, the mount and the command all call these.
//
// A container is a directory, which rename(2) and unlink(2) treat differently from a file. These functions give it the
// semantics of a file, and they respect its holders (container/admin/removal.h): a container that any process of this
// node has open, through any interface, loses only its name. Its data stay until the last holder closes it.
//
//   unlink    rename the container to a hidden name beside it, then delete it unless a process holds it
//   rename    onto a free name: one rename(2)
//             onto a container or a file: exchange the two names in one step, then remove the old target as unlink does
//
// Killed between two steps, each leaves every byte in place: an unlink, or a rename's old target, stays under its
// hidden name (`.<name>.iosig-removed-<number>`) until `iosig gc` deletes it. A rename onto a container that is killed
// just after the exchange leaves the old target under the source's name.
#pragma once

#include <fcntl.h>

#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// `path`, relative to the open directory `directory`, as for the *at() calls. O_PATH will do.
struct NameAt {
  int directory = AT_FDCWD;
  std::string path;
};

/// Why an operation failed.
struct NameFailure {
  int number = 0;       ///< errno, as the kernel gives for an ordinary file
  std::string message;  ///< a whole sentence where errno does not say enough, else empty
};
using NameResult = tl::expected<void, NameFailure>;

/// The failure as a Result: "cannot <doing> '<path>': ...", with its errno.
[[nodiscard]] tl::unexpected<Error> as_error(const NameFailure& failure, std::string_view doing, std::string_view path);

enum class NameKind {
  none,       ///< errno says why; ENOENT: the name is free
  container,  ///< a directory with a container's manifest
  directory,  ///< any other directory
  other,      ///< a file, a symbolic link, a device
};
/// Follows no link in the last component.
[[nodiscard]] NameKind kind_at(const NameAt& name);

/// Like unlinkat(2); `flags` is 0 or AT_REMOVEDIR. Fails with ENOTDIR for a container with AT_REMOVEDIR, because a
/// container is a file.
///
/// With AT_REMOVEDIR, a directory counts as empty if it contains only containers that were removed while open. Those
/// without a holder are deleted; the others move to the parent directory under their hidden names.
[[nodiscard]] NameResult unlink_at(const NameAt& name, int flags = 0);

/// Like renameat2(2), with flags 0, RENAME_NOREPLACE or RENAME_EXCHANGE. Containers and files replace each other.
/// RENAME_WHITEOUT is passed to the kernel for ordinary files, and fails with EINVAL for a container. Fails with EROFS
/// and a message if both are copies of one container, which share its data on the targets.
[[nodiscard]] NameResult rename_at(const NameAt& from, const NameAt& to, unsigned flags = 0);

/// Replaces the container at `name` by the ordinary file `draft`, atomically, and **deletes the container**. `alone` is
/// open on the container with the exclusive lock, so no other process holds it. Fails with ESTALE, and changes nothing,
/// if another process has renamed or replaced the container meanwhile.
[[nodiscard]] NameResult replace_at(const NameAt& draft, const NameAt& name, const Fd& alone);

}  // namespace iosig
