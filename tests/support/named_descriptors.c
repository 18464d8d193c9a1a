// Asks for an open file by the names that the system gives its descriptor, and opens it anew by them, with open(2),
// fopen(3) and freopen(3); says on stdout what came of it. On files that behave alike, it says the same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char* error_of(long value) { return value == -1 ? strerrorname_np(errno) : ""; }

static void say(const char* call, const char* name, long value) {
  printf("%s %s %ld %s\n", call, name, value, error_of(value));
}

static void say_status(const char* call, const char* name, int fd, int done, const struct stat* status) {
  struct stat wanted;
  (void)fstat(fd, &wanted);
  if (done != 0) return say(call, name, done);
  printf("%s %s %ld %o %d\n", call, name, (long)status->st_size, status->st_mode,
         status->st_dev == wanted.st_dev && status->st_ino == wanted.st_ino);
}

static void ask(const char* name, const char* path, int fd) {
  struct stat status;
  struct statx more;
  say_status("stat", name, fd, stat(path, &status), &status);
  say_status("fstatat", name, fd, fstatat(AT_FDCWD, path, &status, 0), &status);
  if (lstat(path, &status) == 0) printf("lstat %s %d\n", name, S_ISLNK(status.st_mode));
  if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &more) == 0) {
    (void)fstat(fd, &status);
    printf("statx %s %lld %o %d\n", name, (long long)more.stx_size, more.stx_mode,
           status.st_ino == more.stx_ino && status.st_dev == makedev(more.stx_dev_major, more.stx_dev_minor));
  }
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more) == 0)
    printf("statx %s %d\n", name, S_ISLNK(more.stx_mode));
  say("access", name, access(path, R_OK | W_OK));
  say("access", name, access(path, X_OK));
  say("chmod", name, chmod(path, 0640));
  say_status("stat", name, fd, stat(path, &status), &status);
  say("chmod", name, chmod(path, 0600));
  say("truncate", name, truncate(path, 12));
  const struct timespec times[2] = {{1000000000, 0}, {1000000001, 0}};
  say("utimensat", name, utimensat(AT_FDCWD, path, times, 0));
  (void)fstat(fd, &status);
  printf("times %ld %ld\n", (long)status.st_atime, (long)status.st_mtime);
  char bytes[100] = "";
  const int again = open(path, O_RDWR);
  say("open", name, again < 0 ? -1 : 0);
  say("read", name, read(again, bytes, 99));
  printf("%s\n", bytes);
  say("close", name, close(again));
  say("open", name, open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
  say("open", name, open(path, O_RDONLY | O_DIRECTORY));
  FILE* const stream = fopen(path, "r+");
  if (stream == NULL) return say("fopen", name, -1);
  printf("%s %s\n", name, fgets(bytes, 99, stream));
  (void)fseek(stream, 0, SEEK_END);
  say("fputs", name, fputs("more", stream) >= 0);
  say("fclose", name, fclose(stream));
  (void)fstat(fd, &status);
  say("size", name, (long)status.st_size);
}

static void reopen(const char* first, const char* second) {
  FILE* stream = fopen("reopened", first);
  if (stream == NULL) return say("fopen", first, -1);
  printf("%s then %s: %d", first, second, fputs("some text\n", stream) >= 0);
  stream = freopen(NULL, second, stream);
  if (stream == NULL) {
    printf(" %s\n", strerrorname_np(errno));
    return;
  }
  char bytes[100] = "";
  struct stat status;
  (void)fstat(fileno(stream), &status);
  printf(" at %ld, mode %o, %d bytes,", ftell(stream), fcntl(fileno(stream), F_GETFL) & (O_ACCMODE | O_APPEND),
         (int)status.st_size);
  printf(" read %d '%s',", fgets(bytes, 99, stream) != NULL, bytes);
  (void)fseek(stream, 0, SEEK_CUR);
  printf(" wrote %d,", fputs("tail", stream) >= 0);
  printf(" closed %d,", fclose(stream));
  (void)stat("reopened", &status);
  printf(" %d bytes\n", (int)status.st_size);
}

int main(void) {
  char name[64], path[100];
  const int made = open("named", O_RDWR | O_CREAT, 0600), fd = dup2(made, 9);
  (void)close(made);
  say("write", "named", write(fd, "content of it", 13));
  struct {
    const char* name;
    long id;
  } places[] = {{"/proc/self/fd", 0},
                {"/proc/thread-self/fd", 0},
                {"/dev/fd", 0},
                {"/proc/%ld/fd", getpid()},
                {"/proc/self/task/%ld/fd", getpid()}};
  for (unsigned n = 0; n < sizeof places / sizeof *places; ++n) {
    (void)snprintf(name, sizeof name, places[n].name, places[n].id);
    (void)snprintf(path, sizeof path, "%s/%d", name, fd);
    ask(places[n].name, path, fd);
  }
  (void)close(0);
  (void)dup2(fd, 0);
  ask("/dev/stdin", "/dev/stdin", 0);
  say("unlink", "named", unlink("named"));
  ask("of an unlinked file", "/dev/stdin", 0);
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd + 1);
  say("open", "of no file", open(path, O_RDONLY));
  static const char* const modes[] = {"r", "r+", "w", "w+", "a", "a+"};
  for (int first = 2; first < 6; ++first)
    for (int second = 0; second < 6; ++second) {
      reopen(modes[first], modes[second]);
      (void)unlink("reopened");
    }
  return 0;
}
