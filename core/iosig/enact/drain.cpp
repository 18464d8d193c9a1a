#include "iosig/enact/drain.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <thread>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/enact/agreement.h"
#include "iosig/enact/job.h"
#include "iosig/enact/seal.h"

namespace iosig {
namespace {

using Phase = DrainRecord::Phase;

constexpr double quiet_s = 0.5;                      ///< a file must have been unchanged so long
constexpr double first_wait_s = 0.25;                ///< doubled at each wait, up to:
constexpr double max_wait_s = 5;                     ///< for the program or the job
constexpr double max_trouble_wait_s = 20;            ///< for room, a mount, a file that keeps changing
constexpr double tell_interval_s = 1;                ///< between records while copying
constexpr double rate_credit_s = 0.5;                ///< time spent on work between copies counts up to so long
constexpr double scan_interval_s = 1;                ///< between scans of /proc; leases see what they miss
constexpr double look_interval_s = 2;                ///< between looks for new redirects of the job
constexpr int max_failures = 10, max_undecided = 4;  ///< in a row, before a redirect is given up

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool is_recent(const timespec& time) {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  const double age_s =
      static_cast<double>(now.tv_sec - time.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - time.tv_nsec);
  return age_s >= 0 && age_s < quiet_s;  // a time to come was set by a program
}

/// Whether the data or a companion changed a moment ago.
bool is_changing(const Destination& destination) {
  const int directory = destination.data.directory.get();
  const auto changed = [&](const std::string& name) {
    struct stat status {};
    return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (is_recent(status.st_mtim) || is_recent(status.st_ctim));
  };
  return changed(destination.data.name) ||
         std::ranges::any_of(destination.companions, [&](const Companion& each) { return changed(each.name); });
}

}  // namespace

void RateLimit::take(std::uint64_t bytes) {
  if (bytes_per_s_ <= 0) return;
  double wait_s = 0;
  {
    const std::lock_guard held(mutex_);
    const double now = now_s();
    if (free_from_s_ == 0) free_from_s_ = now;
    free_from_s_ = std::max(free_from_s_, now - rate_credit_s) + static_cast<double>(bytes) / bytes_per_s_;
    wait_s = free_from_s_ - now;
  }
  if (wait_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
}

Drain::Drain(DrainOptions options)
    : options_(std::move(options)),
      limit_(options_.max_bytes_per_s),
      events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      began_s_(now_s()) {
  options_.settle.links = nullptr;  // links change while it runs
  options_.settle.force = options_.settle.drop_orphans = options_.settle.dry_run = false;
  options_.settle.copy.is_gentle = true;
  options_.settle.copy.pace = [this](std::uint64_t bytes) { limit_.take(bytes); };
}

Result<bool> Drain::take(const JournalEntry& entry) {
  if (items_.contains(entry.id)) return true;
  auto lock = lock_entry(entry.id, IfBusy::skip, LockFor::draining);
  if (!lock) return pass_on(lock.error());
  if (!*lock) return false;
  Item item;
  item.entry = entry;
  item.lock = *std::move(*lock);
  item.record = {Phase::waiting, "its turn has not come yet", ::getpid(), host_name(), std::time(nullptr), 0, 0, 0};
  if (const auto killed = drain_record(entry.id)) item.record.copy = killed->copy;
  if (auto written = write_drain_record(entry.id, item.record); !written) return pass_on(written.error());
  items_.emplace(entry.id, std::move(item));
  if (of_job_.empty() && is_of_job(entry, options_.job)) of_job_.push_back(entry);
  return true;
}

void Drain::sign() {
  for (auto& [id, item] : items_) {
    item.record.pid = ::getpid();
    tell(item);
  }
}

void Drain::log(const std::string& line) const {
  if (log_) log_(line);
}

/// A record that cannot be written (full disk) does not keep the data from coming home.
void Drain::tell(Item& item) const { (void)write_drain_record(item.entry.id, item.record); }

void Drain::finish(Item& item, const std::string& text) {
  log(text);
  remove_drain_record(item.entry.id);
  item.is_done = true;
}

void Drain::give_up(Item& item, std::string why) {
  log(why);
  item.record.phase = Phase::gave_up;
  item.record.message = std::move(why);
  tell(item);
  item.is_done = true;
  ++gave_up_;
}

void Drain::end_without_entry(Item& item) {
  if (is_settled(item.entry.id))
    return finish(item, fmt::format("'{}': settled by another run", printable(item.entry.path)));
  wait(item, max_trouble_wait_s, "its journal entry cannot be read; the file system of the journal may not be mounted");
}

void Drain::wait(Item& item, double longest_s, std::string why) {
  item.wait_s = std::clamp(2 * item.wait_s, first_wait_s, longest_s);
  item.due_s = now_s() + item.wait_s;
  if (item.record.phase == Phase::waiting && item.record.message == why) return;
  item.record.phase = Phase::waiting;
  item.record.message = std::move(why);
  log(fmt::format("'{}': waiting: {}", printable(item.entry.path), item.record.message));
  tell(item);
}

/// The directory of the data may not exist yet, or again: another look adds the watch then.
void Drain::watch(Item& item) {
  if (!events_ || item.watch >= 0 || item.entry.kind != RedirectKind::link) return;
  const std::string directory = item.entry.destination.substr(0, item.entry.destination.rfind('/'));
  item.watch = ::inotify_add_watch(events_.get(), directory.c_str(),
                                   IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW);
}

bool Drain::must_wait_for_job(const JournalEntry& entry, const Survey& found) const {
  const bool is_temp = entry.signature.lifetime == Lifetime::temp && !options_.settle.keep_temp;
  const bool stays =
      found.destination && entry.kind == RedirectKind::link && stays_sealed(found.destination->data, entry.signature);
  // A program on another node may have the data open, and nothing here shows it.
  const bool has_hidden_users = found.destination && is_seen_by_nodes(found.destination->data.directory);
  return options_.after_job || is_temp || stays || has_hidden_users || entry.kind == RedirectKind::directory;
}

/// Example: `out`, prepared, is written in two rounds. Between them it is closed for a second: the drain copies it; the
/// program opens it again through the link before the exchange, so settling refuses, and the drain waits. After the
/// last close the file is quiet, and comes home.
///
/// 1. Settled by another run: done.
/// 2. Not before the end of the job, where that is required.
/// 3. Not before it was written, while it is open, or in the half second after a change.
/// 4. Settle.
void Drain::step(Item& item) {
  const auto recorded = recorded_entry(item.entry.id);
  if (!recorded && item.entry.pid != 0) return end_without_entry(item);
  if (recorded) item.entry = *recorded;
  watch(item);
  const Survey found = survey(item.entry);
  if (must_wait_for_job(item.entry, found))
    if (const JobState job = state_of_job({item.entry}, options_.job); job.life != Life::dead)
      return wait(item, max_wait_s,
                  job.life == Life::alive ? "its job runs: " + job.why
                                          : "it cannot be told whether its job has ended: " + job.why);
  if (found.state == RedirectState::empty && item.entry.kind == RedirectKind::link &&
      (item.entry.by == RedirectedBy::prepare || state_of_job({item.entry}, options_.job).life != Life::dead))
    return wait(item, max_wait_s, "the program has not written it yet");
  if (found.state == RedirectState::linked) {
    if (is_in_use(*found.destination)) return wait(item, max_wait_s, "a program has it open");
    if (is_changing(*found.destination)) {
      item.due_s = now_s() + quiet_s;
      return;
    }
  }
  settle_now(item);
}

void Drain::settle_now(Item& item) {
  const auto joined = join_journal();
  if (!joined) return wait(item, max_trouble_wait_s, joined.error().message);
  const auto held = lock_entry(item.entry.id, IfBusy::skip);
  if (held && !*held) return wait(item, max_wait_s, "another run settles it");
  // It may have been settled since step() looked: then `gone` must not be taken for a settlement of ours.
  if (item.entry.pid != 0 && !is_recorded(item.entry.id)) return end_without_entry(item);
  options_.settle.copy.partial = item.record.copy;
  options_.settle.copy.begun = [&](const PartialCopy& copy) {
    item.record.copy = copy;
    tell(item);
  };
  const double begin_s = now_s();
  double told_s = begin_s;
  options_.settle.copy.progress = [&](const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes) {
    const double at_s = now_s();
    if (at_s - told_s < tell_interval_s) return;
    told_s = at_s;
    item.record.phase = Phase::copying;
    item.record.message = doing;
    item.record.done_bytes = done_bytes;
    item.record.total_bytes = total_bytes;
    item.record.bytes_per_s = static_cast<double>(done_bytes) / (at_s - begin_s);
    tell(item);
  };
  if (begin_s - scanned_s_ > scan_interval_s) {
    options_.settle.open_files = open_redirected_files();
    scanned_s_ = begin_s;
  }
  const auto settled = settle(item.entry, options_.settle);
  if (settled) return finish(item, settled->text);
  const Error& error = settled.error();
  item.record.copy.reset();  // a run that is refused removes its copy
  const RedirectState state = survey(item.entry).state;
  const bool is_undecided = state == RedirectState::orphan || state == RedirectState::replaced;
  item.failures = is_undecided || error.kind != ErrorKind::infeasible ? item.failures + 1 : 0;
  if (item.failures >= (is_undecided ? max_undecided : max_failures)) return give_up(item, error.message);
  wait(item, max_trouble_wait_s, error.message);
}

void Drain::look_for_more() {
  if (options_.job.empty() || now_s() - looked_s_ < look_interval_s) return;
  looked_s_ = now_s();
  const auto journal = read_journal();
  if (!journal) return;
  for (const JournalEntry& entry : journal->entries) {
    if (!is_of_job(entry, options_.job) || items_.contains(entry.id)) continue;
    if (const auto taken = take(entry); taken && *taken) log(fmt::format("'{}': taken on", printable(entry.path)));
  }
}

void Drain::sleep_until_due() {
  double due_s = options_.job.empty() ? now_s() + max_trouble_wait_s : looked_s_ + look_interval_s;
  for (const auto& [id, item] : items_)
    if (!item.is_done) due_s = std::min(due_s, item.due_s);
  pollfd closed{events_.get(), POLLIN, 0};
  const auto wait_ms = static_cast<int>(1000 * std::max(0.0, due_s - now_s())) + 1;
  if (::poll(&closed, 1, wait_ms) <= 0) return;
  alignas(inotify_event) std::array<char, 16384> space{};
  for (ssize_t got; (got = ::read(events_.get(), space.data(), space.size())) > 0;)
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(space.data() + at);
      at += static_cast<ssize_t>(sizeof *event + event->len);
      for (auto& [id, item] : items_) {
        if ((event->mask & IN_Q_OVERFLOW) == 0 && item.watch != event->wd) continue;
        if ((event->mask & IN_IGNORED) != 0) item.watch = -1;
        item.wait_s = 0;
        item.due_s = std::min(item.due_s, now_s() + quiet_s);
      }
    }
}

std::size_t Drain::run() {
  for (;;) {
    look_for_more();
    const bool is_late = options_.give_up_after_s > 0 && now_s() - began_s_ > options_.give_up_after_s;
    bool has_work = false;
    for (auto& [id, item] : items_) {
      if (item.is_done) continue;
      if (is_late)
        give_up(item, fmt::format("'{}': the drain's time is up; its data stay where they are: {}",
                                  printable(item.entry.path), item.record.message));
      else if (item.due_s <= now_s())
        step(item);
      if (item.is_done) item.lock = Fd{};
      has_work = has_work || !item.is_done;
    }
    // Its job may redirect more while it runs.
    if (!has_work && (is_late || options_.job.empty() || state_of_job(of_job_, options_.job).life != Life::alive))
      return gave_up_;
    sleep_until_due();
  }
}

}  // namespace iosig
