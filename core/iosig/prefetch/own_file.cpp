#include "iosig/prefetch/own_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "iosig/base/text.h"

namespace iosig::prefetch {
namespace {

// By number: libiosig-preload stands in for the functions, and keeps their descriptors with those of the process.
int open_by_number(const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0));
}
void close_by_number(int fd) { (void)::syscall(SYS_close, fd); }
ssize_t pread_by_number(int fd, void* bytes, std::size_t count, std::int64_t offset) {
  return ::syscall(SYS_pread64, fd, bytes, count, offset);
}

// Of the kernel's sources; linux/magic.h lacks them, or did before Linux 6.
constexpr std::uint32_t configfs_magic = 0x62656570, cifs_magic = 0xff534d42;

/// Returns how many bytes the kernel reads ahead on this device at most.
std::int64_t readahead_bytes(dev_t device) {
  constexpr std::int64_t usual = 128 << 10, least = 4 << 10, most = 4 << 20;
  const std::string path = fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(device), minor(device));
  const int fd = open_by_number(path.c_str(), O_RDONLY);
  if (fd < 0) return usual;
  std::array<char, 32> text{};
  const ssize_t got = pread_by_number(fd, text.data(), text.size() - 1, 0);
  close_by_number(fd);
  const std::int64_t kib = got > 0 ? std::strtoll(text.data(), nullptr, 10) : 0;
  return kib <= 0 ? least : std::clamp(kib << 10, least, most);
}

/// Returns whether all pages of a range are in the page cache. Nothing: the kernel does not tell (before Linux 6.5, or
/// of files that this user may not write). A read with RWF_NOWAIT would tell, but starts to read the page.
std::optional<bool> is_cached(int fd, std::int64_t offset, std::int64_t length) {
  struct {
    std::uint64_t offset, length;
  } const range{static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)};
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } pages{};
  constexpr long cachestat = 451;  // SYS_cachestat, of all architectures; older headers lack it
  constexpr std::int64_t page = 4096;
  if (::syscall(cachestat, fd, &range, &pages, 0U) != 0) return std::nullopt;
  return static_cast<std::int64_t>(pages.cached) > (offset + length - 1) / page - offset / page;
}

/// The path of a descriptor of the process, whose table this thread has left.
std::string link_to(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

bool is_it(const struct stat& status, std::uint64_t device, std::uint64_t inode) {
  return S_ISREG(status.st_mode) && status.st_dev == static_cast<dev_t>(device) &&
         status.st_ino == static_cast<ino_t>(inode);
}

}  // namespace

bool OwnFile::is_behind(int fd, std::uint64_t device, std::uint64_t inode) {
  struct stat status {};
  return ::syscall(SYS_newfstatat, AT_FDCWD, link_to(fd).c_str(), &status, 0) == 0 && is_it(status, device, inode);
}

bool leave_descriptor_table() { return ::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0; }

std::shared_ptr<OwnFile> OwnFile::open(int fd, std::uint64_t device, std::uint64_t inode) {
  // Asked before and after: to open what another thread has put there meanwhile could have an effect.
  if (!is_behind(fd, device, inode)) return nullptr;
  const std::string link = link_to(fd);
  const int own = open_by_number(link.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (own < 0) return nullptr;
  struct stat status {};
  if (::syscall(SYS_newfstatat, own, "", &status, AT_EMPTY_PATH) != 0 || !is_it(status, device, inode)) {
    close_by_number(own);
    return nullptr;
  }
  (void)::syscall(SYS_fadvise64, own, 0, 0, POSIX_FADV_RANDOM);  // reads of this descriptor start no readahead
  std::array<char, 4096> path{};
  const ssize_t length = ::syscall(SYS_readlinkat, AT_FDCWD, fmt::format("/proc/thread-self/fd/{}", own).c_str(),
                                   path.data(), path.size());
  return std::shared_ptr<OwnFile>(
      new OwnFile(own, readahead_bytes(status.st_dev),
                  std::string(path.data(), length < 0 ? 0 : static_cast<std::size_t>(length))));
}

OwnFile::~OwnFile() {
  close_by_number(fd_);
  if (awaited_ != nullptr) awaited_->fetch_sub(1, std::memory_order_release);
}

bool OwnFile::is_stored(int fd) {
  constexpr std::array<std::uint32_t, 17> made_by_kernel = {
      PROC_SUPER_MAGIC,     SYSFS_MAGIC,    DEBUGFS_MAGIC, TRACEFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
      SECURITYFS_MAGIC,     SELINUX_MAGIC,  SMACK_MAGIC,   PSTOREFS_MAGIC,     EFIVARFS_MAGIC,     BPF_FS_MAGIC,
      RDTGROUP_SUPER_MAGIC, BINFMTFS_MAGIC, NSFS_MAGIC,    DEVPTS_SUPER_MAGIC, configfs_magic};
  struct statfs status {};
  return ::syscall(SYS_statfs, link_to(fd).c_str(), &status) == 0 &&
         std::ranges::find(made_by_kernel, static_cast<std::uint32_t>(status.f_type)) == made_by_kernel.end();
}

bool OwnFile::keeps_unlinked_name(int fd) {
  constexpr std::array<std::uint32_t, 5> with_hidden_names = {NFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, SMB_SUPER_MAGIC,
                                                              SMB2_SUPER_MAGIC, cifs_magic};
  struct statfs status {};
  return ::syscall(SYS_statfs, link_to(fd).c_str(), &status) == 0 &&
         std::ranges::find(with_hidden_names, static_cast<std::uint32_t>(status.f_type)) != with_hidden_names.end();
}

std::int64_t OwnFile::size() const {
  struct stat status {};
  return ::syscall(SYS_newfstatat, fd_, "", &status, AT_EMPTY_PATH) == 0 ? std::int64_t{status.st_size} : 0;
}

OwnFile::Fetched OwnFile::fetch(std::int64_t offset, std::int64_t length) const {
  const std::optional<bool> cached = is_cached(fd_, offset, length);
  if (cached && *cached) return {.was_cached = true};
  const auto begun = std::chrono::steady_clock::now();
  for (std::int64_t done = 0; done < length; done += step_)
    if (::syscall(SYS_fadvise64, fd_, offset + done, std::min(step_, length - done), POSIX_FADV_WILLNEED) != 0)
      return {.failed = true};
  // The last byte comes last; to read it waits for it.
  char byte = 0;
  if (pread_by_number(fd_, &byte, 1, offset + length - 1) != 1) return {.failed = true};
  // Where the kernel does not tell, the time does: no storage answers so soon.
  return {.was_cached = !cached && std::chrono::steady_clock::now() - begun < std::chrono::microseconds(15)};
}

}  // namespace iosig::prefetch
