/* What the plugin must do under every flag, in C: each open of "ok-...-N" stands directly after a pragma that says
 * totalsize(NKB), no open of "no-..." does. Files hold their own names, so a call that got a wrong argument shows. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define NEW (O_CREAT | O_WRONLY)
#define RIGHTS 0600
#define OPEN_IN_LOOP(path)        \
  do {                            \
    fd = open(path, NEW, RIGHTS); \
  } while (0)
#ifndef TEMP_FAILURE_RETRY /* glibc has it for GNU C only */
#define TEMP_FAILURE_RETRY(call)          \
  (__extension__({                        \
    long result;                          \
    do result = (call);                   \
    while (result < 0 && errno == EINTR); \
    result;                               \
  }))
#endif

struct stream {
  FILE* file;
  int fd;
};

static void put(int fd, const char* name) {
  if (fd < 3 || write(fd, name, strlen(name)) < 0) fprintf(stderr, "cannot write %s\n", name);
  close(fd);
}

static int in_return(const char* name) {
#pragma sig temp totalsize(1KB)
  return open(name, NEW, RIGHTS);
}

static __inline__ __attribute__((always_inline)) int in_inline(const char* name) {
#pragma sig temp totalsize(2KB)
  int fd = open(name, NEW, RIGHTS);
  return fd;
}

static int in_switch(int kind, int fd) {
  switch (kind) {
    case 0: return -1;
    case 1:
#pragma sig temp totalsize(3KB)
      fd = open("ok-case-3", NEW, RIGHTS);
      break;
    default: return -2;
  }
  return fd;
}

static int in_nested(const char* name) {
  const int rights = RIGHTS;
  __extension__ int nested(const char* path) {
    int inner(void) {
#pragma sig temp totalsize(21KB)
      return open(path, NEW, rights);
    }
    return inner();
  }
  return nested(name);
}

static int after_longjmp(void) {
  jmp_buf back;
  volatile int fd = -1;
  if (setjmp(back) == 0) longjmp(back, 1);
#pragma sig temp totalsize(4KB)
  fd = open("ok-setjmp-4", NEW, RIGHTS);
  return fd;
}

static int with_array(int length) {
  char name[length];
  strcpy(name, "ok-array-5");
#pragma sig temp totalsize(5KB)
  int fd = open(name, NEW, RIGHTS);
  put(fd, name);
  return fd;
}

int main(int argc, char** argv) {
  static const char* const names[] = {"ok-loop-6", "ok-again-6", "ok-third-6"};
  const char* const* next = names;
  struct stream out;
  int i, fd, directory = open(".", O_DIRECTORY | O_RDONLY);
  (void)argv;

  for (i = 0; i < 3; ++i) {
#pragma sig temp totalsize(6KB)
    fd = open(*next++, NEW, RIGHTS);
    put(fd, names[i]);
  }
#pragma sig temp totalsize(7KB)
  if ((fd = open("ok-if-7", NEW, RIGHTS)) > 1000) fd = open("no-if", NEW, RIGHTS);
  put(fd, "ok-if-7");
  if (argc > 1000)
#pragma sig temp totalsize(8KB)
    fd = open("no-body", NEW, RIGHTS);
  else
#pragma sig temp totalsize(9KB)
    fd = open("ok-else-9", NEW, RIGHTS);
  put(fd, "ok-else-9");
#pragma sig temp totalsize(10KB)
  while ((fd = open("ok-while-10", NEW, RIGHTS)) > 1000) put(fd, "no-while");
  put(fd, "ok-while-10");
#pragma sig temp totalsize(11KB)
  for (fd = open("ok-for-11", NEW, RIGHTS); fd > 1000;) fd = open("no-for", NEW, RIGHTS);
  put(fd, "ok-for-11");
#pragma sig temp totalsize(12KB)
  OPEN_IN_LOOP("ok-macro-12");
  put(fd, "ok-macro-12");
  _Pragma("sig temp totalsize(13KB)") fd = open("ok-operator-13", NEW, RIGHTS);
  put(fd, "ok-operator-13");
#pragma sig temp totalsize(14KB)
  fd = argc > 0 ? open("ok-ternary-14", NEW, RIGHTS) : -1;
  put(fd, "ok-ternary-14");
#pragma sig temp totalsize(15KB)
  fd = (int)TEMP_FAILURE_RETRY(open("ok-retry-15", NEW, RIGHTS));
  put(fd, "ok-retry-15");
#pragma sig temp totalsize(16KB)
  out.file = fopen("ok-fopen-16", "w");
  fputs("ok-fopen-16", out.file);
  fclose(out.file);
#pragma sig temp totalsize(17KB)
  out.fd = openat(directory, "ok-openat-17", NEW, RIGHTS);
  put(out.fd, "ok-openat-17");
#pragma sig temp totalsize(18KB)
  fd = creat("ok-creat-18", RIGHTS);
  put(fd, "ok-creat-18");
#pragma sig temp totalsize(19KB)
  fd = __extension__({ open("ok-expression-19", NEW, RIGHTS); });
  put(fd, "ok-expression-19");
#pragma sig temp totalsize(20KB)
  if (0) fd = open("no-dead", NEW, RIGHTS);
  fd = open("no-after", NEW, RIGHTS);
  put(fd, "no-after");

  put(in_return("ok-return-1"), "ok-return-1");
  put(in_inline("ok-inline-2"), "ok-inline-2");
  put(in_inline("ok-twice-2"), "ok-twice-2");
  put(in_switch(argc > 0, -1), "ok-case-3");
  put(after_longjmp(), "ok-setjmp-4");
  put(in_nested("ok-nested-21"), "ok-nested-21");
#pragma sig temp totalsize(22KB)
  struct stream parts = {NULL, open("ok-part-22", NEW, RIGHTS)};
  put(parts.fd, "ok-part-22");
  with_array(sizeof "ok-array-5");
  return close(directory);
}
