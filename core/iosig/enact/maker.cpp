#include "iosig/enact/maker.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "iosig/base/files.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

std::int64_t seconds_since_start() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

/// Seconds between the machine's start and the process's, field 22 of its stat; nothing: no such process. The second
/// field, the command's name, may hold blanks and parentheses.
std::optional<std::int64_t> start_of(std::int64_t pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return {};
  std::size_t at = stat->rfind(')');
  if (at == std::string::npos) return {};
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat->find(' ', at + 1);
  if (at == std::string::npos) return {};
  return std::atoll(stat->c_str() + at) / ::sysconf(_SC_CLK_TCK);
}

/// Whether the entry can be judged here and now, and if not, what follows.
Life judge(const JournalEntry& entry, bool (*lives)(const JournalEntry&)) {
  if (entry.boot.empty() || boot_id().empty() || entry.host != host_name()) return Life::unknown;
  if (entry.boot != boot_id()) return Life::dead;
  return lives(entry) ? Life::alive : Life::dead;
}

bool session_lives(const JournalEntry& entry) {
  if (entry.session == 0) return true;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return true;
  while (const dirent* item = ::readdir(processes.get())) {
    const std::string_view name = item->d_name;
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{} &&
        ::getsid(pid) == entry.session)
      return true;
  }
  return false;
}

}  // namespace

void sign(JournalEntry& entry) {
  entry.pid = ::getpid();
  entry.session = ::getsid(0);
  entry.host = host_name();
  entry.boot = boot_id();
  entry.created_unix_s = std::time(nullptr);
  entry.created_boot_s = seconds_since_start();
}

bool process_lives(std::int64_t pid, std::int64_t boot_s) {
  if (pid <= 0 || (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)) return false;
  const auto start = start_of(pid);
  return !start || *start <= boot_s;  // /proc may be hidden from us
}

Life maker_of(const JournalEntry& entry) {
  return judge(entry, [](const JournalEntry& judged) { return process_lives(judged.pid, judged.created_boot_s); });
}

Life job_of(const JournalEntry& entry) { return judge(entry, session_lives); }

}  // namespace iosig
