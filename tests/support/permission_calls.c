// Calls whose answer depends on a file's permissions, on the umask and on the limit of a file's size: prints what each
// gives, so that containers and plain files can be compared line by line.
//
//   permission_calls make FIRST LAST STEP   makes m<mode> for each mode
//   permission_calls use FIRST LAST STEP    what the caller may do with them
//   permission_calls own FIRST LAST STEP    the same with files of its own
//   permission_calls umask                  files that are made under many umasks
//   permission_calls limit                  RLIMIT_FSIZE: short writes, EFBIG, SIGXFSZ
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char* const content = "0123456789";

static void say(const char* call, long value) {
  const int failure = errno;
  printf("  %s %ld %s\n", call, value, value < 0 ? strerrorname_np(failure) : "-");
}
#define SAY(call) (errno = 0, say(#call, (long)(call)))

/// `accessed`: the times are printed if this is that of the last access.
static void say_status(const char* path, long accessed) {
  struct stat status;
  if (stat(path, &status) != 0) {
    say("stat", -1);
    return;
  }
  // The size is in a container's index, which is for those who may read the file.
  printf("  stat %06o %u:%u links %lu size %ld\n", status.st_mode, status.st_uid, status.st_gid,
         (unsigned long)status.st_nlink, euidaccess(path, R_OK) == 0 ? (long)status.st_size : -1);
  if (accessed != 0 && status.st_atime == accessed)
    printf("  times %ld %ld\n", (long)status.st_atime, (long)status.st_mtime);
}

static void make(const char* path, unsigned mode) {
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, mode);
  if (fd < 0 || write(fd, content, 10) != 10 || close(fd) != 0 || chmod(path, mode) != 0) {
    perror(path);
    exit(1);
  }
}

static void try_open(const char* path, int flags) {
  char byte = 0;
  errno = 0;
  const int fd = open(path, flags, 0600);
  printf("  open %o %s", flags, fd < 0 ? strerrorname_np(errno) : "opened");
  if (fd >= 0) {
    errno = 0;
    const long got = pread(fd, &byte, 1, 0);
    printf(" read %ld %d", got, errno);
    errno = 0;
    const long put = pwrite(fd, "x", 1, 3);
    printf(" write %ld %d", put, errno);
    errno = 0;
    const int cut = ftruncate(fd, 9);
    printf(" ftruncate %d %d", cut, errno);
    struct stat status;
    printf(" size %ld", fstat(fd, &status) == 0 ? (long)status.st_size : -1);
    close(fd);
  }
  printf("\n");
}

static void use(const char* path) {
  printf("%s\n", path);
  char value[16];
  say_status(path, 0);
  for (int mode = 0; mode < 8; ++mode) {
    errno = 0;
    say("access", access(path, mode));
    errno = 0;
    say("euidaccess", euidaccess(path, mode));
    errno = 0;
    say("faccessat", faccessat(AT_FDCWD, path, mode, AT_EACCESS));
  }
  static const int more[] = {0,         O_APPEND,    O_CREAT, O_CREAT | O_EXCL, O_NOFOLLOW,
                             O_NOATIME, O_DIRECTORY, O_TRUNC, O_CREAT | O_TRUNC};
  for (unsigned n = 0; n < sizeof more / sizeof *more; ++n)
    for (int access = O_RDONLY; access <= O_ACCMODE; ++access) try_open(path, access | more[n]);
  SAY(truncate(path, 8));
  say_status(path, 0);
  SAY(truncate(path, -1));
  SAY(truncate(path, 20));
  say_status(path, 0);
  SAY(setxattr(path, "user.one", "1", 1, 0));
  SAY(lsetxattr(path, "user.two", "22", 2, XATTR_CREATE));
  SAY(setxattr(path, "user.two", "22", 2, XATTR_CREATE));
  SAY(getxattr(path, "user.one", value, sizeof value));
  SAY(lgetxattr(path, "user.two", value, 1));
  SAY(getxattr(path, "user.none", value, sizeof value));
  char names[256] = "";
  SAY(llistxattr(path, NULL, 0));
  const int fd = open(path, O_RDONLY);
  if (fd >= 0) {
    SAY(fsetxattr(fd, "user.three", "333", 3, 0));
    SAY(fgetxattr(fd, "user.one", value, sizeof value));
    SAY(flistxattr(fd, names, sizeof names));
    SAY(fremovexattr(fd, "user.three"));
    SAY(fchmod(fd, 0640));
    SAY(fchown(fd, (uid_t)-1, getegid()));
    const struct timespec old[2] = {{1000, 0}, {2000, 0}};
    SAY(futimens(fd, old));
    say_status(path, 1000);
    SAY(futimens(fd, NULL));
    close(fd);
  }
  SAY(listxattr(path, names, sizeof names));
  SAY(removexattr(path, "user.one"));
  SAY(lremovexattr(path, "user.two"));
  SAY(removexattr(path, "user.two"));
  const struct timespec old[2] = {{3000, 0}, {4000, 0}}, only_accessed[2] = {{5000, 0}, {0, UTIME_OMIT}},
                        only_modified[2] = {{0, UTIME_OMIT}, {6000, 0}}, none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
  SAY(utimensat(AT_FDCWD, path, NULL, 0));
  SAY(utimensat(AT_FDCWD, path, old, 0));
  SAY(utimensat(AT_FDCWD, path, only_accessed, 0));
  SAY(utimensat(AT_FDCWD, path, only_modified, AT_SYMLINK_NOFOLLOW));
  SAY(utimensat(AT_FDCWD, path, none, 0));
  say_status(path, 5000);
  const struct timeval times[2] = {{7000, 0}, {8000, 0}};
  SAY(utimes(path, times));
  say_status(path, 7000);
  const struct timeval later[2] = {{9000, 0}, {10000, 0}}, wrong[2] = {{0, -1}, {0, 1000000}};
  SAY(lutimes(path, later));
  say_status(path, 9000);
  SAY(futimesat(AT_FDCWD, path, times));
  say_status(path, 7000);
  SAY(lutimes(path, wrong));
  SAY(utimes(path, NULL));
  SAY(chown(path, (uid_t)-1, (gid_t)-1));
  SAY(chown(path, 12345, (gid_t)-1));
  SAY(lchown(path, (uid_t)-1, getegid()));
  SAY(chown(path, geteuid(), (gid_t)-1));
  say_status(path, 0);
  SAY(chmod(path, 0));
  say_status(path, 0);
  try_open(path, O_RDONLY);
  try_open(path, O_WRONLY);
  SAY(lchmod(path, 0200));
  try_open(path, O_RDONLY);
  try_open(path, O_WRONLY | O_TRUNC);
  SAY(chmod(path, 06755));
  say_status(path, 0);
  try_open(path, O_RDWR);
  say_status(path, 0);
  SAY(chmod(path, 06755));
  SAY(truncate(path, 3));
  say_status(path, 0);
  SAY(chmod(path, 06711));
  SAY(chown(path, geteuid(), getegid()));
  say_status(path, 0);
  SAY(chmod(path, 0604));
  say_status(path, 0);
  try_open(path, O_RDWR);
}

static void under_umasks(void) {
  static const unsigned masks[] = {0, 022, 027, 077, 0177, 0277, 0377, 0477, 0577, 0677, 0777};
  static const unsigned modes[] = {0, 0200, 0400, 0444, 0600, 0604, 0622, 0644, 0666, 0777, 01777, 02755, 04755};
  char path[64];
  for (unsigned mask = 0; mask < sizeof masks / sizeof *masks; ++mask)
    for (unsigned mode = 0; mode < sizeof modes / sizeof *modes; ++mode) {
      sprintf(path, "u%04o.%05o", masks[mask], modes[mode]);
      umask(masks[mask]);
      const int fd = mode % 2 == 0 ? open(path, O_CREAT | O_RDWR, modes[mode]) : creat(path, modes[mode]);
      printf("%s\n", path);
      if (fd < 0) {
        say("open", -1);
        continue;
      }
      struct stat status;
      SAY(fstat(fd, &status));
      printf("  fstat %06o\n", status.st_mode);
      SAY(write(fd, content, 10));
      SAY(fstat(fd, &status));
      printf("  fstat %06o %ld\n", status.st_mode, (long)status.st_size);
      close(fd);
      say_status(path, 0);
      for (int access = O_RDONLY; access <= O_RDWR; ++access) try_open(path, access);
      SAY(chmod(path, 0644));
      try_open(path, O_RDWR);
    }
}

static volatile int signals;
static void count_signal(int number) {
  (void)number;
  ++signals;
}

static void limit_to(rlim_t bytes) {
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) perror("setrlimit");
}

#define LIMITED(call) (SAY(call), printf("  signals %d\n", signals))

static void limited(void) {
  static char bytes[150000];
  memset(bytes, 'a', sizeof bytes);
  signal(SIGXFSZ, count_signal);
  const int fd = open("positional", O_CREAT | O_RDWR, 0644), log = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
  struct stat status;
  limit_to(100000);
  LIMITED(pwrite(fd, bytes, 1000, 99500));
  LIMITED(pwrite(fd, bytes, 1000, 100000));
  LIMITED(pwrite(fd, bytes, 1, 99999));
  for (int n = 0; n < 5; ++n) LIMITED(pwrite(fd, bytes, 90000, n));  // over and over: the file does not grow
  LIMITED(ftruncate(fd, 100000));
  LIMITED(ftruncate(fd, 100001));
  LIMITED(truncate("positional", 100001));
  LIMITED(truncate("positional", 50000));
  LIMITED(fallocate(fd, 0, 0, 100001));
  LIMITED(lseek(fd, 99990, SEEK_SET));
  LIMITED(write(fd, bytes, 100));
  LIMITED(write(fd, bytes, 100));
  LIMITED(lseek(fd, 0, SEEK_CUR));
  const struct iovec parts[2] = {{bytes, 60000}, {bytes, 60000}};
  LIMITED(pwritev(fd, parts, 2, 10));
  LIMITED(fstat(fd, &status));
  printf("  size %ld\n", (long)status.st_size);
  memset(bytes, 'b', sizeof bytes);
  LIMITED(write(log, bytes, 60000));
  LIMITED(write(log, bytes, 60000));
  LIMITED(write(log, bytes, 60000));
  limit_to(RLIM_INFINITY);
  memset(bytes, 'c', sizeof bytes);
  LIMITED(write(log, bytes, 10));
  limit_to(0);
  LIMITED(write(log, bytes, 10));
  limit_to(RLIM_INFINITY);
  LIMITED(write(log, bytes, 10));
  LIMITED(fstat(log, &status));
  printf("  size %ld\n", (long)status.st_size);
  LIMITED(pwrite(fd, bytes, 10, 99999));
  close(fd);
  close(log);
}

int main(int count, char** words) {
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  const char* const what = count > 1 ? words[1] : "";
  if (strcmp(what, "umask") == 0) {
    under_umasks();
    return 0;
  }
  if (strcmp(what, "limit") == 0) {
    limited();
    return 0;
  }
  if (count != 5) return 2;
  umask(0);
  const unsigned first = (unsigned)strtoul(words[2], NULL, 8), last = (unsigned)strtoul(words[3], NULL, 8);
  const unsigned step = (unsigned)strtoul(words[4], NULL, 8);
  for (unsigned mode = first; mode <= last; mode += step) {
    char path[16];
    sprintf(path, "m%04o", mode);
    if (strcmp(what, "use") != 0) make(path, mode);
    if (strcmp(what, "make") != 0) use(path);
  }
  return 0;
}
