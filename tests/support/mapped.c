// Maps files that it has open to read and write, shared, and uses the memory, the descriptors, their duplicates and
// their locks, in children and threads too. Says on stdout what came of it; on files that behave alike, it says the
// same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { bytes_mapped = 10000, slots = 400, slot_bytes = 64 };

static void say(const char* what, long value) {
  printf("%s %ld %s\n", what, value, value == -1 ? strerrorname_np(errno) : "");
}

static char* map(const char* what, int fd, int protection, size_t length, off_t offset) {
  char* const memory = mmap(NULL, length, protection, MAP_SHARED, fd, offset);
  say(what, memory == MAP_FAILED ? -1 : 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static struct flock range(short type, off_t begin, off_t length) {
  return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = begin, .l_len = length};
}

static void in_child(void (*act)(char*), char* memory) {
  fflush(stdout);
  if (fork() == 0) {
    act(memory);
    fflush(stdout);
    _exit(0);
  }
  (void)wait(NULL);
}

static void try_locks(char* memory) {
  const int fd = open("file", O_RDWR);
  struct flock wanted = range(F_WRLCK, 0, 10);
  say("asked", fcntl(fd, F_GETLK, &wanted));
  printf("type %d, %ld bytes from %ld\n", wanted.l_type, (long)wanted.l_len, (long)wanted.l_start);
  say("flock", flock(fd, LOCK_EX | LOCK_NB));
  for (int at = 0; at < 40; at += 5) {
    wanted = range(F_WRLCK, at, 3);
    say("lock", fcntl(fd, F_SETLK, &wanted));
    wanted = range(F_RDLCK, at, 3);
    say("lock to read", fcntl(fd, F_SETLK, &wanted));
  }
  if (memory != NULL) memcpy(memory, "child", 5);
}

static void use_all_that_shares_it(void) {
  const int fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0640), appender = open("file", O_WRONLY | O_APPEND);
  const int same = dup(fd);
  FILE* const stream = fdopen(dup(fd), "r+");
  say("write", write(fd, "hello world, some bytes", 23));
  say("append", write(appender, "<appended>", 10));
  struct flock lock = range(F_WRLCK, 5, 3);
  say("lock", fcntl(fd, F_SETLK, &lock));
  lock = range(F_RDLCK, 20, 0);
  say("lock of the open file", fcntl(fd, F_OFD_SETLK, &lock));
  say("flock", flock(appender, LOCK_EX));
  say("seek", lseek(fd, 3, SEEK_SET));
  say("truncate", ftruncate(fd, bytes_mapped));
  say("misplaced", mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 5) == MAP_FAILED ? -1 : 0);
  say("to append", mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, appender, 0) == MAP_FAILED ? -1 : 0);
  char* const memory = map("map", fd, PROT_READ | PROT_WRITE, bytes_mapped, 0);
  if (memory == NULL) return;
  printf("%.40s\n", memory);
  memcpy(memory + 6, "WORLD", 5);
  char got[64] = "";
  say("read", read(same, got, 20));
  printf("%s\n", got);
  say("offset", lseek(fd, 0, SEEK_CUR));
  say("flags", fcntl(appender, F_GETFL) & (O_APPEND | O_ACCMODE));
  say("closes", fcntl(fd, F_GETFD));
  say("stays open", fcntl(same, F_GETFD));
  say("append", write(appender, "again", 5));
  say("write", pwrite(fd, "XY", 2, 1));
  rewind(stream);
  say("stream", (long)fread(got, 1, 8, stream));
  printf("%.8s\n%.40s\n", got, memory);
  (void)fseek(stream, 100, SEEK_SET);
  fprintf(stream, "by a stream");
  fflush(stream);
  printf("%s\n", memory + 100);
  struct stat status;
  say("status", fstat(fd, &status));
  printf("%ld %o %ld\n", (long)status.st_size, status.st_mode, (long)status.st_nlink);
  in_child(try_locks, memory);
  printf("%.40s\n", memory);
  say("close", close(same));
  in_child(try_locks, NULL);
  say("rename", rename("file", "renamed"));
  say("again", open("file", O_RDWR));
  char* const read_only = map("read", open("renamed", O_RDWR), PROT_READ, bytes_mapped, 0);
  memcpy(memory + 30, "as others see it", 16);
  if (read_only != NULL) printf("%.16s\n", read_only + 30);
}

static void use_removed(void) {
  const int fd = open("removed", O_RDWR | O_CREAT, 0600);
  char got[8] = "";
  say("unlink", unlink("removed"));
  say("write", write(fd, "abc", 3));
  say("truncate", ftruncate(fd, 4096));
  char* const memory = map("map", fd, PROT_READ | PROT_WRITE, 4096, 0);
  if (memory == NULL) return;
  memory[1] = 'X';
  say("read", pread(fd, got, 3, 0));
  printf("%s\n", got);
  struct stat status;
  say("status", fstat(fd, &status));
  printf("%ld %ld\n", (long)status.st_size, (long)status.st_nlink);
}

static void use_without_rights(void) {
  const int fd = open("secret", O_RDWR | O_CREAT, 0);
  say("write", write(fd, "secret", 6));
  char* const memory = map("map", fd, PROT_READ | PROT_WRITE, 6, 0);
  if (memory != NULL) printf("%.6s\n", memory);
  struct stat status;
  say("status", fstat(fd, &status));
  printf("%o\n", status.st_mode);
  const int reader = open("renamed", O_RDONLY);
  (void)map("to write", reader, PROT_READ | PROT_WRITE, 100, 0);
  (void)map("nothing", reader, PROT_READ, 0, 0);
  char* const own = mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0);
  say("private", own == MAP_FAILED ? -1 : 0);
}

static int worked_on;
static atomic_int turns, is_over;

static void* work(void* argument) {
  const long own = (long)argument;
  char bytes[slot_bytes], got[slot_bytes];
  for (long n = 0; !is_over || n < slots; ++n) {
    const off_t at = (own * slots + n % slots) * slot_bytes;
    memset(bytes, (int)('a' + (own + n) % 26), sizeof bytes);
    if (pwrite(worked_on, bytes, sizeof bytes, at) != sizeof bytes) perror("pwrite");
    if (pread(worked_on, got, sizeof got, at) != sizeof got) perror("pread");
    if (memcmp(bytes, got, sizeof got) != 0) printf("%ld: not what was written\n", own);
    struct stat status;
    if (fstat(worked_on, &status) != 0) perror("fstat");
    ++turns;
  }
  return NULL;
}

/// Other threads write, read and ask for the status all the while.
static void use_in_threads(void) {
  worked_on = open("threads", O_RDWR | O_CREAT, 0644);
  say("truncate", ftruncate(worked_on, 4 * slots * slot_bytes));
  pthread_t threads[4];
  for (long n = 0; n < 4; ++n) pthread_create(&threads[n], NULL, work, (void*)n);
  while (turns < 1000) usleep(100);
  char* const memory = map("map", worked_on, PROT_READ | PROT_WRITE, 4 * slots * slot_bytes, 0);
  for (const int now = turns; turns < now + 1000;) usleep(100);
  is_over = 1;
  for (int n = 0; n < 4; ++n) pthread_join(threads[n], NULL);
  if (memory == NULL) return;
  for (int n = 0; n < 4 * slots; ++n)
    if (memory[n * slot_bytes] < 'a' || memory[n * slot_bytes] != memory[n * slot_bytes + slot_bytes - 1])
      printf("%d: not written\n", n);
}

int main(void) {
  use_all_that_shares_it();
  use_removed();
  use_without_rights();
  use_in_threads();
  return 0;
}
