// How much the quotas of its user and its group leave to this process on a file system.
//
// statvfs does not know of these. It does count a project's quota (XFS, ext4, f2fs), if the directory hands its project
// on to new files, so this file leaves that to it. NFS does not tell its clients; there, statvfs is all there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

struct if_dqblk;

namespace iosig {

/// Bytes and inodes that one quota still allows. Absent: it sets no limit.
struct QuotaRoom {
  std::optional<std::uint64_t> bytes, files;
};

/// Returns what the quota still allows at time `now_unix_s`. Hard limits hold always; soft ones once their grace time
/// is over, when the kernel refuses more. Pure.
[[nodiscard]] QuotaRoom room_under(const if_dqblk& quota, std::int64_t now_unix_s);

/// Returns how many bytes the quotas leave to new files of this process in the directory `path`: the lesser of the
/// user's (effective user) and the group's (that of new files there). 0 if one has no two inodes left, for
/// a file and its directory. Nothing if there is no quota or it cannot be read: another kind of file system, a kernel
/// without quotas, a sandbox. Costs a handful of system calls; blocks like statvfs(2). Sets `*has_none` to whether the
/// kernel says that this file system has no quotas.
[[nodiscard]] std::optional<std::uint64_t> quota_room_bytes(const std::string& path, bool* has_none = nullptr);

}  // namespace iosig
