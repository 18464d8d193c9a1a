/* libiosig-link.a: the archive that programs are linked with. The same binary then runs with and without IOSIG.
 *
 * It defines the functions of iosig.h and passes each call on to libiosig.so.1 if this machine has the library. If not,
 * the program runs as if it had not been annotated. The library is searched along the program's run path, once, before
 * the constructors of C++ objects run, because those may open files.
 *
 * Each program and each shared library has its own copy, and no symbol of it is exported. Otherwise a program that was
 * linked with an annotated build of a library could not start with a build without annotations. The definitions are
 * weak: objects that were joined by ld -r, each with its own copy, can be linked together, and definitions in the
 * program take precedence. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "iosig/iosig.h"

#define LOCAL __attribute__((weak, visibility("hidden")))

/* The linker option -u iosig_link refers to this symbol and so makes the linker include this object. */
LOCAL char iosig_link;

static struct {
  void (*open_hint)(int, const char*, int, const char*);
  void (*fopen_hint)(const char*, const char*, const char*);
  void (*fstream_hint)(const char*, int, const char*);
  int (*redirect)(const char*, const char*);
  const char* (*last_error)(void);
  struct {
    iosig_container* (*open)(const char*, int, unsigned, const char*);
    int (*close)(iosig_container*);
    int64_t (*pread)(iosig_container*, void*, size_t, int64_t);
    int64_t (*pwrite)(iosig_container*, const void*, size_t, int64_t);
    int64_t (*append)(iosig_container*, const void*, size_t, int64_t*);
    int64_t (*size)(iosig_container*);
    int (*truncate)(iosig_container*, int64_t);
    int (*sync)(iosig_container*);
    int (*unlink)(const char*);
    int (*rename)(const char*, const char*);
  } container;
} library;

/* Searches the run path of the program or library that contains this object. dlopen searches the run path of its
 * caller, which in a program with a sanitizer is the sanitizer's library. */
static void* open_along_run_path(void) {
  Dl_info symbol;
  struct link_map* self = NULL;
  Dl_serinfo size;
  if (dladdr1(&library, &symbol, (void**)&self, RTLD_DL_LINKMAP) == 0 || self == NULL) return NULL;
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return NULL;
  Dl_serinfo* directories = malloc(size.dls_size);
  if (directories == NULL) return NULL;
  *directories = size;
  void* handle = NULL;
  if (dlinfo(self, RTLD_DI_SERINFO, directories) == 0)
    for (unsigned i = 0; i < directories->dls_cnt && handle == NULL; ++i) {
      char file[4096];
      const int length = snprintf(file, sizeof file, "%s/libiosig.so.1", directories->dls_serpath[i].dls_name);
      if (length < (int)sizeof file) handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
  free(directories);
  return handle;
}

__attribute__((constructor(101))) static void load(void) {
  const int errno_before = errno;
  void* handle = dlopen("libiosig.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) handle = open_along_run_path();
  if (handle != NULL) {
    *(void**)&library.open_hint = dlsym(handle, "iosig_open_hint");
    *(void**)&library.fopen_hint = dlsym(handle, "iosig_fopen_hint");
    *(void**)&library.fstream_hint = dlsym(handle, "iosig_fstream_hint");
    *(void**)&library.redirect = dlsym(handle, "iosig_redirect");
    *(void**)&library.last_error = dlsym(handle, "iosig_last_error");
    *(void**)&library.container.open = dlsym(handle, "iosig_container_open");
    *(void**)&library.container.close = dlsym(handle, "iosig_container_close");
    *(void**)&library.container.pread = dlsym(handle, "iosig_container_pread");
    *(void**)&library.container.pwrite = dlsym(handle, "iosig_container_pwrite");
    *(void**)&library.container.append = dlsym(handle, "iosig_container_append");
    *(void**)&library.container.size = dlsym(handle, "iosig_container_size");
    *(void**)&library.container.truncate = dlsym(handle, "iosig_container_truncate");
    *(void**)&library.container.sync = dlsym(handle, "iosig_container_sync");
    *(void**)&library.container.unlink = dlsym(handle, "iosig_container_unlink");
    *(void**)&library.container.rename = dlsym(handle, "iosig_container_rename");
  }
  errno = errno_before;
}

LOCAL void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature) {
  if (library.open_hint != NULL) library.open_hint(dirfd, path, flags, signature);
}

LOCAL void iosig_fopen_hint(const char* path, const char* mode, const char* signature) {
  if (library.fopen_hint != NULL) library.fopen_hint(path, mode, signature);
}

LOCAL void iosig_fstream_hint(const char* path, int openmode, const char* signature) {
  if (library.fstream_hint != NULL) library.fstream_hint(path, openmode, signature);
}

LOCAL int iosig_redirect(const char* path, const char* signature) {
  return library.redirect != NULL ? library.redirect(path, signature) : -1;
}

LOCAL const char* iosig_last_error(void) {
  return library.last_error != NULL ? library.last_error() : "libiosig.so.1 is not on this machine";
}

/* The result without the library, or with an older version of it. */
static int no_containers(void) {
  errno = ENOSYS;
  return -1;
}

LOCAL iosig_container* iosig_container_open(const char* path, int flags, unsigned mode, const char* signature) {
  if (library.container.open != NULL) return library.container.open(path, flags, mode, signature);
  no_containers();
  return NULL;
}

LOCAL int iosig_container_close(iosig_container* container) {
  return library.container.close != NULL ? library.container.close(container) : no_containers();
}

LOCAL int64_t iosig_container_pread(iosig_container* container, void* buffer, size_t bytes, int64_t offset) {
  return library.container.pread != NULL ? library.container.pread(container, buffer, bytes, offset) : no_containers();
}

LOCAL int64_t iosig_container_pwrite(iosig_container* container, const void* buffer, size_t bytes, int64_t offset) {
  return library.container.pwrite != NULL ? library.container.pwrite(container, buffer, bytes, offset)
                                          : no_containers();
}

LOCAL int64_t iosig_container_append(iosig_container* container, const void* buffer, size_t bytes, int64_t* offset) {
  return library.container.append != NULL ? library.container.append(container, buffer, bytes, offset)
                                          : no_containers();
}

LOCAL int64_t iosig_container_size(iosig_container* container) {
  return library.container.size != NULL ? library.container.size(container) : no_containers();
}

LOCAL int iosig_container_truncate(iosig_container* container, int64_t size) {
  return library.container.truncate != NULL ? library.container.truncate(container, size) : no_containers();
}

LOCAL int iosig_container_sync(iosig_container* container) {
  return library.container.sync != NULL ? library.container.sync(container) : no_containers();
}

LOCAL int iosig_container_unlink(const char* path) {
  return library.container.unlink != NULL ? library.container.unlink(path) : no_containers();
}

LOCAL int iosig_container_rename(const char* from, const char* to) {
  return library.container.rename != NULL ? library.container.rename(from, to) : no_containers();
}
