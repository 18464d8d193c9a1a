#include "iosig/base/quota.h"

#include <fcntl.h>
#include <linux/quota.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"

namespace iosig {
namespace {

#ifndef SYS_quotactl_fd
constexpr long SYS_quotactl_fd = 443;
#endif

constexpr std::uint64_t files_needed = 2;

std::optional<std::uint64_t> left_of(std::uint64_t hard, std::uint64_t soft, std::uint64_t grace_ends_s,
                                     std::uint64_t used, std::int64_t now_unix_s) {
  const bool grace_is_over =
      soft != 0 && used >= soft && grace_ends_s != 0 && static_cast<std::int64_t>(grace_ends_s) <= now_unix_s;
  if (grace_is_over) return 0;
  if (hard == 0) return std::nullopt;
  return hard - std::min(hard, used);
}

/// Asks the kernel for one quota of the file system that `directory` lies on. Kernels before 5.14 need the name of its
/// device; udev keeps one for each number.
std::optional<if_dqblk> ask_quota(const Fd& directory, const struct stat& status, unsigned type, unsigned id) {
  const unsigned command = QCMD(static_cast<unsigned>(Q_GETQUOTA), type);
  if_dqblk quota{};
  if (::syscall(SYS_quotactl_fd, directory.get(), command, id, &quota) == 0) return quota;
  if (errno != ENOSYS || ::major(status.st_dev) == 0) return std::nullopt;
  const std::string device = fmt::format("/dev/block/{}:{}", ::major(status.st_dev), ::minor(status.st_dev));
  if (::syscall(SYS_quotactl, command, device.c_str(), id, &quota) == 0) return quota;
  return std::nullopt;
}

}  // namespace

QuotaRoom room_under(const if_dqblk& quota, std::int64_t now_unix_s) {
  QuotaRoom room;
  const auto block_bytes = [](std::uint64_t blocks) {  // limits may be "unlimited", beyond what bytes can say
    return blocks > (~std::uint64_t{0} >> QIF_DQBLKSIZE_BITS) ? ~std::uint64_t{0} : blocks << QIF_DQBLKSIZE_BITS;
  };
  if ((quota.dqb_valid & QIF_BLIMITS) != 0)
    room.bytes = left_of(block_bytes(quota.dqb_bhardlimit), block_bytes(quota.dqb_bsoftlimit), quota.dqb_btime,
                         quota.dqb_curspace, now_unix_s);
  if ((quota.dqb_valid & QIF_ILIMITS) != 0)
    room.files = left_of(quota.dqb_ihardlimit, quota.dqb_isoftlimit, quota.dqb_itime, quota.dqb_curinodes, now_unix_s);
  return room;
}

std::optional<std::uint64_t> quota_room_bytes(const std::string& path, bool* has_none) {
  const Fd directory = open_file_at(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY);
  struct stat status {};
  if (!directory || ::fstat(directory.get(), &status) != 0) return std::nullopt;
  constexpr unsigned user = 0, group = 1;  // USRQUOTA, GRPQUOTA
  std::optional<std::uint64_t> least;
  const auto limit_by = [&](unsigned type, unsigned id) {
    const auto quota = ask_quota(directory, status, type, id);
    if (!quota) return;
    QuotaRoom room = room_under(*quota, std::time(nullptr));
    if (room.files && *room.files < files_needed) room.bytes = 0;
    if (room.bytes) least = std::min(*room.bytes, least.value_or(*room.bytes));
  };
  errno = 0;
  limit_by(user, ::geteuid());
  if (has_none != nullptr) *has_none = errno == ENOSYS && ::major(status.st_dev) == 0;
  limit_by(group, (status.st_mode & S_ISGID) != 0 ? status.st_gid : ::getegid());
  return least;
}

}  // namespace iosig
