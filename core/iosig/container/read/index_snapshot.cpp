#include "iosig/container/read/index_snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"
#include "iosig/container/read/irregular_index.h"
#include "iosig/container/read/merge_indices.h"

namespace iosig {
namespace {

constexpr std::size_t min_writers = 4;  ///< fewer indices are read as fast as a snapshot
constexpr std::uint64_t max_snapshot_bytes = 1u << 30;
constexpr std::int64_t tick_ns = 20'000'000;             ///< file times have a granularity of kernel ticks, up to 10 ms
constexpr std::int64_t whole_second_ns = 2'000'000'000;  ///< for file systems with a granularity of seconds
constexpr std::int64_t abandoned_draft_ns = 60'000'000'000;

/// Returns the age that the newest change must have, so the next change is certain to get another time.
std::int64_t min_age_ns(const DirectoryState& state) {
  return state.newest_ns % 1'000'000'000 == 0 ? whole_second_ns : tick_ns;
}

/// Makes an empty file for this process alone. Deletes a file that a killed reader left.
Fd make_draft(const Fd& directory, const std::string& name, unsigned mode) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  Fd draft = open_file_at(directory.get(), name.c_str(), flags, mode);
  struct stat left {};
  if (draft || ::fstatat(directory.get(), name.c_str(), &left, AT_SYMLINK_NOFOLLOW) != 0) return draft;
  if (unix_ns() - unix_ns(left.st_mtim) < abandoned_draft_ns) return draft;
  (void)::unlinkat(directory.get(), name.c_str(), 0);
  return open_file_at(directory.get(), name.c_str(), flags, mode);
}

bool is_settled(const ContainerContent& content) {
  return content.problems.empty() && std::ranges::none_of(content.writers, &WriterContent::has_tail);
}

}  // namespace

DirectoryState state_of(const ContainerDirectory& directory) {
  DirectoryState state{0x9e3779b97f4a7c15, 0};
  const auto mix = [&](std::int64_t value) {
    state.fingerprint = (state.fingerprint ^ static_cast<std::uint64_t>(value)) * 0xff51afd7ed558ccd;
    state.fingerprint ^= state.fingerprint >> 32;
  };
  for (std::uint32_t n = 0; n < directory.manifest().subdirectories; ++n) {
    struct stat status {};
    const std::string name = subdirectory_name(n);
    if (::fstatat(directory.fd().get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::int64_t modified = unix_ns(status.st_mtim), changed = unix_ns(status.st_ctim);
    for (const std::int64_t part :
         {static_cast<std::int64_t>(n), static_cast<std::int64_t>(status.st_ino), modified, changed})
      mix(part);
    state.newest_ns = std::max({state.newest_ns, modified, changed});
  }
  return state;
}

std::optional<IndexSnapshot> read_index_snapshot(const ContainerDirectory& directory) {
  const std::string name(index_snapshot_name);
  const auto text = read_file_in(directory.fd(), name, directory.path(), max_snapshot_bytes);
  if (!text) return {};
  auto merged = parse_index_snapshot({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()}, name);
  if (!merged || merged->container != directory.manifest().id || merged->state != state_of(directory).fingerprint)
    return {};
  return *std::move(merged);
}

void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before,
                         const ContainerContent& content) {
  if (!is_settled(content) || directory.manifest().index == IndexKind::traditional) return;
  if (content.writers.size() < min_writers && !is_irregular(content)) return;
  if (auto merged = merged_index(directory, content)) save_index_snapshot(directory, before, content, *merged);
}

void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before,
                         const ContainerContent& content, IndexSnapshot& merged) {
  if (is_settled(content) && (content.writers.size() >= min_writers || merged.table))
    save_index_snapshot(directory, before, merged);
}

void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before, IndexSnapshot& merged) {
  const auto is_old_enough = [&](std::int64_t now_ns) { return now_ns - before.newest_ns >= min_age_ns(before); };
  if (!is_old_enough(unix_ns()) || state_of(directory).fingerprint != before.fingerprint) return;
  const std::string draft_name(index_snapshot_draft), name(index_snapshot_name);
  struct stat status {};
  const Fd draft = make_draft(directory.fd(), draft_name, 0600);
  if (!draft) return;
  merged.state = before.fingerprint;
  const std::vector<std::uint8_t> frame = index_frame(merged);
  const std::string_view bytes(reinterpret_cast<const char*>(frame.data()), frame.size());
  // The draft's time comes from the same clock as the times of the directories.
  const bool is_sound = directory.share_piece(draft.get(), name).has_value() && frame.size() <= max_snapshot_bytes &&
                        !exceeds_size_limit(static_cast<std::int64_t>(frame.size())) &&
                        ::fstat(draft.get(), &status) == 0 && is_old_enough(unix_ns(status.st_ctim)) &&
                        write_all(draft.get(), bytes, draft_name);
  const bool is_kept =
      is_sound && ::renameat(directory.fd().get(), draft_name.c_str(), directory.fd().get(), name.c_str()) == 0;
  if (!is_kept) (void)::unlinkat(directory.fd().get(), draft_name.c_str(), 0);
}

}  // namespace iosig
