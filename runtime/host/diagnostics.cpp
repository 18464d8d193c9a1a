#include "host/diagnostics.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "host/run_isolated.h"

namespace iosig::runtime {
namespace {

struct stat stderr_at_load {};

}  // namespace

void remember_stderr() { (void)::fstat(STDERR_FILENO, &stderr_at_load); }

void say(std::string_view text) {
  struct stat now {};
  if (::fstat(STDERR_FILENO, &now) != 0 || now.st_dev != stderr_at_load.st_dev || now.st_ino != stderr_at_load.st_ino)
    return;
  // Writing to a full pipe without a reader would block the program.
  struct pollfd room {
    .fd = STDERR_FILENO, .events = POLLOUT, .revents = 0
  };
  if (::poll(&room, 1, 0) != 1) return;
  const std::string line = fmt::format("iosig: {}\n", text);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void set_last_error(std::string_view text) {
  ThreadState* state = thread_state();
  if (state == nullptr) return;
  char* const kept = state->last_error;
  const std::size_t length = std::min(text.size(), sizeof state->last_error - 1);
  std::replace_copy(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), kept, '\n', ' ');
  kept[length] = '\0';
}

const char* last_error() {
  const ThreadState* state = thread_state();
  return state == nullptr ? "" : state->last_error;
}

}  // namespace iosig::runtime
