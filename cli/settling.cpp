#include "settling.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <semaphore>
#include <set>
#include <system_error>
#include <thread>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/drain_record.h"

namespace iosig::cli {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds quiet_wait{1000}, poll_interval{20};  ///< wait for another run before a message
constexpr std::chrono::milliseconds redraw_interval{100};
constexpr std::uint64_t long_copy_bytes = 64 * MiB;  ///< a larger copy, alone, shows progress
// Small files wait for the device most of the time, and the file system flushes many in one step. Large files use its
// bandwidth, and more of them at once would only seek.
constexpr std::size_t default_jobs = 64, max_large = 4;
constexpr std::uint64_t large_bytes = 1 * MiB;
constexpr std::size_t descriptors_per_job = 24, other_descriptors = 64;

std::uint64_t size_of(const JournalEntry& entry) {
  struct stat status {};
  const bool is_file = ::lstat(entry.destination.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? static_cast<std::uint64_t>(status.st_size) : 0;
}

/// Returns how many of `wanted` jobs there are descriptors for. Raises the soft limit as far as necessary.
std::size_t affordable_jobs(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t needed = wanted * descriptors_per_job + other_descriptors;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  }
  if (limit.rlim_cur >= needed) return wanted;
  return std::max<rlim_t>(
      1, limit.rlim_cur <= other_descriptors ? 1 : (limit.rlim_cur - other_descriptors) / descriptors_per_job);
}

class Settling {
 public:
  Settling(const std::vector<JournalEntry>& entries, const SettleOptions& options, unsigned jobs, Console& console,
           const std::function<void(const JournalEntry&, const Settled&)>& report)
      : entries_(entries),
        options_(options),
        jobs_(jobs),
        console_(console),
        report_(report),
        was_recorded_(entries.size()),
        own_(options) {
    own_.links = &links_;
    if (jobs_ != 1 && entries.size() > 1)
      for (const JournalEntry& entry : entries) sizes_.push_back(size_of(entry));
  }

  /// Another run may be settling some entries: these are tried again after all others.
  void run() {
    std::vector<std::size_t> all(entries_.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::size_t> busy = pass(all, IfBusy::skip);
    for (const auto begin = steady_clock::now(); !busy.empty() && steady_clock::now() - begin < quiet_wait;) {
      std::this_thread::sleep_for(poll_interval);
      busy = pass(busy, IfBusy::skip);
    }
    if (busy.empty()) return;
    console_.note(
        fmt::format("waiting for another run that settles {}", one_or_count(entries_[busy.front()].path, busy.size())));
    (void)pass(busy, IfBusy::wait);
  }

 private:
  /// Settles the entries with these indices. Returns those that are busy.
  std::vector<std::size_t> pass(const std::vector<std::size_t>& indices, IfBusy if_busy) {
    std::size_t jobs = std::min<std::size_t>(jobs_ == 0 ? default_jobs : jobs_, indices.size());
    if (jobs > 1) jobs = affordable_jobs(jobs);
    return jobs > 1 ? pass_in_parallel(indices, if_busy, jobs) : pass_alone(indices, if_busy);
  }

  std::vector<std::size_t> pass_alone(const std::vector<std::size_t>& indices, IfBusy if_busy) {
    std::vector<std::size_t> busy;
    for (const std::size_t index : indices) {
      const JournalEntry& entry = entries_[index];
      own_.copy.progress = [&](const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes) {
        if (total_bytes < long_copy_bytes) return;
        console_.progress({fmt::format("{} {}", doing, printable(entry.path)), static_cast<double>(done_bytes),
                           static_cast<double>(total_bytes)});
      };
      const auto settled = settle_one(index, if_busy, own_);
      console_.end_progress();
      if (settled)
        report_(entry, *settled);
      else
        busy.push_back(index);
    }
    return busy;
  }

  struct Slot {
    bool is_ready = false;
    std::optional<Settled> settled;  ///< none: busy
  };

  std::vector<std::size_t> pass_in_parallel(const std::vector<std::size_t>& indices, IfBusy if_busy, std::size_t jobs) {
    std::vector<Slot> slots(indices.size());
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<std::size_t> next = 0;
    std::atomic<std::uint64_t> done_bytes = 0;
    const auto work = [&] {
      KnownLinks links;
      SettleOptions options = options_;
      options.links = &links;
      for (std::size_t n; (n = next++) < indices.size();) {
        const std::uint64_t size = sizes_[indices[n]];
        const bool is_large = jobs_ == 0 && size > large_bytes;
        if (is_large) large_.acquire();
        std::uint64_t counted = 0;
        std::optional<Settled> settled;
        options.copy.progress = [&](const char* doing, std::uint64_t at, std::uint64_t) {
          if (std::string_view(doing) != "copying" || at <= counted || at > size) return;
          done_bytes += at - counted;
          counted = at;
        };
        try {
          settled = settle_one(indices[n], if_busy, options);
        } catch (const std::exception& error) {  // out of memory
          settled =
              Error{ErrorKind::system, fmt::format("'{}': {}", printable(entries_[indices[n]].path), error.what())};
        }
        done_bytes += size - counted;
        if (is_large) large_.release();
        {
          const std::lock_guard held(mutex);
          slots[n] = {true, std::move(settled)};
        }
        changed.notify_one();
      }
    };
    std::vector<std::jthread> workers;
    try {
      while (workers.size() < jobs) workers.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads available: the existing ones do all the work
    }
    if (workers.empty()) return pass_alone(indices, if_busy);
    std::uint64_t total_bytes = 0;
    for (const std::size_t index : indices) total_bytes += sizes_[index];
    std::vector<std::size_t> busy;
    std::unique_lock held(mutex);
    for (std::size_t n = 0; n < slots.size();) {
      if (!changed.wait_for(held, redraw_interval, [&] { return slots[n].is_ready; })) {
        held.unlock();
        show_progress(n, indices.size(), static_cast<double>(done_bytes), static_cast<double>(total_bytes));
        held.lock();
        continue;
      }
      const Slot slot = std::move(slots[n]);
      held.unlock();
      show_progress(n, indices.size(), static_cast<double>(done_bytes), static_cast<double>(total_bytes));
      if (slot.settled)
        report_(entries_[indices[n]], *slot.settled);
      else
        busy.push_back(indices[n]);
      ++n;
      held.lock();
    }
    console_.end_progress();
    return busy;
  }

  void show_progress(std::size_t done, std::size_t count, double done_bytes, double total_bytes) {
    const std::string what = "settling " + one_or_count(entries_.front().path, count);
    if (total_bytes > 0)
      console_.progress({what, done_bytes, total_bytes});
    else
      console_.progress({what, static_cast<double>(done), static_cast<double>(count), "redirects"});
  }

  /// Returns nothing if another run is settling the entry and `if_busy` is `skip`.
  std::optional<Settled> settle_one(std::size_t index, IfBusy if_busy, SettleOptions& options) {
    const JournalEntry& entry = entries_[index];
    Result<std::optional<Fd>> held = std::optional<Fd>(Fd{});
    if (is_recorded(entry.id)) was_recorded_[index] = true;
    if (!options.dry_run) held = lock_entry(entry.id, if_busy);
    if (!held) return held.error();
    if (!*held) return std::nullopt;
    if (!options.dry_run && !is_recorded(entry.id) && (was_recorded_[index] || entry.pid != 0))
      return SettledElsewhere{};
    // A drain that was killed may have begun a copy.
    const auto drain = options.dry_run ? std::nullopt : drain_record(entry.id);
    options.copy.partial = drain ? drain->copy : std::nullopt;
    auto settled = settle(entry, options);
    if (!settled) return std::move(settled.error());
    return *std::move(settled);
  }

  const std::vector<JournalEntry>& entries_;
  const SettleOptions& options_;
  const unsigned jobs_;
  Console& console_;
  const std::function<void(const JournalEntry&, const Settled&)>& report_;
  std::vector<std::uint64_t> sizes_;
  std::vector<char> was_recorded_;  ///< in the journal at some time; char: threads write to neighbours
  KnownLinks links_;                ///< of this thread
  SettleOptions own_;               ///< of this thread
  std::counting_semaphore<> large_{static_cast<std::ptrdiff_t>(max_large)};
};

}  // namespace

std::string one_or_count(const std::string& path, std::size_t count) {
  return count == 1 ? fmt::format("'{}'", printable(path)) : fmt::format("{} redirects", count);
}

void settle_each(const std::vector<JournalEntry>& entries, const SettleOptions& options, unsigned jobs,
                 Console& console, const std::function<void(const JournalEntry&, const Settled&)>& report) {
  Settling(entries, options, jobs, console, report).run();
}

}  // namespace iosig::cli
