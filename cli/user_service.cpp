#include "user_service.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

extern char** environ;

namespace iosig::cli {
namespace {

constexpr int answer_limit_ms = 10'000;
constexpr std::size_t max_message_bytes = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the absolute path of a program in $PATH; "" if there is none.
std::string program_in_path(std::string_view name) {
  const std::string path = variable("PATH");
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    std::string program = fmt::format("{}/{}", rest.substr(0, end), name);
    if (program.front() == '/' && ::access(program.c_str(), X_OK) == 0) return program;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

/// Whether a program listens on the socket of the user's systemd. A connection that would have to wait counts as none.
bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Runs the command and returns its exit status, or -1 if it did not end in time; its messages go to `message`.
Result<int> run_with_limit(std::vector<std::string> words, std::string& message) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure("make", "a pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDERR_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return fail(ErrorKind::system, "cannot run {}: {}", words.front(), std::strerror(failure));
  write_end = Fd{};
  timespec begin{}, now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &begin);
  bool is_late = false;
  for (;;) {
    (void)::clock_gettime(CLOCK_MONOTONIC, &now);
    const auto left_ms = answer_limit_ms - (now.tv_sec - begin.tv_sec) * 1000 - (now.tv_nsec - begin.tv_nsec) / 1000000;
    pollfd more{read_end.get(), POLLIN, 0};
    const int ready = left_ms <= 0 ? 0 : ::poll(&more, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    is_late = ready == 0;
    char piece[512];
    const ssize_t got = ready > 0 ? ::read(read_end.get(), piece, sizeof piece) : 0;
    if (got <= 0) break;
    if (message.size() < max_message_bytes) message.append(piece, static_cast<std::size_t>(got));
  }
  if (is_late) (void)::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return is_late || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

/// Whether the service needs the variable to find what this process finds.
bool is_passed_on(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return name.starts_with("IOSIG_") || name == "HOME" || name == "XDG_STATE_HOME" || name == "XDG_CONFIG_HOME" ||
         name == "XDG_DATA_HOME" || name == "TZ";
}

}  // namespace

bool has_user_services() {
  const std::string directory = variable("XDG_RUNTIME_DIR");
  struct stat status {};
  if (!directory.starts_with('/') || ::stat(directory.c_str(), &status) != 0 || status.st_uid != ::geteuid())
    return false;
  return answers(directory + "/systemd/private") && !program_in_path("systemd-run").empty();
}

Result<void> start_user_service(const std::string& unit, const std::vector<std::string>& command,
                                const std::string& log_path) {
  std::vector<std::string> words = {program_in_path("systemd-run"),
                                    "--user",
                                    "--quiet",
                                    "--collect",
                                    "--unit=" + unit,
                                    "--description=brings redirected files home",
                                    "--working-directory=/",
                                    "--property=Nice=19",
                                    "--property=CPUSchedulingPolicy=idle",
                                    "--property=IOSchedulingClass=idle",
                                    "--property=StandardOutput=append:" + log_path,
                                    "--property=StandardError=append:" + log_path};
  for (char** each = environ; *each != nullptr; ++each)
    if (is_passed_on(*each)) words.push_back(fmt::format("--setenv={}", *each));
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  std::string message;
  const auto status = run_with_limit(words, message);
  if (!status) return pass_on(status.error());
  if (*status == 0) return {};
  if (*status < 0) return fail(ErrorKind::system, "systemd-run did not answer in {} s", answer_limit_ms / 1000);
  while (message.ends_with('\n')) message.pop_back();
  return fail(ErrorKind::system, "systemd-run: {}", printable(message));
}

bool services_outlive_logins() {
  const passwd* user = ::getpwuid(::geteuid());
  return user != nullptr && ::access(fmt::format("/var/lib/systemd/linger/{}", user->pw_name).c_str(), F_OK) == 0;
}

}  // namespace iosig::cli
