/* Calls on what a file is beside its bytes: access(2), chmod(2), utimensat(2) and their kin. */
#define _GNU_SOURCE
#include <sys/time.h>
#include <utime.h>

#include "say.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644);
  const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}}, wrong[2] = {{.tv_nsec = -5}, {.tv_nsec = -5}};
  struct stat status;
  say("access", "file", none, none, access("file", R_OK));
  say("access", "absent", none, none, access("absent", R_OK));
  say("chmod", "file", none, none, chmod("file", 0600));
  say("fchmod", "file", none, none, fchmod(fd, 0640));
  say("chmod", "file", none, none, fchmodat(AT_FDCWD, "file", 0644, 0));
  say("utime", "file", none, none, futimens(fd, times));
  say("utime", "file", none, none, utimensat(AT_FDCWD, "file", times, 0));
  say("utime", "file", none, none, utimensat(AT_FDCWD, "file", wrong, 0));
  say("fstat", "file", none, none, fstat(fd, &status));
  note("mode", status.st_mode);
  note("modified", status.st_mtim.tv_sec);
  say("stat", "file", none, none, fstatat(AT_FDCWD, "file", &status, 0));
  note("accessed", status.st_atim.tv_sec);
  return close(fd);
}
