/* The C interface of libiosig, for code that the GCC plugin generates and for programs.
 *
 * The hints never fail. On any error the program's own open continues as if IOSIG were not there, and errno is
 * unchanged. The error is printed once on stderr, and iosig_last_error() returns it. Link with `iosig cc --libs`. The
 * library is optional for annotated programs: the plugin calls the hints through weak references.
 */
#ifndef IOSIG_IOSIG_H
#define IOSIG_IOSIG_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The three hints announce that the program is about to open `path` with a stream that has the signature `signature`
 * (docs/formats/signature.md). If that open would create the file, a hint may put a symbolic link at `path` that leads
 * to a file in the user's directory on the best mount point. Under `iosig run --prefetch`, `pattern(FILE)` and
 * `order(FILE)` of the signature say how the file will be read through descriptors that are opened later, also of an
 * open that only reads; a relative FILE starts at the working directory.
 *
 * dirfd: AT_FDCWD, or the directory that a relative `path` starts from, as in openat(2).
 * flags: the flags of open(2); for creat(2), O_CREAT | O_WRONLY | O_TRUNC.
 * mode: the mode of fopen(3).
 * openmode: the bits of libstdc++'s std::ios_base::openmode. */
void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature);
void iosig_fopen_hint(const char* path, const char* mode, const char* signature);
void iosig_fstream_hint(const char* path, int openmode, const char* signature);

/* Redirects `path`, which must not exist, for a program that decides by itself which streams to redirect.
 * Returns 1 if a link was made; 0 if the file is best placed at `path` or may not be redirected; -1 on failure (see
 * iosig_last_error()). */
int iosig_redirect(const char* path, const char* signature);

/* Returns the reason why this thread's last call redirected nothing, or failed, as one line; "" after success. The
 * string is valid until the thread's next call of this library. */
const char* iosig_last_error(void);

/* Containers. A container is a logical file that many processes write at the same time, each into its own log. Each
 * function below behaves like the system call of the same name on an ordinary file, also between the processes of a
 * node. On failure it returns -1 (or a null pointer) and sets errno; iosig_last_error() returns the details. It fails
 * with ENOSYS if the program runs without libiosig, and with EDEADLK in a signal handler that interrupted a call of the
 * same thread.
 *
 * Any thread may use any handle, but threads that write much should have one handle each. After fork(2) the child must
 * close the handles that it inherited and open its own. If another thread of the parent was using such a handle at that
 * moment, every call of the child but iosig_container_close() fails with EBADF. */
typedef struct iosig_container iosig_container;

/* Opens the container at `path`. flags: O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC. With O_CREAT a
 * missing file is created as a container. Its data lie in the container; or on the mount points that `signature`, for
 * example "container(2) persist", leads to, if it is not null and a storage description exists. Fails with ENOTSUP if
 * `path` is an ordinary file or directory. */
iosig_container* iosig_container_open(const char* path, int flags, unsigned mode, const char* signature);
/* Closes the handle, which is invalid afterwards even on failure. Returns -1 if written data could not be completed. */
int iosig_container_close(iosig_container* container);

/* Like pread(2): returns fewer bytes at the end of the file, and before bytes that are lost. EIO: the first one is
 * lost, or a block of 64 KiB does not match its checksum. */
int64_t iosig_container_pread(iosig_container* container, void* buffer, size_t bytes, int64_t offset);
int64_t iosig_container_pwrite(iosig_container* container, const void* buffer, size_t bytes, int64_t offset);
/* Writes at the end of the file, like O_APPEND; no other append on this node gets the same offset. Stores the offset of
 * the bytes in `*offset` if `offset` is not null. */
int64_t iosig_container_append(iosig_container* container, const void* buffer, size_t bytes, int64_t* offset);
/* Returns the size of the logical file in bytes. */
int64_t iosig_container_size(iosig_container* container);
/* **Discards** the bytes behind `size`; or extends the file with zeros. */
int iosig_container_truncate(iosig_container* container, int64_t size);
/* Flushes everything that was written through this handle to the device. */
int iosig_container_sync(iosig_container* container);

/* Like unlink(2) and rename(2). `to` may be a container or an ordinary file: **it is replaced**. If a process has the
 * deleted or replaced container open (through this interface, under iosig run or through iosig mount), its data stay
 * until the last process closes it. Fail with ENOTSUP if `path` or `from` is not a container. */
int iosig_container_unlink(const char* path);
int iosig_container_rename(const char* from, const char* to);

/* Opens with a signature, for compilers without the plugin. Each macro calls the hint and then opens the file. Every
 * argument is evaluated once. A program that is linked without libiosig only opens the file.
 *
 *   fd = IOSIG_OPEN("persist random", path, O_CREAT | O_RDWR, 0644);
 *   file = IOSIG_FOPEN("temp sequential", path, "w");
 *   std::ofstream out(IOSIG_PATH("temp", path));     only for opens that create the file, and without O_EXCL
 *
 * IOSIG_PATH returns `path` itself, which in C++ may be a std::string or std::filesystem::path. */
#define IOSIG_OPEN(signature, path, flags, mode) iosig_signed_open(signature, path, flags, mode)
#define IOSIG_FOPEN(signature, path, mode) iosig_signed_fopen(signature, path, mode)
#define IOSIG_PATH(signature, path) iosig_signed_path(signature, path)

/* The hints; null in a program that is linked without libiosig. Unlike a weak declaration, a weakref does not affect a
 * definition of the same function. */
#define IOSIG_IF_LINKED(name) __attribute__((__weakref__(name)))
static void iosig_linked_open_hint(int, const char*, int, const char*) IOSIG_IF_LINKED("iosig_open_hint");
static void iosig_linked_fopen_hint(const char*, const char*, const char*) IOSIG_IF_LINKED("iosig_fopen_hint");
#undef IOSIG_IF_LINKED

#define IOSIG_AT_FDCWD (-100) /* AT_FDCWD, which <fcntl.h> hides in strict ISO C */

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

/* Under `iosig trace`, record the calls of the whole process only from a start to a stop: of a segment of the code.
 * With `iosig trace --paused` nothing is recorded before the first start. Otherwise they do nothing. They need no
 * library. */
static __inline__ void iosig_trace_switch_to(int is_on) {
  void (*change)(int) = NULL;
  *(void**)&change = dlsym(NULL /* RTLD_DEFAULT */, "iosig_trace_switch");
  if (change) change(is_on);
}
static __inline__ void iosig_trace_start(void) { iosig_trace_switch_to(1); }
static __inline__ void iosig_trace_stop(void) { iosig_trace_switch_to(0); }

#ifdef __cplusplus
} /* extern "C" */

/* Hidden, so a shared library that includes this header does not export it. */
template <class Path>
__attribute__((__visibility__("hidden"))) inline const Path& iosig_signed_path(const char* signature,
                                                                               const Path& path) {
  iosig_signed_path(signature, path.c_str());
  return path;
}
#endif
#endif
