// The one function in which all calls that open files end.
#pragma once

#include "preload/files/open_file.h"

namespace iosig::preload {

/// Like openat(2).
int open_at(int directory, const char* path, int flags, mode_t mode);

}  // namespace iosig::preload
