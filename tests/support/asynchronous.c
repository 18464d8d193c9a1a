// Reads and writes a file by aio_read(3), aio_write(3), aio_fsync(3) and lio_listio(3), with every way to be told; and
// from a signal handler that comes in amid reads and writes. Says on stdout what came of it; on files that behave
// alike, it says the same.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void say(const char* call, long value) {
  printf("%s %ld %s\n", call, value, value == -1 ? strerrorname_np(errno) : "");
}

static sem_t told;
static volatile sig_atomic_t signalled;

static void on_signal(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  signalled = info->si_value.sival_int;
}

static void on_thread(union sigval value) {
  if (value.sival_int == 7) (void)sem_post(&told);
}

static void await(const char* name, struct aiocb* request) {
  const struct aiocb* const list[1] = {request};
  while (aio_error(request) == EINPROGRESS) (void)aio_suspend(list, 1, NULL);
  const int error = aio_error(request);
  printf("%s: %s, %ld\n", name, error == 0 ? "done" : strerrorname_np(error), (long)aio_return(request));
}

static struct aiocb request_of(int fd, void* bytes, size_t count, off_t offset) {
  struct aiocb request;
  memset(&request, 0, sizeof request);
  request.aio_fildes = fd;
  request.aio_buf = bytes;
  request.aio_nbytes = count;
  request.aio_offset = offset;
  request.aio_sigevent.sigev_notify = SIGEV_NONE;
  return request;
}

static void use_requests(int fd, int reads, int plain) {
  char bytes[64] = "written while others go on", got[64] = "";
  struct aiocb request = request_of(fd, bytes, 26, 100);
  say("aio_write", aio_write(&request));
  await("aio_write", &request);
  request = request_of(fd, got, 64, 90);
  say("aio_read", aio_read(&request));
  await("aio_read", &request);
  printf("%d '%s'\n", got[9], got + 10);
  request = request_of(fd, got, 64, 5000);
  say("aio_read behind the end", aio_read(&request));
  await("aio_read", &request);
  request = request_of(reads, bytes, 5, 0);
  say("aio_write by a reader", aio_write(&request));
  await("aio_write", &request);
  request = request_of(fd, bytes, 5, -1);
  if (aio_read(&request) == 0) await("aio_read at no place", &request);
  request = request_of(fd, NULL, 0, 0);
  say("aio_fsync", aio_fsync(O_SYNC, &request));
  await("aio_fsync", &request);
  request = request_of(fd, bytes, 4, 10);
  request.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  request.aio_sigevent.sigev_signo = SIGUSR1;
  request.aio_sigevent.sigev_value.sival_int = 5;
  say("aio_write, then a signal", aio_write(&request));
  await("aio_write", &request);
  for (int n = 0; n < 1000 && signalled != 5; ++n) (void)usleep(1000);
  say("signalled", signalled);
  request = request_of(fd, got, 4, 10);
  request.aio_sigevent.sigev_notify = SIGEV_THREAD;
  request.aio_sigevent.sigev_notify_function = on_thread;
  request.aio_sigevent.sigev_value.sival_int = 7;
  say("aio_read, then a thread", aio_read(&request));
  await("aio_read", &request);
  (void)sem_wait(&told);

  struct aiocb several[4] = {request_of(fd, bytes, 8, 200), request_of(plain, bytes, 8, 0), request_of(fd, got, 8, 100),
                             request_of(fd, bytes, 8, 300)};
  const int codes[4] = {LIO_WRITE, LIO_WRITE, LIO_READ, LIO_NOP};
  struct aiocb* list[5] = {NULL};
  for (int n = 0; n < 4; ++n) {
    several[n].aio_lio_opcode = codes[n];
    list[n + 1] = &several[n];
  }
  say("lio_listio", lio_listio(LIO_WAIT, list, 5, NULL));
  for (int n = 0; n < 3; ++n) await("of several", &several[n]);
  printf("'%.8s'\n", got);
  several[0].aio_fildes = reads;
  say("lio_listio, one fails", lio_listio(LIO_WAIT, list, 5, NULL));
  for (int n = 0; n < 3; ++n) await("of several", &several[n]);
  several[0].aio_fildes = fd;
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD;
  event.sigev_notify_function = on_thread;
  event.sigev_value.sival_int = 7;
  say("lio_listio, then a thread", lio_listio(LIO_NOWAIT, list, 5, &event));
  (void)sem_wait(&told);
  for (int n = 0; n < 3; ++n) await("of several", &several[n]);
  say("aio_cancel", aio_cancel(fd, NULL));
  struct stat status;
  (void)fstat(fd, &status);
  say("size", (long)status.st_size);
}

static int own;
static volatile long done_in_handler, refused_in_handler;

static void on_alarm(int number) {
  const int before = errno;
  (void)number;
  char line[8] = "handler\n", got[8];
  if (pwrite(own, line, 8, 8 * done_in_handler) == 8 && pread(own, got, 8, 8 * done_in_handler) == 8 && got[0] == 'h')
    ++done_in_handler;
  else if (errno == EDEADLK)
    ++refused_in_handler;  // it came in amid a call on a container
  else
    _exit(9);
  errno = before;
}

// Every byte that a call said was written is there, whatever the handler did in between, and the calls are as ever.
static void be_interrupted(int fd) {
  enum { rounds = 4000 };
  own = open("of_handler", O_RDWR | O_CREAT, 0600);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  (void)sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  (void)setitimer(ITIMER_REAL, &often, NULL);
  long wrong = 0;
  for (int n = 0; n < rounds; ++n) {
    int got = -1;
    errno = 0;
    wrong += pwrite(fd, &n, sizeof n, (off_t)sizeof n * n) != sizeof n || errno != 0;
    wrong += pread(fd, &got, sizeof got, (off_t)sizeof n * n) != sizeof n || errno != 0 || got != n;
  }
  for (int n = 0; n < 200 || done_in_handler == 0; ++n) (void)usleep(100);  // amid nothing
  (void)setitimer(ITIMER_REAL, &never, NULL);
  for (int n = 0; n < rounds; ++n) {
    int got = -1;
    wrong += pread(fd, &got, sizeof got, (off_t)sizeof n * n) != sizeof n || got != n;
  }
  for (long n = 0; n < done_in_handler; ++n) {
    char got[8];
    wrong += pread(own, got, 8, 8 * n) != 8 || memcmp(got, "handler\n", 8) != 0;
  }
  say("wrong", wrong);
  struct stat status;
  (void)fstat(own, &status);
  say("of the handler", status.st_size == 8 * done_in_handler);
}

int main(void) {
  (void)sem_init(&told, 0, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  (void)sigaction(SIGUSR1, &action, NULL);
  const int fd = open("file", O_RDWR | O_CREAT, 0600), reads = open("file", O_RDONLY);
  const int plain = open("beside.plain", O_RDWR | O_CREAT, 0600);
  use_requests(fd, reads, plain);
  be_interrupted(fd);
  return 0;
}
