#include "compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "iosig/base/files.h"

namespace iosig::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits until `from` has something to read, or is at its end. Returns false if that takes until `end`.
bool await(const Fd& from, std::optional<Clock::time_point> end) {
  pollfd watched{from.get(), POLLIN, 0};
  for (;;) {
    int wait_ms = -1;
    if (end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      if (left <= 0) return false;
      wait_ms = static_cast<int>(left);
    }
    const int ready = ::poll(&watched, 1, wait_ms);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_failure("make a pipe to", command.front());
  const Fd from(ends[0]);
  Fd to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // A limit must also end what the command starts: a shell script's programs keep the pipe open.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (limit.count() > 0) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, words.front(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  to = Fd();
  if (failure != 0) return system_failure("run", command.front(), failure);
  std::string output;
  std::array<char, 4096> piece{};
  const auto end = limit.count() > 0 ? std::optional(Clock::now() + limit) : std::nullopt;
  bool in_time = true;
  for (;;) {
    in_time = await(from, end);
    if (!in_time) break;
    const ssize_t got = ::read(from.get(), piece.data(), piece.size());
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) output.append(piece.data(), static_cast<std::size_t>(got));
  }
  if (!in_time) ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return fail(ErrorKind::system, "'{}' did not end within {} s", fmt::join(command, " "), limit.count() / 1000);
  if (status != 0) return fail(ErrorKind::system, "'{}' failed", fmt::join(command, " "));
  return output;
}

Result<Compiler> ask_compiler(const std::string& name, std::chrono::milliseconds limit) {
  const auto macros = output_of({name, "-dM", "-E", "-x", "c", "/dev/null"}, limit);
  if (!macros) return fail(ErrorKind::system, "{}; expected a C or C++ compiler", macros.error().message);
  constexpr std::string_view key = "#define __GNUC__ ";
  const std::size_t at = macros->find(key);
  if (at == std::string::npos) return fail(ErrorKind::system, "'{}' is neither GCC nor clang", name);
  return Compiler{macros->find("#define __clang__ ") != std::string::npos,
                  std::atoi(macros->c_str() + at + key.size())};
}

}  // namespace iosig::cli
