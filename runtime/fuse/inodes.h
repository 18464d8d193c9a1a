// What the kernel knows by a number: an open place below the source for each file, directory or link that it has asked
// for.
//
// Everything is reached from such a place, by the name of an entry in it and without following links; so nobody who
// renames or swaps directories meanwhile leads the daemon elsewhere.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "iosig/base/files.h"
#include "iosig/container/shared/shared_container.h"

namespace iosig::fuse {

/// The kernel's number for it is its address. It lives until the kernel has forgotten it.
struct Inode {
  Fd fd;  ///< O_PATH
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t generation = 0, lookups = 0;  ///< lookups: under the table's lock
  bool is_container = false;

  std::mutex mutex;  ///< of what follows
  std::shared_ptr<SharedContainer> container;
  std::uint64_t shown_changes = 0;  ///< of the container, when the kernel's cache of it began
  timespec shown_modified{};        ///< of an ordinary file
  std::int64_t shown_size = -1;
  unsigned handles = 0;  ///< open files
  Fd held;               ///< the container's directory, held while there are any (container/admin/removal.h)

  std::atomic<unsigned> cached_readers{0};  ///< handles that use the kernel's cache

  /// The container behind it; opened once.
  Result<std::shared_ptr<SharedContainer>> open_container();
  /// A program opens, or closes, the container: any process that unlinks it meanwhile leaves its data until the last
  /// close. 0 or errno; ESTALE: the kernel remembers a name that is gone.
  int hold();
  void let_go();
  /// Whether programs still have open what was unlinked.
  [[nodiscard]] bool is_unlinked();
  /// By which any call that follows links gets at it.
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd.get()); }
};

class Inodes {
 public:
  /// `source`: the root. It is never forgotten.
  explicit Inodes(Fd source);
  ~Inodes();
  Inodes(const Inodes&) = delete;
  Inodes& operator=(const Inodes&) = delete;

  [[nodiscard]] Inode& root() { return root_; }
  [[nodiscard]] const Inode& root() const { return root_; }
  /// The entry `name` of a directory, looked up once more. nullptr with errno.
  [[nodiscard]] Inode* look_up(const Inode& directory, const char* name);
  void forget(Inode& inode, std::uint64_t lookups);
  /// A number that tells files below the source from each other, on whatever file system they are.
  [[nodiscard]] ino_t shown_number(dev_t device, ino_t number) const;
  /// Calls visit(Inode&) for all that the kernel knows. Only when no request is served any more.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (const auto& [key, inode] : known_) visit(*inode);
  }

 private:
  Inode root_;
  std::mutex mutex_;
  std::map<std::pair<dev_t, ino_t>, Inode*> known_;
  std::uint64_t generation_ = 0;
};

/// Whether the entry `name` of the open `directory` is a container, by its manifest's name.
[[nodiscard]] bool is_container_at(int directory, const char* name);

}  // namespace iosig::fuse
