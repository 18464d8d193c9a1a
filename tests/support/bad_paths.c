// Gives every call that takes a path pointers to nothing, and a string that runs into memory that is not there. Says on
// stdout what came of it; with a library between it and the kernel, it says the same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

static void say(const char* call, long value) {
  printf("%s %ld %s\n", call, value, value == -1 ? strerrorname_np(errno) : "");
}

static void try_all(const char* bad) {
  struct stat status;
  struct statx more;
  struct timespec times[2] = {{1, 0}, {1, 0}};
  say("open", open(bad, O_RDONLY));
  say("open to make", open(bad, O_RDWR | O_CREAT, 0644));
  say("openat", openat(AT_FDCWD, bad, O_WRONLY));
  say("creat", creat(bad, 0644));
  say("temporary", open(bad, O_TMPFILE | O_RDWR, 0600));
  say("stat", stat(bad, &status));
  say("lstat", lstat(bad, &status));
  say("fstatat", fstatat(AT_FDCWD, bad, &status, AT_EMPTY_PATH));
  say("statx", statx(AT_FDCWD, bad, 0, STATX_ALL, &more));
  say("access", access(bad, R_OK));
  say("faccessat", faccessat(AT_FDCWD, bad, R_OK, AT_EACCESS));
  say("chmod", chmod(bad, 0600));
  say("chown", chown(bad, 1, 1));
  say("lchown", lchown(bad, 1, 1));
  say("truncate", truncate(bad, 5));
  say("utimensat", utimensat(AT_FDCWD, bad, times, 0));
  say("utime", utime(bad, NULL));
  say("lutimes", lutimes(bad, NULL));
  say("lchmod", lchmod(bad, 0600));
  say("unlink", unlink(bad));
  say("unlinkat", unlinkat(AT_FDCWD, bad, AT_REMOVEDIR));
  say("rmdir", rmdir(bad));
  say("remove", remove(bad));
  say("mkdir", mkdir(bad, 0755));
  say("symlink", symlink("file", bad));
  say("symlink to", symlink(bad, "link"));
  say("rename", rename(bad, "file"));
  say("rename to", rename("file", bad));
  say("renameat2", renameat2(AT_FDCWD, "file", AT_FDCWD, bad, RENAME_NOREPLACE));
  say("link", link(bad, "other"));
  say("link of none", link("none", bad));
  say("link to", link("file", bad));
  say("link to none", link("file", "none/other"));
  say("link to what is there", link("file", "taken"));
  say("mknod", mknod(bad, S_IFIFO | 0600, 0));
  say("mkfifo", mkfifo(bad, 0600));
  say("chdir", chdir(bad));
  /* The kernel finds the other error before it reads the path. */
  const int wrong = 0xffff;
  say("unlinkat, wrong flags", unlinkat(AT_FDCWD, bad, wrong));
  say("renameat2, wrong flags", renameat2(AT_FDCWD, bad, AT_FDCWD, "file", wrong));
  say("renameat2 to, wrong flags", renameat2(AT_FDCWD, "file", AT_FDCWD, bad, wrong));
  say("linkat, wrong flags", linkat(AT_FDCWD, bad, AT_FDCWD, bad, wrong));
  say("access, wrong mode", access(bad, wrong));
  say("faccessat, wrong mode", faccessat(AT_FDCWD, bad, wrong, 0));
  say("fstatat, wrong flags", fstatat(AT_FDCWD, bad, &status, wrong));
  say("fchmodat, wrong flags", fchmodat(AT_FDCWD, bad, 0644, wrong));
  say("fchownat, wrong flags", fchownat(AT_FDCWD, bad, 1, 1, wrong));
  say("fchownat, empty path", fchownat(AT_FDCWD, bad, 1, 1, AT_EMPTY_PATH));
  say("mknodat, wrong type", mknodat(AT_FDCWD, bad, S_IFMT, 0));
  say("truncate, wrong size", truncate(bad, -1));
  say("temporary, to read", open(bad, O_TMPFILE | O_RDONLY, 0600));
}

int main(void) {
  (void)!write(open("file", O_RDWR | O_CREAT, 0644), "content", 7);
  (void)symlink("nothing", "taken");
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(pages + page, page, PROT_NONE) != 0) return 1;
  memset(pages, 'n', page);
  memcpy(pages + page - 7, "no-end!", 7);
  try_all((const char*)(uintptr_t)8);
  try_all((const char*)UINTPTR_MAX);
  try_all(pages + page);
  try_all(pages + page - 7);
  try_all(pages); /* too long before it ends */
  memcpy(pages + page - 5, "file", 5);
  struct stat status;
  say("stat", stat(pages + page - 5, &status));
  printf("%ld\n", (long)status.st_size);
  return 0;
}
