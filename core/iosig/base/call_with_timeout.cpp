#include "iosig/base/call_with_timeout.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "iosig/base/files.h"

namespace iosig {

int ask_with_timeout(std::span<std::byte> answer, const std::function<void()>& ask) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    // A hanging child must not keep the user's pipes open.
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    ask();
    (void)!::write(writer.get(), answer.data(), answer.size());
    ::_exit(0);
  }
  writer = Fd();
  struct pollfd wait {
    .fd = reader.get(), .events = POLLIN, .revents = 0
  };
  int failure = ETIMEDOUT;
  int ready = 0;
  do ready = ::poll(&wait, 1, answer_limit_ms);
  while (ready < 0 && errno == EINTR);
  if (ready == 1) {
    std::vector<std::byte> received(answer.size());
    if (::read(reader.get(), received.data(), received.size()) == static_cast<ssize_t>(received.size())) {
      std::ranges::copy(received, answer.begin());
      failure = 0;
    }
    ::waitpid(child, nullptr, 0);
  } else {
    ::kill(child, SIGKILL);  // takes effect when the kernel call returns; do not wait for that
  }
  return failure;
}

}  // namespace iosig
