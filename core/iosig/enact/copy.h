// Copies a file's content and attributes, and verifies the copy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "iosig/base/result.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Reports the progress of a long step: `doing` is "copying" or "verifying".
using CopyProgress = std::function<void(const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// How a copy is compared with the data before it takes their place. Shared blocks are the data, so only `full` reads
/// them.
enum class Verify {
  none,  ///< not at all: every call succeeded, and the copy was flushed
  copy,  ///< each piece is read back through the page cache when it was written
  full,  ///< all of it is read back from the device when it was flushed
};

/// A copy that a run began, and of which version of the data.
struct PartialCopy {
  std::uint64_t device = 0, inode = 0;
  std::int64_t born_unix_ns = 0;
  std::uint64_t data_inode = 0, data_bytes = 0;
  std::int64_t data_modified_unix_ns = 0, data_changed_unix_ns = 0;  ///< mtime and ctime
  bool operator==(const PartialCopy&) const = default;
};

struct CopyOptions {
  Verify verify = Verify::copy;
  CopyProgress progress = {};
  /// Called after each piece with its size. It may wait, which limits the rate.
  std::function<void(std::uint64_t moved_bytes)> pace = {};
  /// Beside a job: waits for the device every few megabytes and drops the copied pages, so the page cache stays the
  /// job's.
  bool is_gentle = false;
  /// Gives the device its work from a second thread, while this one copies on. Not where the process is another
  /// program's, and not with `is_gentle`.
  bool in_two_threads = false;
  /// Continues this copy, if it and the data are unchanged: pieces that are equal are not written again.
  std::optional<PartialCopy> partial = {};
  /// Called when a copy begins that a later run can continue.
  std::function<void(const PartialCopy&)> begun = {};
};

/// How the bytes came into a copy.
enum class CopyWay {
  shared,  ///< both files share the blocks (reflink): no byte was copied
  kernel,  ///< all were copied by copy_file_range, perhaps by the file server; this process did not see them
  read,    ///< read and written by this process
};

/// Copies all of the descriptor `from` to the file `to`, which is empty or `is_partial`, and starts to flush it.
/// Preserves holes. Shares the blocks where the file system can, else lets the kernel copy, except with `Verify::copy`,
/// which reads and writes and compares each piece that it writes; one that differs is a `system` error. A full file
/// system, and a file that changes meanwhile, is `infeasible`.
[[nodiscard]] Result<CopyWay> copy_content(int from, int to, const CopyOptions& options, bool is_partial = false);

/// Whether both files hold the same bytes.
[[nodiscard]] Result<bool> same_content(int a, int b, const CopyProgress& progress);

/// Copies owner and group (as far as this user may), mode, extended attributes and times (as far as the file system has
/// them). Fails as `infeasible` if an attribute of the user's does not fit. If the group of `from` is this user's
/// default group, nobody chose it: then `to` keeps the group that its set-gid directory gave it.
[[nodiscard]] Result<void> copy_attributes(int from, int to);

/// Creates the file at `to`, which must not exist (except as `options.partial`), as a copy of `data` in content and
/// attributes. Flushes and verifies it. On failure the copy remains; the caller removes it. `infeasible`: no space, or
/// the data changed meanwhile.
struct Copy {
  Fd file;
  CopyWay way = CopyWay::read;
};
[[nodiscard]] Result<Copy> copy_verified(const Fd& data, const Place& to, const CopyOptions& options);

/// Says what was done and verified: "copied and verified", "copied, not verified", "blocks shared".
[[nodiscard]] std::string describe(CopyWay way, Verify verify);

}  // namespace iosig
