// Settles several redirects at once, shows the progress, and reports the results in the order of the entries.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "console.h"
#include "iosig/enact/settle.h"

namespace iosig::cli {

/// Another run settled the redirect before this one could.
struct SettledElsewhere {};
using Settled = std::variant<Settlement, Error, SettledElsewhere>;

/// Returns the path of the only redirect, or "3 redirects".
[[nodiscard]] std::string one_or_count(const std::string& path, std::size_t count);

/// Settles each entry under its lock and calls `report` in this thread: in the order of `entries`, except that
/// redirects that another run is settling come last. `jobs` redirects at a time; 0: several, of large files fewer. One
/// redirect at a time is settled in this thread.
void settle_each(const std::vector<JournalEntry>& entries, const SettleOptions& options, unsigned jobs,
                 Console& console,
                 const std::function<void(const JournalEntry& entry, const Settled& settled)>& report);

}  // namespace iosig::cli
