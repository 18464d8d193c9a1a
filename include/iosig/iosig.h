/* The C interface of libiosig: what the GCC plugin's code calls, and what a program can call by itself.
 *
 * The hints never fail their caller: whatever goes wrong, the program's own open goes on as if IOSIG were not there,
 * errno is untouched, and what happened is said once on stderr and by iosig_last_error(). Link with `iosig cc --libs`,
 * or leave the library out: the plugin calls the hints weakly.
 */
#ifndef IOSIG_IOSIG_H
#define IOSIG_IOSIG_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The three hints precede an open of `path` by a stream with the text `signature` (docs/formats/signature.md). If that
 * open would create the file, they may put a symbolic link at `path` that leads to the best mount point's own
 * directory.
 *
 * dirfd: AT_FDCWD, or the directory that a relative `path` starts from (openat). flags: open's flags; creat's are
 * O_CREAT | O_WRONLY | O_TRUNC. mode: fopen's. openmode: the bits of libstdc++'s std::ios_base::openmode. */
void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature);
void iosig_fopen_hint(const char* path, const char* mode, const char* signature);
void iosig_fstream_hint(const char* path, int openmode, const char* signature);

/* Redirects `path`, which must not exist, for a program that knows its own streams.
 * Returns 1: a link was made; 0: the file is best placed where it is, or may not be redirected; -1: see
 * iosig_last_error(). */
int iosig_redirect(const char* path, const char* signature);

/* Why this thread's last call here redirected nothing: one line, valid until the thread's next call, "" after success.
 */
const char* iosig_last_error(void);

/* Containers: a logical file that many processes write at once, each into a log of its own. What a call does is what
 * the system's call of that name does on an ordinary file, between the processes of a node, too; it fails as that does,
 * -1 (or null) and errno, and iosig_last_error() says more. ENOSYS: the program runs without libiosig.
 *
 * Any thread may use a handle; threads that write much have one each. After fork a child closes what it inherited and
 * opens its own. In a signal handler that came in between a call of its own thread: EDEADLK. */
typedef struct iosig_container iosig_container;

/* flags: O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC. What O_CREAT makes is a container, with its data
 * in it, or on the mount points that `signature` ("container(2) persist") leads to if it is not null and a storage
 * description is there. ENOTSUP: an
 * ordinary file, or a directory, is there. */
iosig_container* iosig_container_open(const char* path, int flags, unsigned mode, const char* signature);
/* 0, or -1 if what was written could not be finished; the handle is gone in either case. */
int iosig_container_close(iosig_container* container);

int64_t iosig_container_pread(iosig_container* container, void* buffer, size_t bytes, int64_t offset);
int64_t iosig_container_pwrite(iosig_container* container, const void* buffer, size_t bytes, int64_t offset);
/* At the end of the file, which no other append of this node gets: where, in `offset` if it is not null. */
int64_t iosig_container_append(iosig_container* container, const void* buffer, size_t bytes, int64_t* offset);
/* Of the logical file. */
int64_t iosig_container_size(iosig_container* container);
int iosig_container_truncate(iosig_container* container, int64_t size);
/* Everything that was written through this handle is on the device. */
int iosig_container_sync(iosig_container* container);

/* As unlink(2) and rename(2); `to` may be a container or an ordinary file, which is replaced. A container that a
 * process has open, by this interface, under iosig run or through iosig mount, keeps its data until the last one closes
 * it. ENOTSUP: `path`, or `from`, is no container. */
int iosig_container_unlink(const char* path);
int iosig_container_rename(const char* from, const char* to);

/* Signed opens for compilers without the plugin: each gives its hint, then opens. Every argument is evaluated once; a
 * program that is linked without libiosig just opens.
 *
 *   fd = IOSIG_OPEN("persist random", path, O_CREAT | O_RDWR, 0644);
 *   file = IOSIG_FOPEN("temp sequential", path, "w");
 *   std::ofstream out(IOSIG_PATH("temp", path));             for what creates a file, and not with O_EXCL
 *
 * IOSIG_PATH gives `path` itself, which in C++ may be a std::string or std::filesystem::path. */
#define IOSIG_OPEN(signature, path, flags, mode) iosig_signed_open(signature, path, flags, mode)
#define IOSIG_FOPEN(signature, path, mode) iosig_signed_fopen(signature, path, mode)
#define IOSIG_PATH(signature, path) iosig_signed_path(signature, path)

/* The hints, or null without libiosig. Unlike a weak declaration this leaves their definitions alone. */
#define IOSIG_IF_LINKED(name) __attribute__((__weakref__(name)))
static void iosig_linked_open_hint(int, const char*, int, const char*) IOSIG_IF_LINKED("iosig_open_hint");
static void iosig_linked_fopen_hint(const char*, const char*, const char*) IOSIG_IF_LINKED("iosig_fopen_hint");
#undef IOSIG_IF_LINKED

#define IOSIG_AT_FDCWD (-100) /* AT_FDCWD, which strict ISO C hides */

static __inline__ int iosig_signed_open(const char* signature, const char* path, int flags, unsigned mode) {
  if (iosig_linked_open_hint) iosig_linked_open_hint(IOSIG_AT_FDCWD, path, flags, signature);
  return open(path, flags, mode);
}

static __inline__ FILE* iosig_signed_fopen(const char* signature, const char* path, const char* mode) {
  if (iosig_linked_fopen_hint) iosig_linked_fopen_hint(path, mode, signature);
  return fopen(path, mode);
}

static __inline__ const char* iosig_signed_path(const char* signature, const char* path) {
  if (iosig_linked_open_hint) iosig_linked_open_hint(IOSIG_AT_FDCWD, path, O_CREAT | O_WRONLY, signature);
  return path;
}
#undef IOSIG_AT_FDCWD

#ifdef __cplusplus
} /* extern "C" */

/* Hidden: a shared library exports no name of this header. */
template <class Path>
__attribute__((__visibility__("hidden"))) inline const Path& iosig_signed_path(const char* signature,
                                                                               const Path& path) {
  iosig_signed_path(signature, path.c_str());
  return path;
}
#endif
#endif
