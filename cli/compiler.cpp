#include "compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "iosig/base/files.h"

namespace iosig::cli {

Result<std::string> output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_failure("make a pipe to", command.front());
  const Fd from(ends[0]);
  Fd to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  to = Fd();
  if (failure != 0) return system_failure("run", command.front(), failure);
  std::string output;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = ::read(from.get(), piece.data(), piece.size())) != 0;) {
    if (got > 0) output.append(piece.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return fail(ErrorKind::system, "'{}' failed", fmt::join(command, " "));
  return output;
}

Result<Compiler> ask_compiler(const std::string& name) {
  const auto macros = output_of({name, "-dM", "-E", "-x", "c", "/dev/null"});
  if (!macros) return fail(ErrorKind::system, "{}; expected a C or C++ compiler", macros.error().message);
  constexpr std::string_view key = "#define __GNUC__ ";
  const std::size_t at = macros->find(key);
  if (at == std::string::npos) return fail(ErrorKind::system, "'{}' is neither GCC nor clang", name);
  return Compiler{macros->find("#define __clang__ ") != std::string::npos,
                  std::atoi(macros->c_str() + at + key.size())};
}

}  // namespace iosig::cli
