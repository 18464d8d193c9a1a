// A file without a name: what a probe writes into, gone with its descriptor even after kill -9.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig {

/// Opens a new, empty file for reading and writing on the file system of `directory`.
/// O_TMPFILE; where a file system knows no such files, a named one that is unlinked at once.
[[nodiscard]] Result<Fd> open_scratch_file(const std::string& directory);

/// Whether a symbolic link in `directory`, a directory on a file system of type `filesystem`, leads out of it. Local
/// file systems of the kernel do that unless they are mounted with `nosymfollow`; elsewhere (FUSE, network file
/// systems, FAT) a link with a name of its own is made, followed and removed again. True where none can be made for
/// want of room.
[[nodiscard]] bool follows_links(const std::string& directory, std::string_view filesystem);

}  // namespace iosig
