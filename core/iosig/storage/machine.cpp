#include "iosig/storage/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "iosig/base/files.h"

namespace iosig {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds time_limit{3000};
constexpr milliseconds end_limit{200};  // for a killed tool to exit; one that waits for a dead server never does
constexpr std::size_t output_limit_bytes = 1 << 20;

/// The last two are where GPFS and BeeGFS install their tools.
constexpr std::array<const char*, 6> directories{"/usr/sbin", "/usr/bin",          "/sbin",
                                                 "/bin",      "/usr/lpp/mmfs/bin", "/opt/beegfs/sbin"};

std::string find_tool(const std::string& name) {
  for (const char* directory : directories)
    if (std::string path = fmt::format("{}/{}", directory, name); ::access(path.c_str(), X_OK) == 0) return path;
  return {};
}

/// Executes the tool. Must not allocate, as between fork and exec.
[[noreturn]] void become(const char* path, char* const* words, int output) {
  char language[] = "LC_ALL=C", search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* environment[] = {language, search, nullptr};
  ::setpgid(0, 0);  // allows killing the tool with its children
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
      ::dup2(nothing, STDERR_FILENO) >= 0 && ::close_range(STDERR_FILENO + 1, ~0u, 0) == 0 && ::chdir("/") == 0)
    ::execve(path, words, environment);
  ::_exit(127);
}

constexpr int unknown_status = -1;  // not the status of a tool that ended by itself

/// Waits until `deadline` for `child` to end. Returns false if it still runs. The status stays unknown if SIGCHLD is
/// ignored or another thread waits for children.
bool has_ended(pid_t child, Clock::time_point deadline, int& status) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return true;
    if (ended < 0 && errno != EINTR) {
      status = unknown_status;
      return true;
    }
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
}

/// Appends to `output` until end of file. Returns false on timeout or too much output.
bool read_all(int from, Clock::time_point deadline, std::string& output) {
  std::array<char, 4096> piece;
  while (output.size() <= output_limit_bytes) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    struct pollfd wait {
      .fd = from, .events = POLLIN, .revents = 0
    };
    const int ready = left.count() > 0 ? ::poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    output.append(piece.data(), static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

Result<std::string> run_tool(const Command& command) {
  const std::string path = find_tool(command.front());
  if (path.empty()) return fail(ErrorKind::system, "{} is not installed", command.front());
  std::vector<std::string> copies = command;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("make a pipe for", command.front());
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  const Clock::time_point deadline = Clock::now() + time_limit;
  const pid_t child = ::fork();
  if (child == 0) become(path.c_str(), words.data(), writer.get());
  if (child < 0) return system_failure("start", path);
  ::setpgid(child, child);  // parent and child both call it; either may be first
  writer = Fd();
  std::string output;
  int status = 0;
  if (!read_all(reader.get(), deadline, output) || !has_ended(child, deadline, status)) {
    ::kill(-child, SIGKILL);
    has_ended(child, Clock::now() + end_limit, status);
    return fail(ErrorKind::system, "{} took longer than {} s or printed too much", path,
                std::chrono::duration_cast<std::chrono::seconds>(time_limit).count());
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return fail(ErrorKind::system, "{} failed", path);
  return output;
}

}  // namespace iosig
