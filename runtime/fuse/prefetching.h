// Prefetching of a mount (`iosig mount --prefetch`): what the daemon reads, from ordinary files and from the data
// droppings of containers, is told to the engine (core/iosig/prefetch), which brings what is expected next into the
// page cache of the file system below.
#pragma once

#include "iosig/base/result.h"
#include "iosig/prefetch/observer.h"
#include "options.h"

namespace iosig::fuse {

/// Of this daemon; observes nothing unless it was started.
[[nodiscard]] prefetch::Observer& prefetcher();

/// Starts the engine if `options` say so.
[[nodiscard]] Result<void> start_prefetching(const MountOptions& options);
/// Ends it, and writes the report that was asked for.
void end_prefetching(const MountOptions& options);

}  // namespace iosig::fuse
