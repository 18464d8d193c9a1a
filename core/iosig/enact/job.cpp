#include "iosig/enact/job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/enact/batch_job.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/open_files.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_environment_bytes = 8 << 20;

/// Returns a process of this machine whose environment has one of `assignments`, except those of this program; 0: none.
int process_with(const std::set<std::string>& assignments) {
  std::error_code ignored;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator process("/proc", ignored); process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{}) continue;
    const auto environment = read_file(process->path() / "environ", max_environment_bytes);
    if (!environment || environment->empty()) continue;
    const auto variables = split(*environment, '\0');
    if (std::ranges::any_of(variables,
                            [&](std::string_view each) { return assignments.contains(std::string(each)); }) &&
        !runs_this_program(pid))
      return pid;
  }
  return 0;
}

bool is_in_this_session(const JournalEntry& entry) {
  const SessionId session = this_session();
  return session.session != 0 && session.session == entry.session && session.pid_namespace == entry.pid_namespace;
}

/// Whether the redirect is of a batch job that the shell of this process submitted: the shell outlives the job.
bool is_of_submitting_shell(const JournalEntry& entry) {
  return !entry.job.empty() && is_of_this_start(entry) && is_in_this_session(entry) &&
         entry.job != job_in_environment();
}

}  // namespace

bool is_of_job(const JournalEntry& entry, std::string_view id) {
  if (id.starts_with("session:"))
    return entry.session != 0 && is_of_this_start(entry) && id.substr(8) == fmt::format("{}", entry.session);
  if (entry.job.empty() || id.empty()) return false;
  return entry.job == id || std::string_view(entry.job).substr(entry.job.find(':') + 1) == id;
}

JobState state_of_job(const std::vector<JournalEntry>& entries, std::string_view id) {
  JobState state{Life::dead, "no process of it runs"};
  std::set<std::string> assignments;
  add_assignments(id, assignments);
  std::set<std::pair<std::string, std::int64_t>> sessions;  ///< already judged
  for (const JournalEntry& entry : entries) {
    if (is_of_this_start(entry)) add_assignments(entry.job, assignments);
    if (is_of_submitting_shell(entry)) continue;
    if (!sessions.emplace(entry.host + '\0' + entry.boot, entry.session).second) continue;
    switch (job_of(entry)) {
      case Life::alive: return {Life::alive, fmt::format("a process of session {} runs", entry.session)};
      case Life::unknown:
        state = {Life::unknown, fmt::format("'{}' was redirected on '{}', and its processes cannot be seen from here",
                                            printable(entry.path), printable(entry.host))};
        break;
      case Life::dead: break;
    }
  }
  if (!assignments.empty())
    if (const int pid = process_with(assignments); pid != 0) return {Life::alive, fmt::format("process {} runs", pid)};
  return state;
}

bool is_in_job(const JournalEntry& entry) {
  if (!is_of_this_start(entry)) return false;
  return entry.job.empty() ? is_in_this_session(entry) : entry.job == job_in_environment();
}

}  // namespace iosig
