/* Forks while another thread is in a call of IOSIG, at each system call of that thread in turn: the child must be able
 * to make the same call, although it has inherited every lock that the thread held.
 *
 *   fork_at_step hint|file|handle SIGNATURE STRIDE
 *
 *   hint     the thread and the child hint and create a file each (libiosig)
 *   file     they create and write a file each, without a hint (a preloaded library may make it a container)
 *   handle   the thread writes and reads a container; the child closes the inherited handle and opens its own
 *
 * For each step there is a new process, in which IOSIG has not been called yet, and a new state directory. The thread
 * is stopped at its system calls 1, 1 + STRIDE, ... It goes on if fork() or the child waits for it: then it releases
 * its locks, but not the child's copies of those in memory. Prints "STEPS steps, WAITED waited", or the first step at
 * which the child failed or hung.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { patience_ms = 30000, stopped_ms = 50 };

/* Shared by the tracer, the process and its child. */
static struct { atomic_int thread, may_begin, has_begun, has_ended, may_fork, child, child_status; } * shared;
static const char *mode, *signature;
static long step;
static iosig_container* handle;

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* Returns 0, or a number that tells what failed. */
static int act(const char* who) {
  char path[64];
  snprintf(path, sizeof path, "%s%ld", who, step);
  if (!strcmp(mode, "handle")) {
    char back = 0;
    iosig_container* used = handle;
    if (!strcmp(who, "child")) {
      if (iosig_container_close(handle) != 0) return 1;
      if ((used = iosig_container_open("container", O_RDWR, 0, NULL)) == NULL) return 2;
    }
    if (iosig_container_pwrite(used, "x", 1, step) != 1 || iosig_container_pread(used, &back, 1, step) != 1) return 3;
    return back == 'x' ? 0 : 4;
  }
  if (!strcmp(mode, "hint")) iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, signature);
  int fd = open(path, O_CREAT | O_WRONLY, 0666);
  return fd < 0 ? 5 : write(fd, "x", 1) != 1 ? 6 : close(fd) != 0 ? 7 : 0;
}

static void* in_thread(void* unused) {
  shared->thread = (int)syscall(SYS_gettid);
  while (!shared->may_begin) /* no system call: the tracer counts them */
    __asm__ volatile("pause");
  shared->has_begun = 1;
  if (act("thread") != 0) _exit(9);
  shared->has_ended = 1;
  return unused;
}

static int process(void) {
  char state[4096];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* states = getenv("IOSIG_STATE");
  snprintf(state, sizeof state, "%s/%ld", states != NULL ? states : ".state", step);
  setenv("IOSIG_STATE", state, 1);
  if (!strcmp(mode, "handle") && (handle = iosig_container_open("container", O_RDWR | O_CREAT, 0644, NULL)) == NULL)
    return 8;
  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  while (!shared->may_fork) pause_ms(1);
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    shared->child = (int)getpid();
    _exit(act("child"));
  }
  waitpid(child, &status, 0);
  shared->child_status = status + 1;
  pthread_join(thread, NULL);
  return 0;
}

static int has_within(const atomic_int* flag, int ms) {
  for (int waited = 0; waited < ms && !*flag; ++waited) pause_ms(1);
  return *flag != 0;
}

/* Stops the thread at its system call `step`. Returns the call's number, or -1 if the thread makes fewer. */
static long stop_at_step(void) {
  const pid_t thread = shared->thread;
  long calls = 0;
  int status, entering = 1;
  if (ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0)
    return perror("ptrace"), exit(3), 0;
  ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
  waitpid(thread, &status, __WALL);
  shared->may_begin = 1;
  for (;;) {
    ptrace(PTRACE_SYSCALL, thread, NULL, NULL);
    if (waitpid(thread, &status, __WALL) < 0 || !WIFSTOPPED(status)) return -1;
    if (shared->has_ended) return -1;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80) || !shared->has_begun) continue;
    if (entering && ++calls == step) {
      struct user_regs_struct registers;
      ptrace(PTRACE_GETREGS, thread, NULL, &registers);
      return (long)registers.orig_rax;
    }
    entering = !entering;
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  mode = argv[1], signature = argv[2];
  const long stride = atol(argv[3]);
  long steps = 0, waited = 0;
  for (step = 1;; step += stride, ++steps) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t pid = fork();
    if (pid == 0) _exit(process());
    if (!has_within(&shared->thread, patience_ms)) return fprintf(stderr, "no thread\n"), 3;
    const long call = stop_at_step();
    shared->may_fork = 1;
    if (call >= 0 && !has_within(&shared->child_status, stopped_ms)) ++waited;
    ptrace(PTRACE_DETACH, shared->thread, NULL, NULL);
    const int is_done = has_within(&shared->child_status, patience_ms);
    const int child_status = shared->child_status - 1;
    if (!is_done || child_status != 0) {
      printf("step %ld, system call %ld: the child %s (status %d)\n", step, call, is_done ? "failed" : "hangs",
             is_done ? child_status : 0);
      if (shared->child != 0) kill(shared->child, SIGKILL);
      kill(pid, SIGKILL);
      return 1;
    }
    int status = 0;
    while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
      ;
    if (status != 0) return printf("step %ld, system call %ld: the parent failed (%d)\n", step, call, status), 1;
    munmap(shared, sizeof *shared);
    if (call < 0) break;
  }
  printf("%ld steps, %ld waited\n", steps, waited);
  return 0;
}
