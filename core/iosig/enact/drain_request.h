// The wish that a redirect comes home in the background, kept in its journal entry (`prepare --drain`): whoever sees
// the program close the file may start the drain, also after the one that waited for it was ended.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "iosig/base/result.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Writes the wish into the entry, unless it is there or the redirect is settled. Waits while a run settles it.
[[nodiscard]] Result<void> request_drain(const JournalEntry& entry);

/// Whether any redirect of this journal has the wish: one system call. A request that a killed run left counts, too.
[[nodiscard]] bool has_drain_requests();
/// Writes to `path` what has_drain_requests() looks for, ended by NUL, and allocates nothing. An empty text if the
/// environment does not tell where the journal is, or `path` is too short.
void put_path_of_requests(std::span<char> path);

/// Removes what has_drain_requests() sees of this redirect of the journal in this directory. The caller forgets its
/// entry.
void drop_drain_request(const std::string& journal, const std::string& id);

/// Returns the id, as a number, of the redirect whose data the descriptor leads to; 0: none. Only looks at the
/// descriptor's path, allocates nothing, and keeps errno.
[[nodiscard]] std::uint64_t redirect_behind(int fd);

/// Returns the path to give to `finalize --background`, if a drain of this redirect is wished and none is at work.
[[nodiscard]] std::optional<std::string> path_to_drain(std::uint64_t id);

}  // namespace iosig
