// The directory on a mount point that holds only this user's redirected data: `<mount point>/.iosig-<uid>`.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig {

struct UserDirectory {
  Fd fd;
  std::string path;
};

/// Name of the directory below any mount point.
[[nodiscard]] std::string user_directory_name();

enum class IfMissing { make, refuse };

/// Opens the directory; creates it (0700) if it is missing, unless `if_missing` is `refuse`. Every user may be able to
/// write to the mount point (/dev/shm), so an untrusted user may have created a link or a directory of that name first.
/// Fails as `system`, with a remedy, if it is not a directory of this user that is closed to others.
[[nodiscard]] Result<UserDirectory> open_user_directory(const std::string& mount_point,
                                                        IfMissing if_missing = IfMissing::make);

/// Creates the directory `id` (0700, whatever the umask) and returns the path in it for data called `name`. Accepts an
/// existing directory, made by another node or an earlier attempt.
[[nodiscard]] Result<std::string> make_destination(const UserDirectory& directory, const std::string& id,
                                                   std::string_view name);

}  // namespace iosig
