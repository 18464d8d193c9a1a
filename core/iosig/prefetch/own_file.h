// A file of the program, opened once more for prefetching.
//
// The planner's threads have a table of descriptors of their own (close_range(2) with CLOSE_RANGE_UNSHARE). So none of
// these numbers is one of the program's, no limit of its own is used up, and to close one does not release the record
// locks (fcntl(2), F_SETLK) that the program has on the file: they belong to the table of descriptors.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace iosig::prefetch {

/// Gives the calling thread a table of descriptors of its own, which is empty. false: the kernel cannot (before
/// Linux 5.9), or a filter of system calls refuses it.
[[nodiscard]] bool leave_descriptor_table();

class OwnFile {
 public:
  /// Opens what descriptor `fd` of this process refers to, if it is still the file `inode` on `device`. Null: it is
  /// not, or may not be opened again. The caller has left the process's table of descriptors.
  [[nodiscard]] static std::shared_ptr<OwnFile> open(int fd, std::uint64_t device, std::uint64_t inode);
  /// Whether descriptor `fd` of this process still refers to that file.
  [[nodiscard]] static bool is_behind(int fd, std::uint64_t device, std::uint64_t inode);
  /// Returns whether the file behind descriptor `fd` of this process is stored somewhere. The kernel makes those of
  /// procfs, sysfs and the like at each read: to open or read one may have an effect.
  [[nodiscard]] static bool is_stored(int fd);
  /// Whether the file behind descriptor `fd` of this process, if it is unlinked, keeps a name until its last close,
  /// which may be the engine's: NFS, FUSE, SMB.
  [[nodiscard]] static bool keeps_unlinked_name(int fd);
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  ~OwnFile();

  /// Where it was when it was opened.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the file's size now; 0 if it cannot be asked.
  [[nodiscard]] std::int64_t size() const;

  /// `count` becomes one less when the file is closed.
  void count_down_when_closed(std::atomic<std::uint32_t>& count) { awaited_ = &count; }

  struct Fetched {
    bool failed = false;      ///< a read error, or nothing is there; the program gets the error if it reads there
    bool was_cached = false;  ///< the page cache had the data before
  };
  /// Brings bytes into the page cache; returns when the last of them is there.
  [[nodiscard]] Fetched fetch(std::int64_t offset, std::int64_t length) const;

 private:
  OwnFile(int fd, std::int64_t step, std::string path) : fd_(fd), step_(step), path_(std::move(path)) {}
  int fd_;
  std::int64_t step_;  ///< bytes that the kernel certainly reads on one request: larger ones load only so many
  std::string path_;
  std::atomic<std::uint32_t>* awaited_ = nullptr;
};

}  // namespace iosig::prefetch
