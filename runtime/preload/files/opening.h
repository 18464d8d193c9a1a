// What all calls that open files come down to.
#pragma once

#include "preload/files/open_file.h"

namespace iosig::preload {

/// As openat(2).
int open_at(int directory, const char* path, int flags, mode_t mode);

}  // namespace iosig::preload
