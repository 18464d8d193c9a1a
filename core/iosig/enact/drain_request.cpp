#include "iosig/enact/drain_request.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/enact/destination_name.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

/// A directory of the journal with an empty file for each wish. It is there as long as there are any.
constexpr std::string_view requests_name = ".requests", journal_below_state = "/journal/";
constexpr int max_drain_tries = 100;

std::string name_of_request(const std::string& id) { return fmt::format("{}/{}", requests_name, id); }

/// Without it a library does not look for the wish; so a failure only means that nobody starts the drain again.
void record_request(const std::string& id) {
  const auto journal = open_journal_directory();
  if (!journal) return;
  const int directory = journal->directory.get();
  for (int tries = 0; tries < max_drain_tries; ++tries) {  // another process may remove the empty directory
    (void)::mkdirat(directory, requests_name.data(), 0700);
    ensure_mode(journal->directory, std::string(requests_name), 0700);
    constexpr int flags = O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
    if (Fd(::openat(directory, name_of_request(id).c_str(), flags, 0600)) || errno != ENOENT) return;
  }
}

}  // namespace

bool has_drain_requests() {
  return ::access(fmt::format("{}{}{}", state_directory(), journal_below_state, requests_name).c_str(), F_OK) == 0;
}

[[gnu::hot]] void put_path_of_requests(std::span<char> path) {
  const auto [root, below] = state_directory_in_environment();
  path[0] = '\0';
  const auto pieces = {root, below, journal_below_state, requests_name};
  std::size_t length = 0;
  for (const std::string_view piece : pieces) length += piece.size();
  if (root.empty() || length >= path.size()) return;
  char* end = path.data();
  for (const std::string_view piece : pieces) end = std::ranges::copy(piece, end).out;
  *end = '\0';
}

void drop_drain_request(const std::string& journal, const std::string& id) {
  (void)::unlink(fmt::format("{}/{}", journal, name_of_request(id)).c_str());
  (void)::rmdir(fmt::format("{}/{}", journal, requests_name).c_str());
}

Result<void> request_drain(const JournalEntry& entry) {
  if (entry.drain) return {};
  const auto lock = lock_entry(entry.id, IfBusy::wait);
  if (!lock) return pass_on(lock.error());
  auto recorded = recorded_entry(entry.id);
  if (!recorded || recorded->drain) return {};
  recorded->drain = true;
  record_request(entry.id);
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
