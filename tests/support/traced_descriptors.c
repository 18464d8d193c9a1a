/* Works with descriptors while other threads of the program are traced. Makes `data`, and prints what it finds:
 *
 *   redirect   close(1) and dup2(log, 1) again and again: the failures, and the bytes of `log`, of which 10 are written
 *   numbers    close(1) and open(2): how often that gave another number
 *   fork       children that have inherited a descriptor of the trace
 *   full       writes when no descriptor is free any more
 *   late       reads when none is free from the first call on, then more when some are, also in a child
 *   jail       writes after chroot(2)
 *   user       writes after setuid(2)
 *   threads    512 threads that have a file open each at once, with a limit of 1024 descriptors: failed opens
 *   closed     writes after all descriptors from 3 on were closed by loops over their numbers
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { writers = 2, openers = 512 };
static atomic_int is_over, started, failed;
static pthread_barrier_t all_open;

static void* write_on(void* file) {
  const int fd = (int)(long)file;
  const char bytes[8] = {0};
  while (!is_over)
    for (int n = 0; n < 1000; ++n) {
      if (pwrite(fd, bytes, sizeof bytes, 8L * n) != sizeof bytes) abort();
      if (n == 0) ++started;
    }
  return NULL;
}

static void limit(rlim_t soft) {
  struct rlimit now;
  if (getrlimit(RLIMIT_NOFILE, &now) != 0) abort();
  now.rlim_cur = soft;
  if (setrlimit(RLIMIT_NOFILE, &now) != 0) abort();
}

static void write_some(int fd) {
  char bytes[16] = {0};
  for (int n = 0; n < 10000; ++n)
    if (pwrite(fd, bytes, sizeof bytes, 16L * n) != sizeof bytes) abort();
  puts("10000");
}

static void redirect(void) {
  const int log = open("log", O_RDWR | O_CREAT | O_TRUNC, 0644);
  struct stat status;
  int failures = 0;
  for (int n = 0; n < 80000; ++n) {
    close(1);
    for (volatile int pause = 0; pause < 500 + n % 8 * 500; ++pause) {
    }
    failures += dup2(log, 1) != 1 || pwrite(1, "hello log\n", 10, 0) != 10;
  }
  if (fstat(log, &status) != 0) abort();
  fprintf(stderr, "%d %ld\n", failures, (long)status.st_size);
}

static void numbers(void) {
  int others = 0;
  for (int n = 0; n < 200000; ++n) {
    close(1);
    const int fd = open("/dev/null", O_WRONLY);
    others += fd != 1;
    if (fd != 1) close(fd);
    if (fd != 1) (void)open("/dev/null", O_WRONLY);
  }
  fprintf(stderr, "%d\n", others);
}

static void count_inherited(void) {
  int found = 0;
  for (int n = 0; n < 500; ++n) {
    const pid_t child = fork();
    if (child == 0) {
      for (int fd = 3; fd < 1024; fd = fd == 40 ? 500 : fd + 1) {
        char link[32], path[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, path, sizeof path - 1);
        path[length < 0 ? 0 : length] = '\0';
        if (strstr(path, ".part") != NULL) _exit(1);
      }
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) abort();
    found += WEXITSTATUS(status);
  }
  printf("%d\n", found);
}

static void read_late(void) {
  char bytes[8];
  limit(16);
  while (eventfd(0, 0) >= 0) {  // not a traced call
  }
  for (int n = 0; n < 10; ++n) (void)pread(0, bytes, 3, 0);
  for (int fd = 3; fd < 16; ++fd) close(fd);
  for (int n = 0; n < 100; ++n) (void)pread(0, bytes, 3, 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open("of the child", O_RDWR | O_CREAT, 0644);
    for (int n = 0; n < 100; ++n) (void)pwrite(fd, bytes, 3, 0);
    _exit(0);
  }
  (void)waitpid(child, NULL, 0);
}

static void* open_one(void* number) {
  char name[32];
  snprintf(name, sizeof name, "file.%d", (int)(long)number);
  const int fd = open(name, O_RDWR | O_CREAT, 0644);
  if (fd < 0 || pwrite(fd, name, 4, 0) != 4) ++failed;
  pthread_barrier_wait(&all_open);
  for (int n = 0; n < 300 && fd >= 0; ++n)  // enough for the recorder to need its file again
    if (pwrite(fd, name, 4, 4L * n) != 4) ++failed;
  pthread_barrier_wait(&all_open);
  return NULL;
}

static void open_many(void) {
  static pthread_t threads[openers];
  limit(1024);
  pthread_barrier_init(&all_open, NULL, openers);
  for (long n = 0; n < openers; ++n)
    if (pthread_create(&threads[n], NULL, open_one, (void*)n) != 0) abort();
  for (int n = 0; n < openers; ++n) pthread_join(threads[n], NULL);
  printf("%d\n", failed);
}

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "";
  if (strcmp(what, "late") == 0) return read_late(), 0;
  if (strcmp(what, "threads") == 0) return open_many(), 0;
  if (strcmp(what, "full") == 0) limit(64);
  const int fd = open("data", O_RDWR | O_CREAT, 0644);
  if (strcmp(what, "full") == 0) {
    while (dup(fd) >= 0) {
    }
    return write_some(fd), 0;
  }
  if (strcmp(what, "closed") == 0) {
    const int kept = dup2(fd, 2);
    for (int each = 3; each < 1024; ++each) close(each);
    closefrom(3);
    for (int each = 3; each < 1024; ++each) (void)dup2(1, each);
    return write_some(kept), 0;
  }
  if (strcmp(what, "jail") == 0 && (mkdir("jail", 0755) != 0 || chroot("jail") != 0 || chdir("/") != 0)) abort();
  if (strcmp(what, "user") == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) abort();
  if (strcmp(what, "jail") == 0 || strcmp(what, "user") == 0) return write_some(fd), 0;
  pthread_t threads[writers];
  for (int n = 0; n < writers; ++n) pthread_create(&threads[n], NULL, write_on, (void*)(long)fd);
  while (started < 10 * writers) usleep(1000);
  if (strcmp(what, "redirect") == 0) redirect();
  if (strcmp(what, "numbers") == 0) numbers();
  if (strcmp(what, "fork") == 0) count_inherited();
  is_over = 1;
  for (int n = 0; n < writers; ++n) pthread_join(threads[n], NULL);
  return 0;
}
