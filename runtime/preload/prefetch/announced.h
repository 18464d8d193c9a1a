// The reads that a program announces for a path before it opens it: `pattern(FILE)` and `order(FILE)` in the signature
// of a pragma, of a hint of iosig.h, or of iosig.expect_reads() in Python.
#pragma once

#include <optional>
#include <string>

#include "iosig/model/signature.h"

namespace iosig::preload::prefetch {

/// Returns what was announced last for the file at `path`, without symbolic links. Takes no lock; any thread may call
/// it.
[[nodiscard]] std::optional<DeclaredReads> announced_reads_of(const std::string& path);

}  // namespace iosig::preload::prefetch

/// Announces how the file at `path` will be read. Exported: libiosig's hints and Python find it by its name. Returns
/// whether this process prefetches. Does nothing if the signature does not say how the file will be read. Keeps errno.
extern "C" __attribute__((visibility("default"))) bool iosig_expect_reads(int dirfd, const char* path,
                                                                          const char* signature);
