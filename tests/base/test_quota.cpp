#include <doctest/doctest.h>
#include <linux/quota.h>

#include "iosig/base/quota.h"
#include "support/directories.h"

using namespace iosig;

namespace {

constexpr std::int64_t now_s = 1'700'000'000;
constexpr std::uint64_t MB = 1 << 20;

/// A quota with a hard and a soft limit in kilobytes, of which `used` bytes are taken.
if_dqblk quota(std::uint64_t hard_kb, std::uint64_t soft_kb, std::uint64_t used, std::uint64_t grace_ends_s = 0) {
  if_dqblk made{};
  made.dqb_bhardlimit = hard_kb;
  made.dqb_bsoftlimit = soft_kb;
  made.dqb_curspace = used;
  made.dqb_btime = grace_ends_s;
  made.dqb_valid = QIF_ALL;
  return made;
}

std::optional<std::uint64_t> bytes_under(const if_dqblk& quota) { return room_under(quota, now_s).bytes; }

}  // namespace

TEST_CASE("quota: the hard limit less what is used; no limit is no answer") {
  CHECK(bytes_under(quota(1024, 0, 0)) == MB);
  CHECK(bytes_under(quota(1024, 0, MB - 1)) == 1);
  CHECK(bytes_under(quota(1024, 0, MB)) == 0);
  CHECK(bytes_under(quota(1024, 0, 2 * MB)) == 0);  // root's files, or a limit that was lowered
  CHECK_FALSE(bytes_under(quota(0, 0, 5 * MB)));
}

TEST_CASE("quota: a soft limit counts once its time is over") {
  CHECK(bytes_under(quota(2048, 1024, MB / 2)) == 2 * MB - MB / 2);
  CHECK(bytes_under(quota(2048, 1024, 1536 << 10, now_s + 1)) == MB / 2);
  CHECK(bytes_under(quota(2048, 1024, 1536 << 10, now_s)) == 0);
  CHECK(bytes_under(quota(0, 1024, 1536 << 10, now_s - 1)) == 0);
  CHECK_FALSE(bytes_under(quota(0, 1024, 1536 << 10, now_s + 1)));
}

TEST_CASE("quota: inodes count, and limits that the kernel does not report do not") {
  if_dqblk files{};
  files.dqb_ihardlimit = 10;
  files.dqb_curinodes = 9;
  files.dqb_valid = QIF_ILIMITS;
  CHECK(room_under(files, now_s).files == 1);
  CHECK_FALSE(room_under(files, now_s).bytes);
  files.dqb_valid = QIF_INODES;
  CHECK_FALSE(room_under(files, now_s).files);
}

TEST_CASE("quota: absurd limits do not overflow") {
  CHECK(bytes_under(quota(~std::uint64_t{0}, 0, 1)) == ~std::uint64_t{0} - 1);
}

TEST_CASE("quota: where there is none, nothing is said") {
  CHECK_FALSE(quota_room_bytes("/proc"));
  CHECK_FALSE(quota_room_bytes("/no/such/directory"));
  CHECK_FALSE(quota_room_bytes("/etc/passwd"));
}
