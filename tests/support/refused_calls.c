// Makes calls on a file that a kernel refuses, or does in part: addresses that are not there, copies into a file that
// is appended to; and asks for flags and links. Says on stdout what each gave; on files that behave alike, the same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void say(const char* call, long value) {
  printf("%s %ld %s\n", call, value, value == -1 ? strerrorname_np(errno) : "");
}

static void use_bad_memory(int fd, char* page) {
  // What is before `page` is there, what is behind it is not; the file is data up to 4096, then a hole up to 200000.
  char* const bad[] = {NULL, (char*)1, page + 4096, (char*)0x10000, (char*)-1, (char*)((uintptr_t)1 << 63)};
  const unsigned of_the_kernel = 4;  // these it refuses even where it would not touch them
  const size_t sizes[] = {1, 7, 8, 100, 4096, 100000};
  for (unsigned n = 0; n < sizeof bad / sizeof *bad; ++n)
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; ++k) {
      say("pread of data", pread(fd, bad[n], sizes[k] > 4096 ? 4096 : sizes[k], 0));
      say("pread of a hole", pread(fd, bad[n], sizes[k], 50000));
      if (n < of_the_kernel) say("pread at the end", pread(fd, bad[n], sizes[k], 300000));
      say("pwrite", pwrite(fd, bad[n], sizes[k], 300000));
      const struct iovec parts[2] = {{page, 10}, {bad[n], sizes[k]}}, turned[2] = {parts[1], parts[0]};
      say("preadv of holes", preadv(fd, turned, 2, 50000));
      say("pwritev", pwritev(fd, turned, 2, 300000));
      if (n < of_the_kernel) say("pwritev in part", pwritev(fd, parts, 2, 199000));
      say("preadv", preadv(fd, (struct iovec*)bad[n], 2, 0));
      say("pwritev", pwritev(fd, (struct iovec*)bad[n], 2, 0));
      say("lseek", lseek(fd, 5, SEEK_SET));
      say("write", write(fd, bad[n], sizes[k]));
      say("read", read(fd, bad[n], sizes[k] > 4000 ? 4000 : sizes[k]));
      say("offset", lseek(fd, 0, SEEK_CUR));
    }
  // Up to the last byte that is there, and one more.
  memset(page, 'x', 4096);
  say("pread to the end of the page", pread(fd, page + 4000, 96, 50000));
  printf("%d %d\n", page[3999], page[4095]);
  memset(page, 'x', 4096);
  say("pread of few", pread(fd, page + 4091, 5, 50000));
  printf("%d %d\n", page[4090], page[4095]);
  char* const wide = mmap(NULL, 150000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(wide, 'x', 150000);
  say("pread of much", pread(fd, wide + 1, 100000, 50000));
  printf("%d %d %d %d\n", wide[0], wide[1], wide[100000], wide[100001]);
  (void)mprotect(wide, 4096, PROT_READ);
  say("pread over memory that is read only", pread(fd, wide + 1, 100000, 50000));
}

static void copy_to(const char* name, int from, int to) {
  off_t offset = 0;
  loff_t at = 0;
  printf("%s\n", name);
  say("copy_file_range", copy_file_range(from, NULL, to, NULL, 10, 0));
  say("copy_file_range", copy_file_range(from, &at, to, NULL, 10, 0));
  say("copy_file_range of nothing", copy_file_range(from, &at, to, NULL, 0, 0));
  at = -1;
  say("copy_file_range", copy_file_range(from, &at, to, NULL, 10, 0));
  if (from != 999 && to != 999) say("copy_file_range", copy_file_range(from, NULL, to, NULL, 10, 1));
  say("sendfile", sendfile(to, from, &offset, 10));
  say("offsets", lseek(from, 0, SEEK_CUR) * 1000 + lseek(to, 0, SEEK_CUR));
}

int main(void) {
  struct stat status;
  char* const page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)munmap(page + 4096, 4096);
  memset(page, 'x', 4096);
  const int fd = open("file", O_RDWR | O_CREAT, 0600);
  say("pwrite", pwrite(fd, page, 4096, 0));
  say("ftruncate", ftruncate(fd, 200000));
  use_bad_memory(fd, page);

  static const int flags[] = {O_RDONLY,
                              O_WRONLY,
                              O_RDWR,
                              O_RDWR | O_APPEND,
                              O_RDONLY | O_CLOEXEC,
                              O_RDWR | O_NONBLOCK,
                              O_WRONLY | O_SYNC,
                              O_RDWR | O_DSYNC,
                              O_RDWR | O_NOFOLLOW,
                              O_RDONLY | O_NOATIME,
                              O_RDWR | O_CREAT,
                              O_RDWR | O_NOCTTY};
  for (unsigned n = 0; n < sizeof flags / sizeof *flags; ++n) {
    const int opened = open("file", flags[n], 0600);
    printf("opened with %o: %o, %o\n", flags[n], fcntl(opened, F_GETFL), fcntl(opened, F_GETFD));
    say("F_SETFL", fcntl(opened, F_SETFL, O_APPEND | O_NONBLOCK));
    printf("then %o\n", fcntl(opened, F_GETFL));
    (void)close(opened);
  }

  const int to = open("to", O_RDWR | O_CREAT, 0600), appends = open("to", O_WRONLY | O_APPEND);
  const int reads = open("to", O_RDONLY), writes = open("file", O_WRONLY);
  int ends[2];
  (void)pipe(ends);
  copy_to("file to file", fd, to);
  copy_to("to one that is appended to", fd, appends);
  copy_to("to one that is read", fd, reads);
  copy_to("from one that is written", writes, to);
  copy_to("to none", fd, 999);
  copy_to("from none", 999, to);
  (void)lseek(fd, 0, SEEK_SET);
  say("copy_file_range onto itself", copy_file_range(fd, NULL, fd, NULL, 10, 0));
  say("copy_file_range to a pipe", copy_file_range(fd, NULL, ends[1], NULL, 10, 0));
  say("sendfile to a pipe", sendfile(ends[1], fd, NULL, 10));
  say("copy_file_range from a pipe", copy_file_range(ends[0], NULL, to, NULL, 10, 0));
  say("sendfile from a pipe", sendfile(to, ends[0], NULL, 10));

  say("fstat", fstat(to, &status));
  printf("%d links\n", (int)status.st_nlink);
  say("unlink", unlink("to"));
  say("fstat", fstat(to, &status));
  printf("%d links, %ld bytes\n", (int)status.st_nlink, (long)status.st_size);
  (void)fstat(reads, &status);
  printf("%d links\n", (int)status.st_nlink);
  struct statx more;
  say("statx", statx(to, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more));
  printf("%d links\n", (int)more.stx_nlink);
  (void)close(open("file2", O_WRONLY | O_CREAT, 0600));
  say("rename", rename("file2", "file"));
  (void)fstat(fd, &status);
  printf("%d links\n", (int)status.st_nlink);
  (void)stat("file", &status);
  printf("%d links\n", (int)status.st_nlink);
  return 0;
}
