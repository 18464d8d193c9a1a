/* Holds a file open, or changes names, as it is told line by line on stdin; answers each line on stdout: "ok", "ok
 * TEXT" or the errno's number. Compiled with -DC_INTERFACE it uses the containers of iosig.h, else POSIX calls.
 *
 *   open PATH | pwrite OFFSET TEXT | pread | fsync | size | links | close
 *   unlink PATH | rename FROM TO | renameat2 FROM TO FLAGS | rmdir PATH */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef C_INTERFACE
#include <iosig/iosig.h>
static iosig_container* file;
#else
static int file = -1;
#endif

static char text[4096];

static int run(const char* what, char* one, char* two, char* three) {
  text[0] = 0;
#ifdef C_INTERFACE
  if (!strcmp(what, "open")) return (file = iosig_container_open(one, O_RDWR, 0, 0)) != 0 ? 0 : -1;
  if (!strcmp(what, "pwrite"))
    return iosig_container_pwrite(file, two, strlen(two), atoll(one)) == (long)strlen(two) ? 0 : -1;
  if (!strcmp(what, "pread")) {
    const long got = iosig_container_pread(file, text, sizeof text - 1, 0);
    if (got >= 0) text[got] = 0;
    return got < 0 ? -1 : 0;
  }
  if (!strcmp(what, "fsync")) return iosig_container_sync(file);
  if (!strcmp(what, "size")) return sprintf(text, "%ld", (long)iosig_container_size(file)) < 0;
  if (!strcmp(what, "close")) return iosig_container_close(file);
  if (!strcmp(what, "unlink")) return iosig_container_unlink(one);
  if (!strcmp(what, "rename")) return iosig_container_rename(one, two);
#else
  struct stat status;
  if (!strcmp(what, "open")) return (file = open(one, O_RDWR)) >= 0 ? 0 : -1;
  if (!strcmp(what, "pwrite")) return pwrite(file, two, strlen(two), atoll(one)) == (long)strlen(two) ? 0 : -1;
  if (!strcmp(what, "pread")) {
    const long got = pread(file, text, sizeof text - 1, 0);
    if (got >= 0) text[got] = 0;
    return got < 0 ? -1 : 0;
  }
  if (!strcmp(what, "fsync")) return fsync(file);
  if (!strcmp(what, "size")) return fstat(file, &status) != 0 || sprintf(text, "%ld", (long)status.st_size) < 0;
  if (!strcmp(what, "links")) return fstat(file, &status) != 0 || sprintf(text, "%ld", (long)status.st_nlink) < 0;
  if (!strcmp(what, "close")) return close(file);
  if (!strcmp(what, "unlink")) return unlink(one);
  if (!strcmp(what, "rename")) return rename(one, two);
  if (!strcmp(what, "renameat2")) return renameat2(AT_FDCWD, one, AT_FDCWD, two, (unsigned)atoi(three));
  if (!strcmp(what, "rmdir")) return rmdir(one);
#endif
  (void)three;
  errno = ENOSYS;
  return -1;
}

int main(void) {
  char line[4096], what[16], one[1024], two[1024], three[16];
  while (fgets(line, sizeof line, stdin)) {
    one[0] = two[0] = three[0] = 0;
    sscanf(line, "%15s %1023s %1023s %15s", what, one, two, three);
    if (run(what, one, two, three) != 0)
      printf("%d\n", errno);
    else
      printf(text[0] ? "ok %s\n" : "ok\n", text);
    fflush(stdout);
  }
  return 0;
}
