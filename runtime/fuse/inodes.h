// The inodes that the kernel knows: an O_PATH descriptor for each file, directory or symbolic link below the source
// that the kernel has looked up.
//
// The daemon reaches every file from such a descriptor, by the name of a directory entry and without following links.
// A user who renames or replaces directories meanwhile cannot lead the daemon elsewhere (TOCTOU-safe).
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
#include "iosig/container/shared/shared_container.h"

namespace iosig::fuse {

/// One file. The address of this object is the inode number for the kernel. It lives until the kernel forgets it.
struct Inode {
  Fd fd;  ///< O_PATH
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t generation = 0;
  bool is_container = false;

  // Protected by the table's lock.
  std::uint64_t lookups = 0;
  std::uint64_t parent = 0;  ///< number of the directory of the last lookup
  std::string name;          ///< its name there
  std::list<Inode*>::iterator place;

  std::mutex mutex;  ///< protects the members below
  std::shared_ptr<SharedContainer> container;
  std::uint64_t shown_changes = 0;  ///< changes of the container when the kernel began to cache it
  timespec shown_modified{};        ///< of an ordinary file
  std::int64_t shown_size = -1;
  unsigned handles = 0;  ///< open files
  Fd held;               ///< the container's directory, held while handles > 0 (container/admin/removal.h)

  std::atomic<unsigned> cached_readers{0};  ///< handles that use the kernel's cache

  /// Returns the container; opens it at the first call.
  Result<std::shared_ptr<SharedContainer>> open_container();
  /// Called when a program opens or closes the container. If a process unlinks the container meanwhile, its data stay
  /// until the last close. hold() returns 0 or errno; ESTALE if the name that the kernel has cached no longer exists.
  int hold();
  void let_go();
  /// Whether the container was unlinked while programs have it open.
  [[nodiscard]] bool is_unlinked();
  /// The path in /proc/self/fd, with which any call that follows links reaches the file.
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd.get()); }
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
  /// Returns the entry `name` of a directory and increments its lookup count. Returns nullptr with errno on failure.
  [[nodiscard]] Inode* look_up(const Inode& directory, const char* name);
  /// Returns the number of files that the kernel knows, besides the root.
  [[nodiscard]] std::size_t count() const { return count_.load(std::memory_order_relaxed); }
  /// An entry of a directory, which is given by its number for the kernel.
  struct Name {
    std::uint64_t directory = 0;
    std::string name;
  };
  /// Returns the names of up to `most` files that were looked up least recently. The next call returns others.
  [[nodiscard]] std::vector<Name> oldest(std::size_t most);
  void forget(Inode& inode, std::uint64_t lookups);
  /// Returns an inode number that is unique below the source, even if files are on different file systems.
  [[nodiscard]] ino_t shown_number(dev_t device, ino_t number) const;
  /// Calls visit(Inode&) for all known inodes. No request may be in progress.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& [key, inode] : known_) visit(*inode);
  }

 private:
  Inode root_;
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Inode*> known_;
  std::list<Inode*> by_lookup_;  ///< all inodes but the root, the last one looked up at the end
  std::atomic<std::size_t> count_{0};
  std::uint64_t generation_ = 0;
};

/// Whether the entry `name` of the open `directory` is a container: a directory with a manifest.
[[nodiscard]] bool is_container_at(int directory, const char* name);

}  // namespace iosig::fuse
