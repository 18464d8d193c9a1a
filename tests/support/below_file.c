// Makes calls on names below an ordinary file, and on its own name with a slash behind it; says on stdout what each
// gave. On files that behave alike, it says the same.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static void say(const char* call, const char* path, long value) {
  printf("%s %s %s\n", call, path, value < 0 ? strerrorname_np(errno) : "done");
}

static void ask(const char* path) {
  struct stat status;
  struct statx more;
  const struct timespec times[2] = {{1000000000, 0}, {1000000001, 0}};
  const char* const other = "other.plain";
  say("stat", path, stat(path, &status));
  say("lstat", path, lstat(path, &status));
  say("fstatat", path, fstatat(AT_FDCWD, path, &status, 0));
  say("statx", path, statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &more));
  say("access", path, access(path, F_OK));
  say("access", path, access(path, R_OK));
  say("faccessat", path, faccessat(AT_FDCWD, path, R_OK, AT_EACCESS));
  const int modes[] = {O_RDONLY,         O_WRONLY,          O_RDONLY | O_DIRECTORY,     O_WRONLY | O_CREAT,
                       O_RDWR | O_TRUNC, O_RDONLY | O_PATH, O_RDONLY | O_CREAT | O_EXCL};
  for (unsigned n = 0; n < sizeof modes / sizeof *modes; ++n) {
    printf("%o ", modes[n]);
    const int fd = open(path, modes[n], 0600);
    say("open", path, fd);
    if (fd >= 0) (void)close(fd);
  }
  printf("fopen %s %s\n", path, fopen(path, "w") == NULL ? strerrorname_np(errno) : "done");
  printf("opendir %s %s\n", path, opendir(path) == NULL ? strerrorname_np(errno) : "done");
  say("chmod", path, chmod(path, 0600));
  say("chown", path, chown(path, getuid(), getgid()));
  say("lchown", path, lchown(path, getuid(), getgid()));
  say("utimensat", path, utimensat(AT_FDCWD, path, times, 0));
  say("lutimes", path, lutimes(path, NULL));
  say("truncate", path, truncate(path, 3));
  say("unlink", path, unlink(path));
  say("rmdir", path, rmdir(path));
  say("remove", path, remove(path));
  say("rename from", path, rename(path, "somewhere"));
  say("rename to", path, rename(other, path));
  say("link from", path, link(path, "somewhere"));
  say("link to", path, link(other, path));
  say("symlink", path, symlink("somewhere", path));
  say("mkdir", path, mkdir(path, 0700));
  say("mkfifo", path, mkfifo(path, 0600));
  say("mkfifoat", path, mkfifoat(AT_FDCWD, path, 0600));
  say("mknod", path, mknod(path, S_IFIFO | 0600, 0));
  say("mknodat", path, mknodat(AT_FDCWD, path, S_IFREG | 0600, 0));
  say("chdir", path, chdir(path));
}

int main(void) {
  (void)close(open("other.plain", O_WRONLY | O_CREAT, 0600));
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  say("write", "file", write(fd, "content", 7));
  (void)mkdir("directory", 0700);
  (void)close(open("directory/file", O_WRONLY | O_CREAT, 0600));
  say("symlink", "link", symlink("directory/file", "link"));
  static const char* const paths[] = {"file/below",           "file/d9/deeper",    "file/",      "file/.",
                                      "directory/file/below", "directory/file///", "link/below", "link/",
                                      "none/below",           "./file//below",     "none/"};
  for (unsigned n = 0; n < sizeof paths / sizeof *paths; ++n) {
    ask(paths[n]);
    (void)unlink("directory/none");
    (void)rmdir("directory/none");
    (void)rmdir("none");
    struct stat status;
    say("stat", "file", stat("file", &status));
    printf("%ld bytes\n", (long)status.st_size);
    (void)close(open("other.plain", O_WRONLY | O_CREAT, 0600));
  }
  say("chdir", "file", chdir("file"));
  return 0;
}
