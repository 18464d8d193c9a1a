#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "parts.h"

namespace iosig::cli {
namespace {

/// The exit status of a shell that cannot run a command.
enum ShellStatus : int { not_executable = 126, not_found = 127 };

using Handler = void (*)(int);
/// The caller's handling of the signals that reset_ignored_signals() resets; become_program() restores it.
std::array<std::pair<int, Handler>, 2> given_signals{{{SIGPIPE, SIG_DFL}, {SIGCHLD, SIG_DFL}}};

constexpr const char* tracing_alone = "IOSIG_TRACE_CONTAINERS";  // runtime/preload/names/paths.cpp

std::string_view value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

/// Returns the file that execvp would run, or nothing; execvp then reports the error itself.
std::optional<std::string> program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  for (std::string_view rest = value_of("PATH"); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    std::string file = fmt::format("{}/{}", rest.substr(0, end), name);
    if (::access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

/// Returns the reason why no library can intercept this program's calls; "" if none is known.
std::string why_not_caught(const std::string& file) {
  const Fd program(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!program || ::fstat(program.get(), &status) != 0) return {};
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && ::geteuid() != 0) return "it runs with more rights than you have";
  Elf64_Ehdr head{};
  if (::pread(program.get(), &head, sizeof head, 0) != sizeof head ||
      std::string_view(reinterpret_cast<const char*>(head.e_ident), SELFMAG) != ELFMAG ||
      head.e_ident[EI_CLASS] != ELFCLASS64)
    return {};  // for example a script
  for (unsigned n = 0; n < head.e_phnum; ++n) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(head.e_phoff + n * sizeof segment);
    if (::pread(program.get(), &segment, sizeof segment, at) != sizeof segment) return {};
    if (segment.p_type == PT_INTERP) return {};
  }
  return "it is linked statically";
}

}  // namespace

Result<Setting> preload_setting() {
  const auto parts = find_parts();
  if (!parts) return pass_on(parts.error());
  const std::string library = parts->preload().string();
  if (::access(library.c_str(), R_OK) != 0) return system_failure("read", library);
  if (library.find_first_of(" :") != std::string::npos)
    return fail(ErrorKind::system, "'{}': the dynamic linker takes no library with a blank or a colon in its path",
                printable(library));
  const std::string_view others = value_of("LD_PRELOAD");
  return Setting{"LD_PRELOAD", others.empty() ? library : fmt::format("{}:{}", library, others)};
}

Setting program_setting() {
  std::error_code none;
  return {"IOSIG_PROGRAM", std::filesystem::read_symlink("/proc/self/exe", none).string()};
}

Setting sanitizer_setting() {
  const std::string given(value_of("ASAN_OPTIONS"));
  const bool is_told = given.find("verify_asan_link_order") != std::string::npos;
  return {"ASAN_OPTIONS", is_told ? given : given + (given.empty() ? "" : ":") + "verify_asan_link_order=0"};
}

std::vector<Setting> settings_of_tracing_alone() {
  const bool is_under_run = !value_of("IOSIG_PROGRAM").empty() && value_of(tracing_alone).empty();
  return is_under_run ? std::vector<Setting>{} : std::vector<Setting>{{tracing_alone, "directories"}};
}

std::vector<Setting> settings_of_running() {
  return value_of(tracing_alone).empty() ? std::vector<Setting>{} : std::vector<Setting>{{tracing_alone, ""}};
}

void reset_ignored_signals() {
  for (auto& [number, handler] : given_signals) handler = std::signal(number, SIG_DFL);
}

int become_program(const std::vector<std::string>& command, const std::vector<Setting>& settings, bool is_dry,
                   Console& console) {
  const auto program = program_of(command.front());
  if (const std::string why = program ? why_not_caught(*program) : std::string(); !why.empty())
    console.note(fmt::format("the library does not see the I/O of '{}': {}; 'iosig mount' works with every program",
                             printable(command.front()), why));
  if (is_dry) {
    std::string line = "env";
    for (const Setting& setting : settings) line += fmt::format(" {}='{}'", setting.name, setting.value);
    console.say(fmt::format("{} {}", line, fmt::join(command, " ")));
    return yes;
  }
  for (const Setting& setting : settings) ::setenv(setting.name.c_str(), setting.value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (const auto& [number, handler] : given_signals) std::signal(number, handler);
  ::execvp(words.front(), words.data());
  const int status = errno == ENOENT ? not_found : not_executable;
  console.fail(system_failure("run", command.front()).value());
  return status;
}

}  // namespace iosig::cli
