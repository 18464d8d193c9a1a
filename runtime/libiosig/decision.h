// Decides whether one open is redirected, and makes the link; announces how a file will be read. All hints end here.
#pragma once

namespace iosig::runtime {

enum class Outcome {
  redirected,
  stays,   ///< the file is best placed at its path, or may not be redirected
  failed,  ///< an error in IOSIG or its configuration
};

/// Redirects `path` if that is better. Keeps the caller's errno and throws nothing. last_error() then has the reason
/// why nothing was redirected. Costs one lstat if the path exists.
Outcome redirect(int dirfd, const char* path, const char* signature) noexcept;

/// Records in last_error() why an open of this kind is never redirected.
Outcome decline(const char* path, const char* why) noexcept;

/// Passes `pattern(FILE)` and `order(FILE)` of the signature on to libiosig-preload, which prefetches by them. Keeps
/// the caller's errno. Without such a parameter, or without `iosig run --prefetch`, it does nothing.
void announce_reads(int dirfd, const char* path, const char* signature) noexcept;

}  // namespace iosig::runtime
