// One mounted source: the state that its requests share. The requests themselves are in names.cpp (operations on
// names), directories.cpp, attributes.cpp and data.cpp (open files).
#pragma once

#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <fuse_lowlevel.h>

#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "inodes.h"
#include "invalidation.h"
#include "options.h"
#include "tracer.h"

namespace iosig::fuse {

/// An open file or directory.
struct Handle {
  PathFd file;  ///< keeps a file reachable that has lost its name
  Fd fd;        ///< of an ordinary file
  std::shared_ptr<SharedContainer> container;
  OpenWriter* writer = nullptr;  ///< of a container that is open for writing
  bool is_cached = false;        ///< uses the kernel's cache

  struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  std::unique_ptr<DIR, CloseDirectory> directory;
  dirent* next = nullptr;  ///< entry that was read but not yet returned
  off_t offset = 0;        ///< position behind the last returned entry

  std::uint32_t traced_file = 0;  ///< its number in the trace of the mount
  std::string traced_path;        ///< by which it was opened
};

/// The handles that programs have open. The kernel reports when one is closed, but not when the daemon ends.
class Handles {
 public:
  /// Stores a handle and returns its number for the kernel.
  std::uint64_t keep(std::unique_ptr<Handle> handle);
  void close(Handle& handle);

 private:
  std::mutex mutex_;
  std::map<Handle*, std::unique_ptr<Handle>> open_;
};

struct Mount {
  Mount(MountOptions wanted, Fd source) : options(std::move(wanted)), inodes(std::move(source)) {}

  const MountOptions options;
  Inodes inodes;
  Handles handles;
  Invalidation invalidation;
  std::unique_ptr<Tracer> tracer;  ///< null: the mount is not traced

  [[nodiscard]] Inode& inode(fuse_ino_t number) {
    return number == FUSE_ROOT_ID ? inodes.root() : *std::bit_cast<Inode*>(number);
  }
  [[nodiscard]] fuse_ino_t number(Inode& inode) {
    return &inode == &inodes.root() ? FUSE_ROOT_ID : reinterpret_cast<fuse_ino_t>(&inode);
  }
  /// Returns 0 or errno.
  int attributes(Inode& inode, struct stat& status);
  /// Looks up `name` for the kernel, which must later forget the inode (FORGET). Returns 0 or errno.
  int entry(Inode& directory, const char* name, fuse_entry_param& entry);
  /// Whether a new ordinary file becomes a container.
  [[nodiscard]] bool wants_container(const PathFd& directory, const char* name) const;
  /// Returns 0 or errno.
  int make_container(const PathFd& directory, const char* name, unsigned mode) const;
};

[[nodiscard]] inline Mount& mount_of(fuse_req_t request) { return *static_cast<Mount*>(fuse_req_userdata(request)); }
[[nodiscard]] inline Handle& handle_of(const fuse_file_info* info) { return *std::bit_cast<Handle*>(info->fh); }

// Each function adds the handlers of one file.
void add_names(fuse_lowlevel_ops& all);
void add_directories(fuse_lowlevel_ops& all);
void add_attributes(fuse_lowlevel_ops& all);
void add_data(fuse_lowlevel_ops& all);

}  // namespace iosig::fuse
