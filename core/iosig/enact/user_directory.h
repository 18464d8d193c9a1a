// The directory on a mount point that holds this user's redirected data, and nobody else's: `<mount
// point>/.iosig-<uid>`.
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

/// Opens the directory; one that is missing is made (0700) unless told otherwise. A mount point may be writable by
/// everybody (/dev/shm), so another user may have put a link or an open directory there first: what is not a directory,
/// ours, and closed to others is refused as `system`, with what to do.
[[nodiscard]] Result<UserDirectory> open_user_directory(const std::string& mount_point,
                                                        IfMissing if_missing = IfMissing::make);

/// Makes the directory `id` (0700, whatever the umask); returns the path that data called `name` have in it. One that
/// is there already, of an earlier node or try, is as good.
[[nodiscard]] Result<std::string> make_destination(const UserDirectory& directory, const std::string& id,
                                                   std::string_view name);

}  // namespace iosig
