/* POSIX AIO that calls a function on completion: the program holds a lock over the call, which the function takes. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int calls, blocked, value, is_other_thread, is_detached;
static size_t stack_bytes;
static pthread_t caller;

static void notified(union sigval given) {
  sigset_t mask;
  pthread_attr_t attributes;
  int detached = 0;
  pthread_mutex_lock(&mutex);
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getdetachstate(&attributes, &detached);
  pthread_attr_getstacksize(&attributes, &stack_bytes);
  pthread_attr_destroy(&attributes);
  is_detached = detached == PTHREAD_CREATE_DETACHED;
  blocked = sigismember(&mask, SIGUSR1) || sigismember(&mask, SIGTERM);
  is_other_thread = !pthread_equal(pthread_self(), caller);
  value = given.sival_int;
  ++calls;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
}

static void submit(const char* what, int (*call)(struct aiocb*), pthread_attr_t* attributes) {
  static char bytes[100] = "hello";
  static int number;
  struct aiocb request = {.aio_fildes = open("file.dat", O_RDWR | O_CREAT, 0644), .aio_buf = bytes, .aio_nbytes = 100};
  request.aio_sigevent.sigev_notify = SIGEV_THREAD;
  request.aio_sigevent.sigev_notify_function = notified;
  request.aio_sigevent.sigev_notify_attributes = (void*)attributes;
  request.aio_sigevent.sigev_value.sival_int = ++number;
  sigset_t mask;
  pthread_mutex_lock(&mutex);
  const int failed = call(&request);
  while (failed == 0 && calls < number) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  printf("%s: %d, value %d, other thread %d, detached %d, blocked %d, mine %d, result %d\n", what, failed, value,
         is_other_thread, is_detached, blocked, sigismember(&mask, SIGUSR1), (int)aio_return(&request));
  close(request.aio_fildes);
}
static int synchronize(struct aiocb* request) { return aio_fsync(O_SYNC, request); }
static int list(struct aiocb* request) {
  struct sigevent event = request->aio_sigevent;
  struct aiocb* requests[] = {request};
  request->aio_sigevent.sigev_notify = SIGEV_NONE;
  request->aio_lio_opcode = LIO_READ;
  return lio_listio(LIO_NOWAIT, requests, 1, &event);
}

int main(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 300 << 10);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  caller = pthread_self();
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &mine, NULL);
  submit("aio_write", aio_write, NULL);
  submit("aio_read", aio_read, NULL);
  submit("aio_fsync", synchronize, NULL);
  submit("lio_listio", list, NULL);
  submit("attributes", aio_write, &attributes);
  printf("stack %zu KiB\n", stack_bytes >> 10);
  return 0;
}
