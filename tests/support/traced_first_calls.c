// Processes, as many as the argument says, in each of which the first traced calls of four threads come at the same
// moment: each opens a file `f.N` of its own and writes to it 20 times. getrandom(2), which the recorder asks for the
// number of a process, takes a millisecond and fails (a seccomp filter, and a handler of SIGSYS), so the threads do
// meet there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { writers = 4 };
static atomic_int ready;

static void answer(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  usleep(1000);
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = -EAGAIN;
}

static void* work(void* number) {
  char name[32], bytes[8] = {0};
  snprintf(name, sizeof name, "f.%d", (int)(long)number);
  ++ready;
  while (ready < writers) {
  }
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (int n = 0; n < 20; ++n)
    if (pwrite(fd, bytes, sizeof bytes, 8L * n) != sizeof bytes) abort();
  return NULL;
}

static int run(void) {
  pthread_t threads[writers];
  for (long n = 0; n < writers; ++n) pthread_create(&threads[n], NULL, work, (void*)n);
  for (int n = 0; n < writers; ++n) pthread_join(threads[n], NULL);
  return 0;
}

int main(int count, char** arguments) {
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 2;
  for (int left = count > 1 ? atoi(arguments[1]) : 1; left > 0; --left) {
    const pid_t child = fork();
    if (child == 0) return run();
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return 0;
}
