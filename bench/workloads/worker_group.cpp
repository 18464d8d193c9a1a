#include "worker_group.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "iosig/base/text.h"

namespace iosig::workloads {
namespace {

std::atomic<int> caught = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // a signal handler writes it

// mpirun and timeout send one ^C twice; a person who presses again means it.
void notice(int signal) {
  static std::atomic<std::time_t> first = 0;
  if (caught == 0) {
    first = std::time(nullptr);
    caught = signal;
  } else if (std::time(nullptr) > first + 1) {
    (void)std::signal(signal, SIG_DFL);
    (void)std::raise(signal);
  }
}

}  // namespace

std::string Job::path(std::uint32_t rank) const {
  return plan.is_one_file ? target : fmt::format("{}.{}", target, rank);
}

void WorkerGroup::remove_made() {
  for (const std::string& path : made_) ::unlink(path.c_str());
  made_.clear();
}

Result<void> WorkerGroup::make(const std::string& path, bool force) {
  auto created = create_file(path, force);
  if (created) made_.push_back(path);
  return created;
}

Error named(Error error, const std::string& path) {
  const std::string name = fmt::format("'{}'", printable(path));
  if (error.message.find(name) == std::string::npos) error.message = fmt::format("{}: {}", name, error.message);
  return error;
}

Result<Tally> perform_opened(const Job& job, Phase phase, std::uint32_t rank, Result<std::unique_ptr<File>> file,
                             const std::function<bool()>& is_stopped) {
  if (!file) return pass_on(file.error());
  auto tally = perform(job.plan, phase, rank, **file, is_stopped);
  if (!tally) return pass_on(named(tally.error(), job.path(rank)));
  if (phase == Phase::write && job.sync)
    if (const auto synced = (*file)->sync(); !synced) return pass_on(synced.error());
  return tally;
}

int interruption() {
  static const bool is_arranged = [] {
    struct sigaction action {};
    action.sa_handler = notice;
    for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
    return true;
  }();
  return is_arranged ? caught.load() : 0;
}

}  // namespace iosig::workloads
