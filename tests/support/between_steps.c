/* Runs a command and, before one of the system calls of a window of it, another command, to its end:
 *
 *   between_steps STEP OTHER COMMAND...
 *
 * COMMAND opens and closes the window by asking for its process group (getpgrp). Before call STEP of the window (from
 * 1) OTHER runs under /bin/sh while COMMAND stands still; where OTHER waits for COMMAND (a lock), it goes on beside it.
 * Prints "<reached|beside|not-reached> <status of COMMAND> <status of OTHER>"; beside: OTHER had to wait, and may have
 * acted at any time after the step. A status of 128 + N is a death by signal N. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const long step = atol(argv[1]);
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  pid_t runner = 0;
  int status = 0, is_in_window = 0, is_entry = 1, reached = 0, other = 0;
  long calls = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (long deliver = 0;;) {
    ptrace(PTRACE_SYSCALL, child, NULL, deliver);
    deliver = 0;
    if (waitpid(child, &status, 0) != child) return 2;
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    if (WSTOPSIG(status) == SIGTRAP) continue; /* exec */
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      deliver = WSTOPSIG(status);
      continue;
    }
    if (is_entry) {
      struct user_regs_struct registers;
      ptrace(PTRACE_GETREGS, child, NULL, &registers);
      if ((long)registers.orig_rax == SYS_getpgrp)
        is_in_window = !is_in_window;
      else if (is_in_window && ++calls == step) {
        reached = 1;
        runner = fork();
        if (runner == 0) {
          dup2(STDERR_FILENO, STDOUT_FILENO);
          execl("/bin/sh", "sh", "-c", argv[2], (char*)NULL);
          _exit(127);
        }
        pid_t ended = 0;
        for (int tries = 0; tries < 1000 && (ended = waitpid(runner, &other, WNOHANG)) == 0; ++tries) usleep(1000);
        if (ended != 0) runner = 0;
      }
    }
    is_entry = !is_entry;
  }
  const int was_beside = runner > 0;
  if (was_beside) waitpid(runner, &other, 0);
  printf("%s %d %d\n",
         was_beside ? "beside"
         : reached  ? "reached"
                    : "not-reached",
         status_of(status), status_of(other));
  return 0;
}
