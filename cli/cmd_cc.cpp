// `iosig cc`: runs a compiler with support for `#pragma sig`, or prints the flags for it.
//
// It finds plugin, header and library relative to itself, both in the build tree and installed: PREFIX/bin/iosig,
// PREFIX/include, PREFIX/lib/libiosig.so (and libiosig-link.a), PREFIX/lib/iosig/gcc-<major>/iosig.so.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "commands.h"
#include "compiler.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "parts.h"

namespace iosig::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct CcArguments {
  bool cflags = false, libs = false, dry_run = false;
  std::string compiler, resolve, storage, policy;
  Words command;
};

/// Returns the number of words before the compiler's name in a command: 1 for `ccache gcc ...`, else 0.
std::size_t launcher_words(const Words& command) {
  return command.size() > 1 && fs::path(command.front()).filename() == "ccache" ? 1 : 0;
}

struct Flags {
  Words cflags, libs;
  std::string plugin;  ///< empty: the compiler is clang, or only --libs was requested
};

Result<Flags> flags_for(const std::string& compiler_name, const CcArguments& options) {
  const auto compiler = ask_compiler(compiler_name);
  if (!compiler) return pass_on(compiler.error());
  const auto parts = find_parts();
  if (!parts) return pass_on(parts.error());
  Flags flags;
  if (parts->include != "/usr/include") flags.cflags.push_back("-I" + parts->include.string());
  const std::string lib = parts->lib.string();
  // One word, which build tools cannot reorder. The option -u is needed because weak references do not make the linker
  // extract an object from an archive. No shared library exports the symbol, so none earlier in the command satisfies
  // it.
  flags.libs = {"-L" + lib, "-Wl,-rpath," + lib, "-Wl,-u,iosig_link,-liosig-link,-ldl"};
  const bool only_libs = options.command.empty() && options.libs && !options.cflags;
  if (compiler->is_clang || only_libs) return flags;
  if (compiler->major < oldest_gcc)
    return fail(
        ErrorKind::system,
        "'{}' is GCC {}, which compiles `if (c)` before a pragma as if the condition were not there; use GCC {} or "
        "later, or write IOSIG_OPEN(...) of iosig.h instead of pragmas",
        compiler_name, compiler->major, oldest_gcc);
  const fs::path plugin = parts->plugin(compiler->major);
  if (!fs::exists(plugin))
    return fail(ErrorKind::system,
                "there is no IOSIG plugin for '{}' (GCC {}); expected '{}': install gcc-{}-plugin-dev and build IOSIG "
                "with this compiler, or name another one",
                compiler_name, compiler->major, plugin.string(), compiler->major);
  flags.plugin = plugin.string();
  flags.cflags.push_back("-fplugin=" + flags.plugin);
  if (!options.policy.empty()) flags.cflags.push_back("-fplugin-arg-iosig-policy=" + options.policy);
  if (!options.resolve.empty()) flags.cflags.push_back("-fplugin-arg-iosig-resolve=" + options.resolve);
  if (!options.storage.empty())
    flags.cflags.push_back("-fplugin-arg-iosig-storage=" + fs::absolute(options.storage).string());
  return flags;
}

bool has_suffix(const std::string& word, std::initializer_list<std::string_view> suffixes) {
  return !word.starts_with('-') &&
         std::ranges::any_of(suffixes, [&](std::string_view suffix) { return word.ends_with(suffix); });
}

/// Whether this compiler call precompiles a header: its inputs are headers alone, or -x says so.
bool precompiles(std::span<const std::string> arguments) {
  constexpr std::array<std::string_view, 16> with_value = {
      "-o",  "-I",  "-D",  "-U",      "-include", "-imacros",   "-isystem",  "-iquote",
      "-MF", "-MT", "-MQ", "--param", "-L",       "-idirafter", "-aux-info", "-isysroot"};
  bool has_header = false, has_other = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string& language = word == "-x" && i + 1 < arguments.size() ? arguments[i + 1] : word;
    if (word.starts_with("-x") && language.ends_with("-header")) return true;
    if (word == "-x" || std::ranges::find(with_value, word) != with_value.end())
      ++i;
    else if (has_suffix(word, {".h", ".hh", ".hp", ".hpp", ".hxx", ".h++", ".H", ".HPP", ".tcc"}))
      has_header = true;
    else if (!word.starts_with('-'))
      has_other = true;
  }
  return has_header && !has_other;
}

/// Whether this compiler call links a program or library and therefore needs the link flags.
bool links(std::span<const std::string> arguments) {
  const auto is_among = [](std::span<const std::string_view> words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  // A static program cannot load libiosig.
  constexpr std::array<std::string_view, 10> stops = {
      "-c", "-S", "-E", "-M", "-MM", "-r", "-fsyntax-only", "-static", "--static", "-static-pie"};
  constexpr std::array<std::string_view, 3> without_libc = {"-nostdlib", "-nodefaultlibs", "-nolibc"};
  bool has_input = false, has_libc = true;
  for (const std::string& word : arguments) {
    if (is_among(stops, word)) return false;
    if (is_among(without_libc, word)) has_libc = false;
    has_input = has_input || word == "-" || !word.starts_with('-');
  }
  // libtool links C++ libraries with -nostdlib and lists all libraries explicitly.
  has_libc = has_libc || std::ranges::find(arguments, "-lc") != arguments.end();
  return has_input && has_libc && !precompiles(arguments);  // `gcc --version` has no input
}

/// Returns the value of `key` in the CMakeCache.txt of the working directory or the nearest directory above it; "" if
/// there is none.
std::string cmake_setting(std::string_view key) {
  std::error_code failure;
  for (fs::path directory = fs::current_path(failure); !failure && directory.has_relative_path();
       directory = directory.parent_path()) {
    const auto cache = read_file((directory / "CMakeCache.txt").string());
    if (!cache) continue;
    for (const std::string_view line : split(*cache, '\n'))
      if (line.starts_with(key) && line.substr(key.size()).starts_with(':'))
        return std::string(line.substr(std::min(line.find('='), line.size() - 1) + 1));
    return {};
  }
  return {};
}

/// CMake uses COMPILER_LAUNCHER only for compiling. An annotated program that is linked without libiosig silently
/// ignores its hints, because it must also run without IOSIG. Therefore this function notes a missing linker launcher.
void note_missing_link_launcher(std::span<const std::string> arguments, const Console& console) {
  if (std::ranges::find(arguments, "-c") == arguments.end()) return;
  for (const std::string& word : arguments) {
    const bool is_c = has_suffix(word, {".c"});
    if (!is_c && !has_suffix(word, {".cc", ".cpp", ".cxx", ".C", ".c++"})) continue;
    const auto source = read_file(word);
    if (!source || (source->find("#pragma sig") == std::string::npos && source->find("IOSIG_") == std::string::npos))
      continue;
    const std::string language = is_c ? "C" : "CXX";
    const auto launches_us = [&](std::string_view step) {
      return cmake_setting(fmt::format("CMAKE_{}_{}_LAUNCHER", language, step)).find("iosig;cc") != std::string::npos;
    };
    if (launches_us("COMPILER") && !launches_us("LINKER"))
      console.note(
          fmt::format("'{}' will give hints only in a program that is linked by iosig cc too: give CMake "
                      "-DCMAKE_{}_LINKER_LAUNCHER='iosig;cc;--' as well, or link iosig::iosig",
                      printable(word), language));
    return;
  }
}

/// Notes what this compiler call cannot do although the user may expect it.
void note_shortcomings(const Flags& flags, std::span<const std::string> arguments, const Console& console) {
  const auto has = [&](std::string_view word) { return std::ranges::find(arguments, word) != arguments.end(); };
  if ((has("-static") || has("--static") || has("-static-pie")) && !has("-c") && !has("-S") && !has("-E"))
    console.note("a program that is linked statically cannot load libiosig: its hints do nothing");
  for (const std::string& word : arguments)
    if (has_suffix(word,
                   {".f", ".for", ".ftn", ".f90", ".f95", ".f03", ".f08", ".F", ".F90", ".F95", ".F03", ".F08"})) {
      console.note(fmt::format("'{}' is compiled unchanged: `#pragma sig` is for C and C++", printable(word)));
      break;
    }
  if (!flags.plugin.empty()) note_missing_link_launcher(arguments, console);
}

int run_compiler(const CcArguments& options, Console& console) {
  const std::size_t compiler_at = launcher_words(options.command);
  const std::string& name = options.command[compiler_at];
  const std::span arguments = std::span(options.command).subspan(compiler_at + 1);
  const auto flags = flags_for(name, options);
  if (!flags) return console.fail(flags.error());
  if (flags->plugin.empty())
    console.note(fmt::format("'{}' is clang: it ignores pragmas; IOSIG_OPEN(...) of iosig.h works with it", name));
  note_shortcomings(*flags, arguments, console);
  Words words(options.command.begin(), options.command.end() - static_cast<std::ptrdiff_t>(arguments.size()));
  const auto append = [&](const auto& more) { words.insert(words.end(), more.begin(), more.end()); };
  append(flags->cflags);
  append(arguments);
  if (links(arguments)) append(flags->libs);
  // A cached object would contain a destination that was chosen for an older storage description.
  const bool no_cache = options.resolve == "compile";
  if (options.dry_run) {
    console.say(fmt::format("{}{}", no_cache ? "CCACHE_DISABLE=1 " : "", fmt::join(words, " ")));
    return yes;
  }
  if (no_cache) ::setenv("CCACHE_DISABLE", "1", 1);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  return console.fail(system_failure("run", words.front()).value());
}

int print_flags(const CcArguments& options, Console& console) {
  const std::string compiler = options.compiler.empty() ? "gcc" : options.compiler;
  const auto flags = flags_for(compiler, options);
  if (!flags) return console.fail(flags.error());
  if (console.json) {
    console.say_json("iosig.cc/1", {{"compiler", compiler},
                                    {"plugin", flags->plugin.empty() ? nlohmann::ordered_json()
                                                                     : nlohmann::ordered_json(flags->plugin)},
                                    {"cflags", flags->cflags},
                                    {"libs", flags->libs}});
    return yes;
  }
  Words words;
  if (options.cflags) words.insert(words.end(), flags->cflags.begin(), flags->cflags.end());
  if (options.libs) words.insert(words.end(), flags->libs.begin(), flags->libs.end());
  console.say(fmt::format("{}", fmt::join(words, " ")));
  return yes;
}

/// Returns the error message for options that have no effect in this call; "" if there are none.
std::string idle_options(const CcArguments& options) {
  if (!options.command.empty() && (options.cflags || options.libs))
    return "--cflags and --libs print flags; they take no compiler's command after --";
  if (!options.command.empty() && !options.compiler.empty())
    return "--compiler is for --cflags and --libs; the command after -- names its compiler itself";
  if (!options.storage.empty() && options.resolve != "compile")
    return "--storage is for --resolve=compile; at run time the program asks $IOSIG_STORAGE or the user's file";
  if (options.dry_run && options.command.empty()) return "--dry-run needs a compiler's command after --";
  return {};
}

int run_cc(const CcArguments& options, Console& console) {
  if (const std::string idle = idle_options(options); !idle.empty()) return console.fail({ErrorKind::usage, idle});
  if (!options.command.empty()) return run_compiler(options, console);
  if (options.cflags || options.libs || console.json) return print_flags(options, console);
  return console.fail({ErrorKind::usage,
                       "expected a compiler's command after --, or --cflags, --libs; e.g. "
                       "iosig cc -- gcc -O2 -o solver solver.c"});
}

}  // namespace

void add_cc(Verb app, Action& action) {
  const Verb verb = app.add_verb("cc", "Compile a program whose opens have signatures");
  const auto options = std::make_shared<CcArguments>();
  verb.add_option("COMMAND", options->command, "after --: a compiler and its arguments");
  verb.add_flag("--cflags", options->cflags, "print the flags for compiling");
  verb.add_flag("--libs", options->libs, "print the flags for linking");
  verb.add_option("--compiler", options->compiler, "the compiler that --cflags and --libs are for (default: gcc)")
      .type_name("NAME");
  verb.add_option("--resolve", options->resolve,
                  "run (default): the program asks libiosig; compile: destinations are fixed while compiling")
      .check(one_of({"run", "compile"}))
      .type_name("WHEN");
  verb.add_option("--storage", options->storage, "storage description for --resolve=compile").type_name("FILE");
  verb.add_option("--policy", options->policy, "policy of signatures that have none: job (default) or paper")
      .check(one_of({"job", "paper"}))
      .type_name("NAME");
  verb.add_flag("--dry-run", options->dry_run, "print the compiler's command; do not run it");
  verb.footer(
      "Everything after -- is the compiler's command.\n"
      "Exit status: the compiler's; 2 wrong usage, 4 the compiler or the library cannot be run.\n"
      "Example: iosig cc -- gcc -O2 -o solver solver.c\n"
      "         gcc $(iosig cc --cflags) -c solver.c && gcc -o solver solver.o $(iosig cc --libs)");
  verb.when_chosen(action, "iosig.cc/1", [options](Console& console) { return run_cc(*options, console); });
}

}  // namespace iosig::cli
