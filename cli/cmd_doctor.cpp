// `iosig doctor`: reports which parts of IOSIG work on this machine for this user, and how to fix the others. Changes
// nothing.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "compiler.h"
#include "iosig/base/files.h"
#include "iosig/base/process_life.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/storage/mountinfo.h"
#include "parts.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

enum class State {
  works,
  limited,  ///< works with limitations
  absent,   ///< missing, but not needed on this machine
  broken,
};

const char* name_of(State state) {
  switch (state) {
    case State::works: return "works";
    case State::limited: return "limited";
    case State::absent: return "absent";
    case State::broken: return "broken";
  }
  return "";
}

struct Finding {
  std::string part;
  State state = State::works;
  std::string detail;       ///< what was found
  std::string remedy = {};  ///< how to fix it; empty: no action needed
};
using Findings = std::vector<Finding>;

/// For each program that is run: a compiler on a file server that does not answer must not hold up the rest.
constexpr std::chrono::milliseconds program_limit{10'000};

bool is_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view directory : split(path == nullptr ? "/bin:/usr/bin" : path, ':'))
    if (::access(fmt::format("{}/{}", directory.empty() ? "." : directory, name).c_str(), X_OK) == 0) return true;
  return false;
}

void examine_libraries(Findings& findings) {
  const auto parts = find_parts();
  if (!parts) {
    findings.push_back({"libraries", State::broken, parts.error().message, "build or install IOSIG again"});
    return;
  }
  findings.push_back({"libraries", State::works, parts->lib.string()});
  const std::string preload = parts->preload().string();
  const auto maps = output_of({"env", "LD_PRELOAD=" + preload, "cat", "/proc/self/maps"}, program_limit);
  if (maps && maps->find("libiosig-preload") != std::string::npos)
    findings.push_back({"iosig run", State::works, "programs start with " + preload});
  else
    findings.push_back({"iosig run", State::broken, fmt::format("the dynamic linker does not load '{}'", preload),
                        "see what `LD_PRELOAD=" + preload + " true` says"});
}

/// Examines the versions of GCC, by the names that distributions use.
void examine_compilers(Findings& findings) {
  const auto parts = find_parts();
  if (!parts) return;
  constexpr int newest_gcc = 20;
  std::vector<std::string> names{"gcc"};
  for (int major = oldest_gcc; major <= newest_gcc; ++major) names.push_back(fmt::format("gcc-{}", major));
  std::set<int> known;
  for (const std::string& name : names) {
    if (!is_in_path(name)) continue;
    const auto compiler = ask_compiler(name, program_limit);
    if (!compiler)
      findings.push_back({"pragmas with " + name, State::broken, compiler.error().message,
                          fmt::format("see what '{} -E -x c /dev/null' says", name)});
    if (!compiler || compiler->is_clang || !known.insert(compiler->major).second) continue;
    const std::string part = fmt::format("pragmas with {} ({})", name, compiler->major);
    const std::string plugin = parts->plugin(compiler->major).string();
    if (compiler->major < oldest_gcc)
      findings.push_back({part, State::absent, fmt::format("the plugin needs GCC {} or later", oldest_gcc),
                          "use a newer GCC, or write IOSIG_OPEN(...) of iosig.h instead of pragmas"});
    else if (::access(plugin.c_str(), R_OK) != 0)
      findings.push_back({part, State::absent, fmt::format("there is no '{}'", plugin),
                          fmt::format("install gcc-{}-plugin-dev and build IOSIG with {}", compiler->major, name)});
    else if (!output_of({name, "-fplugin=" + plugin, "-fsyntax-only", "-x", "c", "/dev/null"}, program_limit))
      findings.push_back({part, State::broken, fmt::format("{} does not load '{}'", name, plugin),
                          "build IOSIG again with this compiler: a plugin fits one version of GCC only"});
    else
      findings.push_back({part, State::works, plugin});
  }
  const bool has_failed = !findings.empty() && findings.back().part.starts_with("pragmas");
  if (known.empty() && !has_failed)
    findings.push_back({"pragmas", State::absent, "there is no GCC in $PATH", "install gcc to compile annotated code"});
}

void examine_mount(Findings& findings) {
  constexpr const char* part = "iosig mount";
  if (const auto daemon = find_daemon(); !daemon) {
    findings.push_back({part, State::absent, daemon.error().message});
    return;
  }
  const Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) {
    const int failure = errno;
    findings.push_back({part, State::broken, fmt::format("cannot open /dev/fuse: {}", std::strerror(failure)),
                        failure == ENOENT ? "load the kernel's module fuse, or give the container --device /dev/fuse"
                                          : "ask an administrator for access to /dev/fuse"});
  } else if (::geteuid() != 0 && !output_of({"fusermount3", "--version"}, program_limit)) {
    findings.push_back({part, State::broken, "there is no fusermount3", "install fuse3"});
  } else {
    findings.push_back({part, State::works, "/dev/fuse"});
  }
}

/// Returns the MPI library's name and version from the output of mpirun --version: "mpirun (Open MPI) 4.1.4" and more,
/// or several lines with "Version: 4.0.2".
std::string mpi_version(std::string_view printed) {
  constexpr std::string_view key = "Version:";
  const std::string_view first = trimmed(printed.substr(0, printed.find('\n')));
  if (const std::size_t at = printed.find(key); first.starts_with("HYDRA") && at != std::string_view::npos)
    return fmt::format("MPICH {}", trimmed(printed.substr(at + key.size(), printed.find('\n', at) - at - key.size())));
  const bool is_open_mpi =
      first.find("Open MPI") != std::string_view::npos || first.find("OpenRTE") != std::string_view::npos;
  return is_open_mpi ? fmt::format("Open MPI {}", first.substr(first.rfind(' ') + 1)) : std::string(first);
}

void examine_mpi(Findings& findings) {
  std::set<std::string> versions;
  bool has_failed = false;
  for (const char* name : {"mpirun", "mpirun.openmpi", "mpirun.mpich"}) {
    if (!is_in_path(name)) continue;
    const auto text = output_of({name, "--version"}, program_limit);
    if (text) {
      versions.insert(mpi_version(*text));
      continue;
    }
    has_failed = true;
    findings.push_back({fmt::format("MPI by {}", name), State::broken, text.error().message,
                        fmt::format("see what '{} --version' says", name)});
  }
  if (versions.empty() && !has_failed)
    findings.push_back({"MPI", State::absent, "there is no mpirun in $PATH"});
  else if (!versions.empty())
    findings.push_back({"MPI", State::works, fmt::format("{}", fmt::join(versions, "; "))});
}

void examine_namespaces(Findings& findings) {
  if (is_in_initial_pid_namespace())
    findings.push_back({"processes", State::works, "all of this machine are visible"});
  else
    findings.push_back({"processes", State::limited, "this is a PID namespace of its own (a container)",
                        "'iosig gc' keeps what jobs outside of it have made: run gc on the host for those"});
}

/// Returns the differences between the storage description and the machine's current state.
Findings changes_since(const Storage& storage) {
  const auto text = read_file("/proc/self/mountinfo");
  const std::vector<Mount> mounts = parse_mountinfo(text ? *text : "");
  Findings findings;
  for (const MountPoint& described : storage.mount_points) {
    const std::string part = "mount point " + printable(described.path);
    const Mount* mount = mount_of(mounts, described.path);
    if (::access(described.path.c_str(), F_OK) != 0)
      findings.push_back({part, State::broken, std::strerror(errno),
                          "mount it, or run 'iosig storage probe' to describe what is there now"});
    else if (mount != nullptr && !described.filesystem.empty() && mount->filesystem != described.filesystem)
      findings.push_back(
          {part, State::limited,
           fmt::format("the description says {}, mounted is {}", described.filesystem, printable(mount->filesystem)),
           "run 'iosig storage probe' again"});
    else if (!described.follows_links)
      findings.push_back({part, State::limited, "symbolic links on it are not followed",
                          "files of programs that run there stay there; sshfs: mount with -o no_contain_symlinks"});
  }
  return findings;
}

void examine_description(Findings& findings) {
  constexpr const char* part = "description";
  constexpr std::int64_t old_s = 180 * 86'400;
  const auto applied = read_applied_storage();
  if (!applied) {
    findings.push_back({part, State::broken, applied.error().message,
                        "mend it or remove it; without it, 'iosig storage probe' writes another"});
    return;
  }
  if (!*applied) {
    findings.push_back({part, State::limited, "none: choices use conservative defaults",
                        "run 'iosig storage probe'; it takes 10 to 20 seconds for each mount point"});
    return;
  }
  const StorageFile& file = (*applied)->file;
  struct stat status {};
  const bool has_age = ::stat(file.path.c_str(), &status) == 0;
  const std::int64_t age_s = has_age ? std::max<std::int64_t>(0, std::time(nullptr) - status.st_mtime) : 0;
  const bool is_old = age_s > old_s;
  findings.push_back(
      {part, is_old ? State::limited : State::works,
       fmt::format("{} ({}), {} old", file.path, reason_text(file), about_seconds(static_cast<double>(age_s))),
       is_old ? "run 'iosig storage probe' again: storage wears and machines change" : ""});
  if (const std::string& fault = (*applied)->system_fault; !fault.empty())
    findings.push_back({"machine's description", State::broken, fault,
                        "tell the administrator: its mount points and limits do not count"});
  else if ((*applied)->has_system)
    findings.push_back({"machine's description", State::works, system_storage_file});
  std::ranges::move(changes_since((*applied)->storage), std::back_inserter(findings));
}

void examine_journal(Findings& findings) {
  constexpr const char* part = "journal";
  const auto journal = read_journal();
  if (!journal)
    findings.push_back({part, State::broken, journal.error().message, "nothing is redirected until this is mended"});
  else if (!journal->unreadable.empty())
    findings.push_back({part, State::broken, journal->unreadable.front().error.message,
                        fmt::format("'iosig status' names all {}", journal->unreadable.size())});
  else
    findings.push_back({part, State::works, fmt::format("{} redirected", journal->entries.size())});
}

int run_doctor(Console& console) {
  Findings findings;
  for (const auto examine : {examine_libraries, examine_compilers, examine_mount, examine_mpi, examine_namespaces,
                             examine_description, examine_journal})
    examine(findings);
  const auto is_broken = [](const Finding& finding) { return finding.state == State::broken; };
  const int status = std::ranges::any_of(findings, is_broken) ? no : yes;
  if (console.json) {
    ordered_json all = ordered_json::array();
    for (const Finding& finding : findings)
      all.push_back({{"part", finding.part},
                     {"state", name_of(finding.state)},
                     {"detail", finding.detail},
                     {"remedy", finding.remedy}});
    console.say_json("iosig.doctor/1", {{"version", IOSIG_VERSION}, {"findings", all}});
    return status;
  }
  Table table({"PART", "STATE", "DETAIL"});
  for (const Finding& finding : findings) table.add({finding.part, name_of(finding.state), printable(finding.detail)});
  console.say(table);
  for (const Finding& finding : findings)
    if (!finding.remedy.empty()) console.say(fmt::format("  {}: {}", finding.part, finding.remedy));
  return status;
}

}  // namespace

void add_doctor(Verb app, Action& action) {
  const Verb verb =
      app.add_verb("doctor", "Say which parts of IOSIG work on this machine, and what to do about others");
  verb.footer(
      "States: works, limited (with less than it could), absent (needed only by those who use it), broken.\n"
      "Exit status: 0 nothing is broken, 1 something is.\n"
      "Example: iosig doctor --json");
  verb.when_chosen(action, "iosig.doctor/1", run_doctor);
}

}  // namespace iosig::cli
