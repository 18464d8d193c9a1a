// Decides for one open and, if it pays, makes the link. Everything the hints share is here.
#pragma once

namespace iosig::runtime {

enum class Outcome {
  redirected,
  stays,   ///< best where it is, or may not be redirected
  failed,  ///< IOSIG could not do its part
};

/// Whatever happens, the caller's errno is kept and nothing is thrown; why nothing was redirected is left in
/// last_error(). Costs one lstat for a path that exists.
Outcome redirect(int dirfd, const char* path, const char* signature) noexcept;

/// Leaves word why an open of this kind is never redirected.
Outcome decline(const char* path, const char* why) noexcept;

}  // namespace iosig::runtime
