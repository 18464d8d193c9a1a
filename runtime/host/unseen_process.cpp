#include "host/unseen_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace iosig::runtime {
namespace {

constexpr std::size_t child_stack_bytes = 65536;  ///< of the child, and of its child until execve(2)
constexpr unsigned first_other = 3;

void put_at(int fd, int number) {
  if (fd == number)
    ::syscall(SYS_fcntl, number, F_SETFD, 0);
  else
    ::syscall(SYS_dup2, fd, number);
}

}  // namespace

int UnseenProcess::become_program(void* arguments) {
  const UnseenProgram& program = static_cast<Arguments*>(arguments)->program;
  ::syscall(SYS_execve, program.words[0], program.words, program.environment);
  ::syscall(SYS_exit_group, 127);
  return 127;
}

int UnseenProcess::start_program(void* arguments) {
  auto& [program, stack_end] = *static_cast<Arguments*>(arguments);
  if (program.output >= 0) {
    put_at(program.output, STDOUT_FILENO);
  } else {
    const auto nothing = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0));
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) put_at(nothing, number);
  }
  ::syscall(SYS_close_range, first_other, ~0U, 0);
  const int started = ::clone(become_program, stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, arguments);
  ::syscall(SYS_close, STDOUT_FILENO);
  if (started > 0 && program.is_awaited) ::syscall(SYS_wait4, started, nullptr, 0, nullptr);
  ::syscall(SYS_exit_group, 0);
  return 0;
}

UnseenProcess::UnseenProcess(const UnseenProgram& program)
    : arguments_{program, nullptr},
      stack_(::mmap(nullptr, 2 * child_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (stack_ == MAP_FAILED) return;
  auto* const begin = static_cast<std::byte*>(stack_);
  arguments_.stack_end = begin + child_stack_bytes;
  child_ = ::clone(start_program, begin + 2 * child_stack_bytes, CLONE_VM, &arguments_);
}

UnseenProcess::~UnseenProcess() {
  while (child_ > 0 && ::syscall(SYS_wait4, child_, nullptr, __WCLONE, nullptr) < 0 && errno == EINTR) {
  }
  if (stack_ != MAP_FAILED) ::munmap(stack_, 2 * child_stack_bytes);
}

bool inherits_orphans() {
  int is_subreaper = 0;
  return ::getpid() == 1 || ::prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) != 0 || is_subreaper != 0;
}

}  // namespace iosig::runtime
