#include "iosig/enact/drain_request.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <string_view>

#include "iosig/base/text.h"
#include "iosig/enact/destination_name.h"
#include "iosig/enact/journal_directory.h"

namespace iosig {

Result<void> request_drain(const JournalEntry& entry) {
  if (entry.drain) return {};
  const auto lock = lock_entry(entry.id, IfBusy::wait);
  if (!lock) return pass_on(lock.error());
  auto recorded = recorded_entry(entry.id);
  if (!recorded || recorded->drain) return {};
  recorded->drain = true;
  return rewrite_entry(*recorded);
}

std::uint64_t redirect_behind(int fd) {
  const int before = errno;
  char path[PATH_MAX], link[32] = "/proc/self/fd/";
  *std::to_chars(link + 14, link + sizeof link - 1, fd).ptr = '\0';
  const ssize_t length = ::readlink(link, path, sizeof path);
  errno = before;
  if (length <= 0) return 0;
  // MOUNT/.iosig-UID/ID/NAME
  const std::string_view text(path, static_cast<std::size_t>(length));
  const std::size_t user = text.rfind("/.iosig-"), begin = user == text.npos ? user : text.find('/', user + 1);
  if (begin == text.npos || text.size() < begin + 1 + id_digits + 2 || text[begin + 1 + id_digits] != '/') return 0;
  std::uint64_t id = 0;
  const char *const first = path + begin + 1, *const last = first + id_digits;
  return std::from_chars(first, last, id, 16).ptr == last ? id : 0;
}

std::optional<std::string> path_to_drain(std::uint64_t id) {
  const auto entry = recorded_entry(fmt::format("{:016x}", id));
  if (!entry || !entry->drain || entry->kind != RedirectKind::link || is_locked(entry->id, LockFor::draining))
    return std::nullopt;
  return entry->path;
}

}  // namespace iosig
