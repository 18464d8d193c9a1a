/* A signal handler makes calls on files on an alternate stack: argv[1] bytes more than the kernel needs. Each in a
 * process of its own; says how it ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int operation;
static const char* name;
static char directory[4096], below[4200];

static void handler(int unused) {
  struct stat status;
  int fd, number = 0;
#define CALL(what)             \
  if (operation == number++) { \
    name = #what;              \
    what;                      \
    return;                    \
  }
  CALL(fd = open("crash.dat", O_WRONLY | O_CREAT | O_APPEND, 0644); write(fd, "crash\n", 6); fsync(fd); close(fd))
  CALL(fd = open("crash.txt", O_WRONLY | O_CREAT | O_APPEND, 0644); write(fd, "crash\n", 6); close(fd))
  CALL(open("absent", O_RDONLY))
  CALL(open("absent/absent", O_RDONLY))
  CALL(open("file.dat", O_RDONLY))
  CALL(open(directory, O_RDONLY | O_DIRECTORY))
  CALL(creat("created", 0644))
  CALL(stat("/etc/passwd", &status))
  CALL(stat(directory, &status))
  CALL(stat("file.dat", &status))
  CALL(lstat("absent/absent", &status))
  CALL(access("absent", R_OK))
  CALL(access("file.dat", R_OK))
  CALL(mkdir("made", 0755))
  CALL(rmdir("made"))
  CALL(rename("crash.txt", "renamed.txt"))
  CALL(unlink("absent"))
  CALL(unlink(below))
  CALL(unlink("crash.dat"))
  CALL(chdir(directory))
  CALL(truncate("file.dat", 3))
  CALL(chmod("file.dat", 0600))
  CALL(symlink("absent", "link"))
  CALL(link("renamed.txt", "linked"))
  CALL(kill(getpid(), 0))
  CALL(execl("/bin/true", "true", (char*)NULL))
  name = NULL;
}

int main(int count, char** arguments) {
  const size_t bytes = sysconf(_SC_MINSIGSTKSZ) + atoi(arguments[1]), page = 4096;
  const size_t pages = (bytes + page - 1) / page * page;
  if (getcwd(directory, sizeof directory) == NULL) return 1;
  snprintf(below, sizeof below, "%s/absent", directory);
  close(open("file.dat", O_RDWR | O_CREAT, 0644));
  for (;; ++operation) {
    int ends[2];
    char said[500] = "";
    if (pipe(ends) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
      char* const memory = mmap(NULL, page + pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      mprotect(memory, page, PROT_NONE);
      const stack_t stack = {.ss_sp = memory + page, .ss_size = bytes};
      const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
      if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) _exit(1);
      raise(SIGUSR1);
      (void)!write(ends[1], name, name == NULL ? 0 : strlen(name));
      _exit(name == NULL ? 100 : 0);
    }
    close(ends[1]);
    (void)!read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 100) return 0;
    printf("%d %s: %s\n", operation, said, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended");
    fflush(stdout);
  }
}
