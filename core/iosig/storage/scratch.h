// An unnamed file for a probe to write to; vanishes with its descriptor, even after kill -9.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig {

/// Opens a new, empty file for reading and writing on the file system of `directory`. Uses O_TMPFILE or, where that is
/// not supported, a named file that is unlinked immediately.
[[nodiscard]] Result<Fd> open_scratch_file(const std::string& directory);

/// Returns whether a symbolic link in `directory`, on a file system of type `filesystem`, can lead out of it. That
/// holds for the kernel's local file systems unless they are mounted with `nosymfollow`. On others (FUSE, network file
/// systems, FAT) the function creates, follows and removes a link with a unique name. Also returns true if the link
/// cannot be created for a reason other than missing support, such as a full file system.
[[nodiscard]] bool follows_links(const std::string& directory, std::string_view filesystem);

}  // namespace iosig
