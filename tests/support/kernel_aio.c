// Reads and writes a file by libaio: single requests, vectors, batches, an eventfd, requests on two files at once, and
// each way to be refused. Says on stdout what came of it; on files that behave alike, it says the same.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { depth = 256 };

static io_context_t context;

static void submit(const char* what, long count, struct iocb** requests) {
  errno = 0;
  const int taken = io_submit(context, count, requests);
  printf("%s: submitted %d%s\n", what, taken, errno == 0 ? "" : ", errno changed");
  long sum = 0, failed = 0, least = 0;
  struct io_event events[depth];
  for (int seen = 0; seen < taken;) {
    const int got = io_getevents(context, 1, depth, events, NULL);
    for (int n = 0; n < got; ++n) {
      const long result = (long)events[n].res;
      if (result < 0) ++failed;
      if (result < least) least = result;
      sum += result;
      if (events[n].data != (void*)((char*)events[n].obj + 1)) printf("%s: not its request\n", what);
    }
    seen += got;
  }
  printf("%s: %ld bytes, %ld failed, %s\n", what, sum, failed, least == 0 ? "" : strerrorname_np((int)-least));
}

static void submit_one(const char* what, struct iocb* request) {
  const struct iocb before = *request;
  request->data = (char*)request + 1;
  submit(what, 1, &request);
  if (before.aio_fildes != request->aio_fildes || before.u.c.nbytes != request->u.c.nbytes ||
      before.aio_lio_opcode != request->aio_lio_opcode || before.u.c.offset != request->u.c.offset)
    printf("%s: the request was changed\n", what);
}

static uint64_t hash_of(const void* bytes, size_t count) {
  uint64_t hash = 1469598103934665603u;
  for (size_t n = 0; n < count; ++n) hash = (hash ^ ((const unsigned char*)bytes)[n]) * 1099511628211u;
  return hash;
}

static void batches(int fd, int other) {
  enum { each = 4096 };
  static char bytes[depth][each], got[depth][each];
  static struct iocb requests[depth];
  struct iocb* list[depth];
  for (int n = 0; n < depth; ++n) {
    memset(bytes[n], 'a' + n % 26, each);
    memcpy(bytes[n], &n, sizeof n);
    // Backwards, every fourth on the other file.
    io_prep_pwrite(&requests[n], n % 4 == 3 ? other : fd, bytes[n], each, (long long)(depth - 1 - n) * each);
    requests[n].data = (char*)&requests[n] + 1;
    list[n] = &requests[n];
  }
  submit("batch of writes", depth, list);
  for (int n = 0; n < depth; ++n) {
    io_prep_pread(&requests[n], n % 4 == 3 ? other : fd, got[n], each, (long long)(depth - 1 - n) * each);
    requests[n].data = (char*)&requests[n] + 1;
  }
  submit("batch of reads", depth, list);
  printf("as written: %d\n", memcmp(bytes, got, sizeof got) == 0);
}

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644), other = open("other.plain", O_RDWR | O_CREAT, 0644);
  const int reader = open("file", O_RDONLY), appender = open("file", O_WRONLY | O_APPEND);
  if (io_setup(depth, &context) != 0) return 1;
  struct iocb request;
  char text[] = "written by libaio", got[64] = "";
  io_prep_pwrite(&request, fd, text, 17, 10);
  submit_one("write", &request);
  io_prep_pread(&request, fd, got, sizeof got, 5);
  submit_one("read", &request);
  printf("%.5s|%s|\n", got, got + 5);
  struct iovec parts[3] = {{text, 4}, {text + 8, 2}, {text + 4, 4}};
  io_prep_pwritev(&request, fd, parts, 3, 30);
  submit_one("writev", &request);
  struct iovec into[2] = {{got, 20}, {got + 20, 40}};
  io_prep_preadv(&request, fd, into, 2, 10);
  submit_one("readv", &request);
  printf("%.17s|%.10s|\n", got, got + 20);
  io_prep_pwrite(&request, appender, text, 17, 3);
  submit_one("append", &request);
  io_prep_fsync(&request, fd);
  submit_one("fsync", &request);
  io_prep_fdsync(&request, fd);
  submit_one("fdsync", &request);
  io_prep_pread(&request, fd, got, sizeof got, 1000);
  submit_one("read behind the end", &request);
  io_prep_pwritev2(&request, fd, parts, 3, 50, RWF_DSYNC);
  submit_one("writev2", &request);

  const int bell = eventfd(0, EFD_NONBLOCK);
  io_prep_pwrite(&request, fd, text, 17, 200);
  io_set_eventfd(&request, bell);
  submit_one("told by an eventfd", &request);
  uint64_t rung = 0;
  printf("rung: %zd", read(bell, &rung, sizeof rung));
  printf(" %lu\n", (unsigned long)rung);

  io_prep_pread(&request, appender, got, 10, 0);
  submit_one("read what is open to write", &request);
  io_prep_pwrite(&request, reader, text, 10, 0);
  submit_one("write what is open to read", &request);
  io_prep_pwrite(&request, fd, text, 10, -5);
  submit_one("before the begin", &request);
  io_prep_pwrite(&request, 999, text, 10, 0);
  submit_one("no descriptor", &request);
  io_prep_pwrite(&request, fd, text, 10, 0);
  request.aio_lio_opcode = 77;
  submit_one("no such operation", &request);
  struct iocb* nothing[2] = {NULL, NULL};
  submit("no request", 1, nothing);
  io_prep_pwrite(&request, fd, text, 5, 400);
  request.data = (char*)&request + 1;
  nothing[0] = &request;
  submit("one, and none", 2, nothing);
  printf("none: %d\n", io_submit(context, 0, nothing));

  batches(fd, other);
  char* const all = malloc(2 << 20);
  const ssize_t size = pread(fd, all, 2 << 20, 0), others = pread(other, all + (1 << 20), 1 << 20, 0);
  printf("%zd %zd %lx\n", size, others, (unsigned long)hash_of(all, 2 << 20));
  struct stat status;
  const int asked = fstat(fd, &status);
  printf("%d %ld\n", asked, (long)status.st_size);
  fflush(stdout);
  if (fork() == 0) {  // the child's own context
    context = 0;
    if (io_setup(8, &context) != 0) return 1;
    io_prep_pwrite(&request, fd, text, 17, 3000000);
    submit_one("child", &request);
    fflush(stdout);
    _exit(0);
  }
  (void)wait(NULL);
  return 0;
}
