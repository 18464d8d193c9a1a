/* Calls that a container refuses, and that programs can do without: inotify_add_watch(2). */
#define _GNU_SOURCE
#include <sys/inotify.h>

#include "say.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644), watch = inotify_init1(IN_CLOEXEC);
  refused("inotify_add_watch", "file", none, none, inotify_add_watch(watch, "file", IN_MODIFY), ENOSPC);
  say("inotify_add_watch", "x", none, none, inotify_add_watch(watch, "file/x", IN_MODIFY));
  say("inotify_add_watch", "absent", none, none, inotify_add_watch(watch, "absent", IN_MODIFY));
  say("inotify_add_watch", "file", none, none, inotify_add_watch(watch, "file/", IN_MODIFY));
  return close(watch) + close(fd);
}
