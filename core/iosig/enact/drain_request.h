// The wish that a redirect comes home in the background, kept in its journal entry (`prepare --drain`): whoever sees
// the program close the file may start the drain, also after the one that waited for it was ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "iosig/base/result.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Writes the wish into the entry, unless it is there or the redirect is settled. Waits while a run settles it.
[[nodiscard]] Result<void> request_drain(const JournalEntry& entry);

/// Returns the id, as a number, of the redirect whose data the descriptor leads to; 0: none. Only looks at the
/// descriptor's path, allocates nothing, and keeps errno.
[[nodiscard]] std::uint64_t redirect_behind(int fd);

/// Returns the path to give to `finalize --background`, if a drain of this redirect is wished and none is at work.
[[nodiscard]] std::optional<std::string> path_to_drain(std::uint64_t id);

}  // namespace iosig
