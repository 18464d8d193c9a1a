// A program in a seccomp sandbox that has its own opens answered by a handler of SIGSYS, which makes traced calls, too.
// Prints the answer to an open, and how many reads have returned 16 bytes afterwards. With the argument "early", it
// makes no traced call before. `getcwd`: that is answered so as well (without a directory), which tracing asks for.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static int data = -1;

static void answer(int signal, siginfo_t* info, void* context) {
  char bytes[16];
  (void)signal, (void)info;
  for (int n = 0; n < 3 && data >= 0; ++n) (void)pread(data, bytes, sizeof bytes, 0);
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RAX] = -EACCES;
}

int main(int count, char** arguments) {
  const int is_early = count > 1 && strcmp(arguments[1], "early") == 0;
  char bytes[16] = {0};
  if (!is_early) {
    data = open("data", O_RDWR | O_CREAT, 0644);
    if (pwrite(data, bytes, sizeof bytes, 0) != sizeof bytes) return 1;
  }
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSYS, &action, NULL);
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcwd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 2;
  printf("%d", open("other", O_RDONLY) < 0 ? errno : 0);
  int done = 0;
  const int from = is_early ? 0 : data;
  for (int n = 0; n < 10000; ++n) done += pread(from, bytes, sizeof bytes, 0) == sizeof bytes;
  printf(" %d\n", done);
  return 0;
}
