// System calls that bypass this library and all other libraries of the program.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace iosig::preload {

inline long sys_open(const char* path, int flags) { return ::syscall(SYS_openat, AT_FDCWD, path, flags, 0); }
inline void sys_close(long fd) { ::syscall(SYS_close, fd); }

}  // namespace iosig::preload
