// `iosig run`: runs an unmodified program with libiosig-preload, which intercepts its calls on files.

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "parts.h"
#include "rules_source.h"

namespace iosig::cli {
namespace {

struct RunArguments {
  std::vector<std::string> containers, command;
  std::string rules;
  bool dry_run = false;
};

/// The exit status of a shell that cannot run a command.
enum ShellStatus : int { not_executable = 126, not_found = 127 };

struct Setting {
  std::string name, value;
};

std::string_view value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

/// Notes rules without effect. `run` makes containers but redirects nothing: a rule without `container` only exempts
/// its files from later rules and from the globs.
void note_rules_without_effect(const Rules& rules, const RunArguments& options, const Console& console) {
  const auto makes_container = [](const Rule& rule) { return rule.signature.container_targets.has_value(); };
  for (auto rule = rules.rules.begin(); rule != rules.rules.end(); ++rule) {
    if (makes_container(*rule) || !options.containers.empty() || std::any_of(rule, rules.rules.end(), makes_container))
      continue;
    console.note(
        fmt::format("{}:{}: this rule does nothing here: its signature has no `container`, and 'iosig run' leaves such "
                    "files where they are; 'iosig prepare --rules' redirects them",
                    printable(options.rules), rule->line));
  }
}

/// Returns the environment variables to set for the program.
Result<std::vector<Setting>> settings_for(const RunArguments& options, const Console& console) {
  const auto parts = find_parts();
  if (!parts) return pass_on(parts.error());
  const std::string library = parts->preload().string();
  if (::access(library.c_str(), R_OK) != 0) return system_failure("read", library);
  if (library.find_first_of(" :") != std::string::npos)
    return fail(ErrorKind::system, "'{}': the dynamic linker takes no library with a blank or a colon in its path",
                printable(library));
  std::vector<Setting> settings;
  const std::string_view others = value_of("LD_PRELOAD");
  settings.push_back({"LD_PRELOAD", others.empty() ? library : fmt::format("{}:{}", library, others)});
  if (!options.containers.empty()) {
    std::string globs;
    for (const std::string& glob : options.containers) {
      if (glob.empty() || glob.find(':') != std::string::npos)
        return fail(ErrorKind::usage, "--container '{}': expected a glob without colons", printable(glob));
      if (glob.ends_with('/'))
        return fail(ErrorKind::usage, "--container '{0}' matches no file: it names a directory; expected e.g. '{0}*'",
                    printable(glob));
      const bool is_of_names = glob.find('/') == std::string::npos;
      globs += (globs.empty() ? "" : ":") +
               (is_of_names ? glob : std::filesystem::absolute(glob).lexically_normal().string());
    }
    settings.push_back({"IOSIG_CONTAINERS", std::move(globs)});
  }
  if (!options.rules.empty()) {
    const auto rules = read_rules(options.rules, console);
    if (!rules) return pass_on(rules.error());
    note_rules_without_effect(*rules, options, console);
    settings.push_back({"IOSIG_RULES", std::filesystem::absolute(options.rules).lexically_normal().string()});
  }
  return settings;
}

/// Returns the file that execvp would run, or nothing; execvp then reports the error itself.
std::optional<std::string> program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  for (std::string_view rest = value_of("PATH"); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string file = fmt::format("{}/{}", rest.substr(0, end), name);
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

int run_command(const RunArguments& options, Console& console) {
  if (options.command.empty())
    return console.fail(
        {ErrorKind::usage, "expected a command, e.g. iosig run --container '*.dat' -- ./solver input.txt"});
  const auto settings = settings_for(options, console);
  if (!settings) return console.fail(settings.error());
  const auto program = program_of(options.command.front());
  if (const std::string why = program ? why_not_caught(*program) : std::string(); !why.empty())
    console.note(fmt::format("the library does not see the I/O of '{}': {}; 'iosig mount' works with every program",
                             printable(options.command.front()), why));
  if (options.dry_run) {
    std::string line = "env";
    for (const Setting& setting : *settings) line += fmt::format(" {}='{}'", setting.name, setting.value);
    console.say(fmt::format("{} {}", line, fmt::join(options.command, " ")));
    return yes;
  }
  for (const Setting& setting : *settings) ::setenv(setting.name.c_str(), setting.value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const int status = errno == ENOENT ? not_found : not_executable;
  console.fail(system_failure("run", options.command.front()).value());
  return status;
}

}  // namespace

void add_run(Verb app, Action& action) {
  const Verb verb = app.add_verb("run", "Run an unmodified program whose files become containers");
  const auto options = std::make_shared<RunArguments>();
  verb.add_option("COMMAND", options->command, "after --: a program and its arguments");
  verb.add_option("--container", options->containers,
                  "new files whose name (or path, if GLOB has a slash) matches become containers")
      .type_name("GLOB")
      .repeatable();
  verb.add_option("--rules", options->rules, "make containers of files whose rule says `container`").type_name("FILE");
  verb.add_flag("--dry-run", options->dry_run, "print the environment and the command; run nothing");
  verb.footer(
      "The command replaces the iosig process.\n"
      "Exit status: the program's; 126 it cannot be executed, 127 it is not found; 2, 3, 4 iosig itself failed.\n"
      "Example: iosig run --container '*.dat' -- ./solver input.txt\n"
      "         mpirun -n 4 iosig run --rules rules.toml -- ./solver");
  verb.when_chosen(action, "", [options](Console& console) { return run_command(*options, console); });
}

}  // namespace iosig::cli
