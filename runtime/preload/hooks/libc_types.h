// The types in the prototypes of the intercepted calls (calls.txt).
#pragma once

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <pty.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#include <csignal>
#include <cstdint>
#include <cstdio>

struct io_uring;  ///< of liburing

namespace iosig::preload {

using DirentFilter = int(const dirent*);
using DirentOrder = int(const dirent**, const dirent**);
using GlobError = int(const char*, int);
/// A communicator, file or info of any MPI library: a pointer in Open MPI, an int in MPICH.
using MpiHandle = std::uintptr_t;
/// MPI_Offset and MPI_Count of both.
using MpiOffset = long long;
using MpiCount = long long;

// On 64-bit machines the functions for large files are the same as the others: other names of them in calls.txt.
static_assert(sizeof(off_t) == sizeof(off64_t) && sizeof(struct stat) == sizeof(struct stat64));
static_assert(sizeof(dirent) == sizeof(dirent64) && sizeof(rlimit) == sizeof(rlimit64));
static_assert(sizeof(aiocb) == sizeof(aiocb64) && sizeof(glob_t) == sizeof(glob64_t));
static_assert(sizeof(struct statfs) == sizeof(struct statfs64) && sizeof(struct statvfs) == sizeof(struct statvfs64));

}  // namespace iosig::preload
