// Holding a container open, and deleting it when no process holds it any more, as the kernel does with an unlinked
// file.
//
// A holder has a shared flock(2) on the container's directory. container/admin/names.h first renames a container to a
// hidden name, then asks for the exclusive lock. If a process holds the container, that fails, and the last holder to
// close it sees the hidden name and deletes it. A killed holder deletes nothing: `iosig gc` does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/container/layout/container_directory.h"

namespace iosig {

/// Returns a new hidden name beside `path` for a container that is being removed.
[[nodiscard]] std::string removed_name(std::string_view path);
/// Returns whether the last component of `path` is such a name.
[[nodiscard]] bool is_removed_name(std::string_view path);

/// Holds the container of the open `directory` until this descriptor and all its duplicates are closed. Waits while
/// another process replaces the container by an ordinary file. Returns false and sets errno: ENOENT if the container is
/// being deleted, EBUSY if another process keeps it locked for seconds.
[[nodiscard]] bool hold_container(int directory);

/// Returns whether the container of the open `directory`, which the caller holds, was unlinked.
[[nodiscard]] bool is_unlinked(int directory);

/// Releases what hold_container() held. Deletes the container if it was unlinked and no other process holds it.
void let_go_container(Fd directory);
/// The same with `known`, another descriptor of the directory that holds nothing (O_PATH).
void let_go_container(Fd directory, const Fd& known);

/// Holds a container for as long as it lives. Movable.
class ContainerHold {
 public:
  ContainerHold() = default;
  /// Fails with `system` if the container is being deleted or stays locked.
  static Result<ContainerHold> take(const ContainerDirectory& directory);
  ContainerHold(ContainerHold&&) = default;
  ContainerHold& operator=(ContainerHold&&) = default;
  ~ContainerHold();

 private:
  Fd directory_;
};

/// **Deletes the container** at the hidden name `name` in the open directory `directory`, with its data on all targets,
/// unless a process holds it. Also completes an interrupted removal. Returns false if it is still there.
bool discard_removed(int directory, const std::string& name);
/// The same for a caller that holds the exclusive lock.
void delete_removed(int directory, const std::string& name);

/// The directories and data that removing a container deletes.
struct Removal {
  std::vector<std::string> directories;  ///< the container's own, and those on its targets
  std::int64_t data_bytes = 0;           ///< in the data droppings
};
/// Fails as unlink_container() does, with `bad_input` if `path` is not a container, and with `usage` for a link to one.
[[nodiscard]] Result<Removal> removal_of(const std::string& path);

/// unlink(2) of a container: unlink_at() (container/admin/names.h) for a path.
[[nodiscard]] Result<void> unlink_container(const std::string& path);

}  // namespace iosig
