/* For the programs of this directory, one for each call or a few that belong together. tests/system/test_each_call.py
 * runs every program on plain files, where each line that it prints must be in the trace, and on containers, where it
 * must print the same.
 *
 *   #include "say.h"
 *   int main(void) {
 *     const int fd = open("file", O_RDWR | O_CREAT, 0644);
 *     say("readahead", "file", 0, 100, readahead(fd, 0, 100));
 *     say("readahead", "file", 0, 100, readahead(written, 0, 100));   on a descriptor that cannot read: a failure, too
 *   }
 *
 * refused() says a call that a container refuses. `file.plain` is never a container: for what else is meant to differ
 * on one. A program makes its files in the working directory, `file` always. Of the calls that it says, it makes none
 * without saying it, and none on a descriptor that is no file's. One that includes other headers defines _GNU_SOURCE
 * before them. */
#ifndef IOSIG_SAY_H
#define IOSIG_SAY_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The offset or the length of a call that has none. */
static const long long none = LLONG_MIN;

/* Prints a call as `iosig export --format csv` must have it: its name in core/iosig/trace/calls.inc, the path, offset
 * and length (or none), and the result: what the call returned, or -errno. */
static void say(const char* call, const char* path, long long offset, long long length, long long result) {
  printf("%s %s %lld %lld %lld\n", call, path, offset, length, result == -1 ? -(long long)errno : result);
}

/* Prints a call that fails with errno `refusal` on a container, as say() does otherwise. */
static inline void refused(const char* call, const char* path, long long offset, long long length, long long result,
                           int refusal) {
  printf("%s %s %lld %lld %lld | %lld\n", call, path, offset, length, result == -1 ? -(long long)errno : result,
         -(long long)refusal);
}

/* Prints something that is in no trace, but must be the same on a container: "# text number". */
static inline void note(const char* text, long long number) { printf("# %s %lld\n", text, number); }
#endif
