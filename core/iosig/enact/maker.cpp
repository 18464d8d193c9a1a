#include "iosig/enact/maker.h"

#include <ctime>

#include "iosig/base/machine.h"
#include "iosig/enact/batch_job.h"

namespace iosig {
namespace {

std::int64_t seconds_since_start() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

/// Whether the machine has been rebooted since. Two containers on two machines may have the same host name, so only the
/// machine's own host name identifies it.
bool is_of_earlier_start(const JournalEntry& entry) {
  return !entry.boot.empty() && !boot_id().empty() && entry.boot != boot_id() && entry.host == host_name() &&
         entry.has_machines_host_name && has_machines_host_name();
}

template <class Id>
Life judge(const JournalEntry& entry, const Id& id) {
  if (is_of_this_start(entry)) return life_of(id);
  return is_of_earlier_start(entry) ? Life::dead : Life::unknown;
}

}  // namespace

bool is_of_this_start(const JournalEntry& entry) {
  return !entry.boot.empty() && entry.boot == boot_id() && entry.host == host_name();
}

void sign(JournalEntry& entry) {
  const ProcessId process = this_process();
  const SessionId session = this_session();
  entry.pid = process.pid;
  entry.start_ticks = process.start_ticks;
  entry.pid_namespace = process.pid_namespace;
  entry.session = session.session;
  entry.session_start_ticks = session.start_ticks;
  entry.host = host_name();
  entry.has_machines_host_name = has_machines_host_name();
  entry.boot = boot_id();
  entry.created_unix_s = std::time(nullptr);
  entry.created_boot_s = seconds_since_start();
  entry.job = job_in_environment();
}

Life maker_of(const JournalEntry& entry) {
  return judge(entry, ProcessId{entry.pid, entry.start_ticks, entry.pid_namespace});
}

Life job_of(const JournalEntry& entry) {
  return judge(entry, SessionId{entry.session, entry.session_start_ticks, entry.pid_namespace});
}

bool may_be_at_work(const JournalEntry& entry) {
  const Life life = maker_of(entry);
  return life == Life::alive ||
         (life == Life::unknown && entry.by == RedirectedBy::runtime && entry.pid_namespace && is_of_this_start(entry));
}

}  // namespace iosig
