/* Runs a command and does something at one of its system calls, as if another program were just then at work:
 *
 *   at_step STEP ACTION PATH RESOLVED COMMAND...
 *
 * The command's calls are counted from the moment when it locks a redirect: it opens the journal's `.lock`. Before call
 * STEP (from 1), while the command stands still:
 *
 *   append         open PATH, append LATE, close             truncate    open PATH with O_TRUNC, write LATE, close
 *   overwrite      write LATE at the start of PATH and give the file its former times back
 *   map            the same through a shared mapping of PATH that was read first
 *   append-there   open RESOLVED, which PATH led to at the start, without O_CREAT, append LATE, close
 *   rename-there   write LATE into another file beside RESOLVED and rename it over RESOLVED
 *   replace        write LATE into another file beside PATH and rename it over PATH
 *   companion      make the file RESOLVED-late with LATE, as programs do that derive names from the path they reach
 *   vanish         remove the file RESOLVED-wal, as programs do whose transaction is over
 *   chmod          set the mode of PATH to 0604
 *   hold           open PATH to append and RESOLVED to read, keep both open, and append LATE when the command has ended
 *   kill           kill the command
 *
 * An action that blocks (on a lease of the command) goes on beside it. After the action the command is no longer
 * stopped. Prints "<what became of the action> <status of the command>": done, not-reached, refused-ERRNO. A status of
 * 128 + N is a death by signal N.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char LATE[] = "written late";
enum { late_bytes = sizeof LATE - 1 };

static int failed(void) { return errno != 0 ? errno : EIO; }

static int write_late(const char* path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0644);
  if (fd < 0) return failed();
  int why = write(fd, LATE, late_bytes) == late_bytes ? 0 : failed();
  return close(fd) == 0 || why != 0 ? why : failed();
}

/* A pipe: at_step closes its write end when the command has ended, and the actor of `hold` waits for that. */
static int command_runs[2] = {-1, -1};

static int hold(const char* path, const char* resolved) {
  char nothing;
  int fd = open(path, O_WRONLY | O_APPEND);
  if (fd < 0) return failed();
  (void)!open(resolved, O_RDONLY);
  close(command_runs[1]);
  if (read(command_runs[0], &nothing, 1) != 0) return failed();
  return write(fd, LATE, late_bytes) == late_bytes ? 0 : failed();
}

static int overwrite(const char* path, int mapped) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return failed();
  if (mapped) {
    volatile char* bytes = mmap(NULL, late_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) return failed();
    volatile char read_first = bytes[0];
    (void)read_first;
    for (int i = 0; i < late_bytes; ++i) bytes[i] = LATE[i];
    munmap((void*)bytes, late_bytes);
  } else {
    struct timespec times[2] = {status.st_atim, status.st_mtim};
    if (pwrite(fd, LATE, late_bytes, 0) != late_bytes || futimens(fd, times) != 0) return failed();
  }
  return close(fd) == 0 ? 0 : failed();
}

static int act(const char* action, const char* path, const char* resolved) {
  char other[4096];
  errno = 0;
  if (!strcmp(action, "append")) return write_late(path, O_WRONLY | O_APPEND);
  if (!strcmp(action, "truncate")) return write_late(path, O_WRONLY | O_TRUNC);
  if (!strcmp(action, "overwrite")) return overwrite(path, 0);
  if (!strcmp(action, "map")) return overwrite(path, 1);
  if (!strcmp(action, "append-there")) return write_late(resolved, O_WRONLY | O_APPEND);
  if (!strcmp(action, "hold")) return hold(path, resolved);
  if (!strcmp(action, "chmod")) return chmod(path, 0604) == 0 ? 0 : failed();
  snprintf(other, sizeof other, "%s-late", resolved);
  if (!strcmp(action, "companion")) return write_late(other, O_WRONLY | O_CREAT | O_EXCL);
  if (!strcmp(action, "vanish")) {
    snprintf(other, sizeof other, "%s-wal", resolved);
    return unlink(other) == 0 ? 0 : failed();
  }
  if (!strcmp(action, "rename-there")) {
    int why = write_late(other, O_WRONLY | O_CREAT | O_EXCL);
    return why != 0 ? why : rename(other, resolved) == 0 ? 0 : failed();
  }
  if (!strcmp(action, "replace")) {
    snprintf(other, sizeof other, "%s-new", path);
    int why = write_late(other, O_WRONLY | O_CREAT | O_EXCL);
    return why != 0 ? why : rename(other, path) == 0 ? 0 : failed();
  }
  fprintf(stderr, "at_step: no action '%s'\n", action);
  exit(2);
}

/* Whether the call is an openat of `.lock`. */
static int opens_lock(pid_t child, const struct user_regs_struct* call) {
  char path[4096] = "";
  struct iovec here = {path, sizeof path - 1}, there = {(void*)call->rsi, sizeof path - 1};
  if (call->orig_rax != 257) return 0; /* openat */
  if (process_vm_readv(child, &here, 1, &there, 1, 0) < 0) {
    here.iov_len = there.iov_len = 256; /* the string lies near the end of its page */
    if (process_vm_readv(child, &here, 1, &there, 1, 0) < 0) return 0;
  }
  return strcmp(path, ".lock") == 0;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const long step = atol(argv[1]);
  const char *action = argv[2], *path = argv[3], *resolved = argv[4];
  if (pipe2(command_runs, O_CLOEXEC) != 0) return 3;
  pid_t child = fork(), actor = 0;
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    execv(argv[5], argv + 5);
    _exit(127);
  }
  int status = 0, counting = 0, entering = 1, outcome = -1;
  long calls = 0;
  waitpid(child, &status, 0);
  ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  for (int signal_number = 0;; signal_number = 0) {
    ptrace(calls < step ? PTRACE_SYSCALL : PTRACE_CONT, child, NULL, signal_number);
    if (waitpid(child, &status, 0) < 0) return 3;
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      if (WSTOPSIG(status) != SIGTRAP) signal_number = WSTOPSIG(status);
      continue;
    }
    if (entering) {
      struct user_regs_struct call;
      ptrace(PTRACE_GETREGS, child, NULL, &call);
      counting = counting || opens_lock(child, &call);
      if (counting && ++calls == step) {
        if (!strcmp(action, "kill")) {
          outcome = 0;
          kill(child, SIGKILL);
        } else if ((actor = fork()) == 0) {
          _exit(act(action, path, resolved));
        } else {
          for (int tries = 0; tries < 100 && waitpid(actor, &outcome, WNOHANG) == 0; ++tries) {
            const struct timespec moment = {0, 500000};
            nanosleep(&moment, NULL);
            outcome = -1;
          }
          if (outcome >= 0) actor = 0;
        }
      }
    }
    entering = !entering;
  }
  close(command_runs[1]);
  if (actor > 0) waitpid(actor, &outcome, 0);
  if (outcome > 0) outcome = WIFEXITED(outcome) ? WEXITSTATUS(outcome) : EINTR;
  if (outcome < 0)
    printf("not-reached");
  else if (outcome == 0)
    printf("done");
  else
    printf("refused-%d", outcome);
  printf(" %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}
