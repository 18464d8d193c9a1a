// Makes random operations by io_uring through liburing, and prints each that completed:
//     operation file offset length result
// For a trace to be compared with. Arguments: seed, number of operations. Status 77: the kernel refuses io_uring.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { depth = 32, files = 3 };

static struct operation {
  const char* name;
  int file;
  long long offset, length;
  struct iovec pieces[2];
} operations[depth];
static int is_busy[depth], in_flight;
static char bytes[70000];
static struct io_uring ring;

static void complete(struct io_uring_cqe* completion) {
  const long long n = (long long)io_uring_cqe_get_data64(completion) - 1000;
  const struct operation* done = &operations[n];
  printf("%s %c %lld %lld %d\n", done->name, 'a' + done->file, done->offset, done->length, completion->res);
  is_busy[n] = 0;
  --in_flight;
}

/// Programs learn of completions in these ways.
static void reap(void) {
  struct io_uring_cqe *completion, *several[depth];
  if (rand() % 3 == 0) {
    unsigned count = io_uring_peek_batch_cqe(&ring, several, depth);
    for (unsigned n = 0; n < count; ++n) complete(several[n]);
    io_uring_cq_advance(&ring, count);
  } else if (rand() % 2 == 0) {
    if (io_uring_wait_cqe(&ring, &completion) != 0) abort();
    complete(completion);
    io_uring_cqe_seen(&ring, completion);
  } else {
    unsigned head, count = 0;
    io_uring_for_each_cqe(&ring, head, completion) {
      complete(completion);
      ++count;
    }
    io_uring_cq_advance(&ring, count);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  srand((unsigned)atoi(argv[1]));
  if (io_uring_queue_init(depth, &ring, 0) != 0) return 77;
  int fds[files];
  static const char* const names[] = {"a", "b", "c"};
  for (int n = 0; n < files; ++n) fds[n] = open(names[n], O_RDWR | O_CREAT, 0666);
  if (io_uring_register_files(&ring, fds, files) != 0) return 77;
  int waiting = 0;
  for (int left = atoi(argv[2]); left > 0 || waiting > 0 || in_flight > 0;) {
    int at = 0;
    while (at < depth && is_busy[at]) ++at;
    if (left > 0 && at < depth && rand() % 4 != 0) {
      struct io_uring_sqe* request = io_uring_get_sqe(&ring);
      const int file = rand() % files, is_registered = rand() % 3 == 0, fd = is_registered ? file : fds[file];
      const unsigned length = (unsigned)(rand() % (rand() % 4 == 0 ? 70000 : 100));
      const long long offset = rand() % 300000;
      operations[at] = (struct operation){.file = file, .offset = offset, .length = length};
      struct operation* made = &operations[at];
      made->pieces[0] = (struct iovec){bytes, length / 2};
      made->pieces[1] = (struct iovec){bytes, length - length / 2};
      switch (rand() % 6) {
        case 0: made->name = "io_uring_read", io_uring_prep_read(request, fd, bytes, length, (__u64)offset); break;
        case 1: made->name = "io_uring_write", io_uring_prep_write(request, fd, bytes, length, (__u64)offset); break;
        case 2: made->name = "io_uring_read", io_uring_prep_readv(request, fd, made->pieces, 2, (__u64)offset); break;
        case 3: made->name = "io_uring_write", io_uring_prep_writev(request, fd, made->pieces, 2, (__u64)offset); break;
        case 4:
          made->name = "io_uring_fallocate";
          io_uring_prep_fallocate(request, fd, FALLOC_FL_KEEP_SIZE, (__u64)offset, (__u64)(length + 1));
          ++made->length;
          break;
        default:
          made->name = "io_uring_fsync", made->offset = made->length = LLONG_MIN;
          io_uring_prep_fsync(request, fd, IORING_FSYNC_DATASYNC);
      }
      if (is_registered) request->flags |= IOSQE_FIXED_FILE;
      io_uring_sqe_set_data64(request, (__u64)at + 1000);
      is_busy[at] = 1;
      ++waiting;
      --left;
      continue;
    }
    if (waiting > 0) {
      const int submitted = rand() % 2 ? io_uring_submit(&ring) : io_uring_submit_and_wait(&ring, 1);
      if (submitted != waiting) abort();
      in_flight += waiting;
      waiting = 0;
    }
    if (in_flight > 0) reap();
  }
  io_uring_queue_exit(&ring);
  return 0;
}
