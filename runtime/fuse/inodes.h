// The inodes that the kernel knows: each file, directory or symbolic link below the source that the kernel has looked
// up and has not forgotten.
//
// The daemon reaches every file from an O_PATH descriptor, by the name of a directory entry and without following
// links. A user who renames or replaces directories meanwhile cannot lead the daemon elsewhere (TOCTOU-safe).
//
// The kernel may know more files than the daemon may open. A descriptor that no request or handle is using is closed
// when the daemon needs its number (base/kept_fds.h), and is opened again by the file's last known name. If that leads
// to another file now, the request fails with ESTALE, and the kernel looks the path up again. The descriptor of a file
// that a program has open serves all requests for the file. The descriptor of a file whose name the mount removes stays
// open until the kernel forgets the file.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/container/shared/shared_container.h"

namespace iosig::fuse {

/// An O_PATH descriptor that stays open as long as its user needs it. Null: could not be opened.
using PathFd = std::shared_ptr<const Fd>;

/// The path in /proc/self/fd, with which any call that follows links reaches the file.
[[nodiscard]] inline std::string path_of(const PathFd& fd) { return fmt::format("/proc/self/fd/{}", fd->get()); }

/// Which file it is. The time of birth tells a file from a later one with the same inode number.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  bool is_container = false;
  std::int64_t born_s = 0;
  std::uint32_t born_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// One file. The address of this object is the inode number for the kernel.
struct Inode {
  FileIdentity identity;
  std::uint64_t generation = 0;

  // Protected by the table's lock.
  std::uint64_t references = 0;  ///< lookups by the kernel that it has not forgotten, and inodes with this parent
  Inode* parent = nullptr;       ///< the directory of the last lookup
  std::string name;              ///< the name there
  PathFd fd;                     ///< null while closed
  PathFd pinned;                 ///< of a file whose name was removed; else null
  bool is_pin_counted = false;   ///< `pinned` was not in use by a request or handle
  std::weak_ptr<const Fd> used;  ///< the descriptor that requests and handles have, even if it is not kept
  std::list<Inode*>::iterator kept_place;       ///< in Inodes::kept_, if `fd` is not null
  std::list<Inode*>::iterator container_place;  ///< in Inodes::containers_, if is_listed
  bool is_listed = false;

  std::mutex mutex;  ///< protects the members below
  std::shared_ptr<SharedContainer> container;
  std::shared_ptr<UnsyncedWriters> unsynced = std::make_shared<UnsyncedWriters>();  ///< of the container
  std::uint64_t shown_changes = 0;             ///< changes of the container when the kernel began to cache it
  timespec shown_modified{}, shown_changed{};  ///< of an ordinary file
  std::int64_t shown_size = -1;
  unsigned handles = 0;  ///< open files
  Fd held;               ///< the container's directory, held while handles > 0 (container/admin/removal.h)

  std::atomic<unsigned> cached_readers{0};  ///< handles that use the kernel's cache

  [[nodiscard]] bool is_container() const { return identity.is_container; }
  /// Returns the container; opens it at the first call. `directory`: the inode's descriptor.
  Result<std::shared_ptr<SharedContainer>> open_container(const PathFd& directory);
  /// Closes the container unless a program has it open.
  void close_container();
  /// Called when a program opens or closes the container. If a process unlinks the container meanwhile, its data stay
  /// until the last close. hold() returns 0 or errno; ESTALE if the name that the kernel has cached no longer exists.
  int hold(const PathFd& directory);
  void let_go(const PathFd& directory);
  /// Whether the container was unlinked while programs have it open.
  [[nodiscard]] bool is_unlinked();
};

class Inodes {
 public:
  /// `source`: the root directory, which is never forgotten.
  explicit Inodes(Fd source);
  ~Inodes();
  Inodes(const Inodes&) = delete;
  Inodes& operator=(const Inodes&) = delete;

  [[nodiscard]] Inode& root() { return root_; }
  [[nodiscard]] const Inode& root() const { return root_; }
  /// Returns a descriptor of a known file; opens it if it was closed. Returns null with errno on failure; ESTALE if the
  /// file is no longer found under its name.
  [[nodiscard]] PathFd fd(Inode& inode);
  /// Returns the entry `name` of a directory and increments its lookup count. Returns nullptr with errno on failure.
  [[nodiscard]] Inode* look_up(Inode& directory, const char* name);
  /// Called before a request removes the name of a file, and after it has, or could not. In between, and from then on
  /// if the name is gone, the file's descriptor stays open: programs may use the file, and no name leads to it any
  /// more. pin() returns nullptr for a file that the kernel does not know, and if too many are pinned.
  [[nodiscard]] Inode* pin(Inode& directory, const char* name);
  void unpin(Inode* pinned, bool is_name_gone);
  /// Called after a file got the name `name` in a directory by a rename.
  void renamed(Inode& directory, const char* name);
  void forget(Inode& inode, std::uint64_t lookups);
  /// Called after a request has used a container. Closes the containers that were used least recently and that no
  /// program has open, because an open container takes descriptors.
  void used_container(Inode& inode);
  /// Returns the path of a known file below the source, by the names of the last lookups: "/a/b", "" of the source.
  [[nodiscard]] std::string path_below(const Inode& inode);
  /// Returns an inode number that is unique below the source, even if files are on different file systems.
  [[nodiscard]] ino_t shown_number(dev_t device, ino_t number) const;
  /// Calls visit(Inode&) for all known inodes. No request may be in progress.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& [key, inode] : known_) visit(*inode);
  }

 private:
  using Dead = std::vector<std::unique_ptr<Inode>>;

  PathFd keep(Inode& inode, Fd fd);
  void set_name(Inode& inode, Inode& directory, const char* name, Dead& dead);
  void drop(Inode& inode, std::uint64_t references, Dead& dead);
  std::size_t close_idle();

  Inode root_;
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Inode*> known_;
  std::list<Inode*> kept_;        ///< inodes with an open descriptor
  std::list<Inode*> containers_;  ///< that may be open, the most recently used last
  std::size_t pinned_ = 0;        ///< inodes with a pinned descriptor
  std::uint64_t generation_ = 0;
  FdKeeper keeper_{[this] { return close_idle(); }};
};

/// Whether the entry `name` of the open `directory` is a container: a directory with a manifest.
[[nodiscard]] bool is_container_at(int directory, const char* name);

}  // namespace iosig::fuse
