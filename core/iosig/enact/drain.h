// Brings redirects home while their job still runs: a drain waits until the program has closed a file, copies it with
// the least priority and a limited rate, and puts it in its place as `settle` does.
//
// The job always wins. A file that is open, or changes while it is copied, stays where it is and is tried again when it
// has been quiet for a moment. A drain that is killed at any step leaves what a killed `finalize` leaves; the next
// drain or `finalize` starts again from the data.
//
//   linked, closed, quiet                     settled
//   linked, but open or changing              waits for the close (inotify; other nodes' closes by looking again)
//   never written                             waits for the program
//   temp, tamperproof, archive, a directory   waits for the end of the job
//   no room at home, not mounted              waits, looks again every 20 s; the record says why
//   orphan, replaced                          given up: the user must decide; the record says what
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/enact/drain_record.h"
#include "iosig/enact/settle.h"

namespace iosig {

/// Limits a rate: take() sleeps until the bytes taken so far fit the rate. Threads may share it.
class RateLimit {
 public:
  explicit RateLimit(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}  ///< 0: no limit
  void take(std::uint64_t bytes);

 private:
  const double bytes_per_s_;
  std::mutex mutex_;
  double free_from_s_ = 0;
};

struct DrainOptions {
  SettleOptions settle = {};
  std::string job = {};        ///< takes on what this job (enact/job.h) redirects later, too; empty: no
  bool after_job = false;      ///< waits for the end of each redirect's job
  double max_bytes_per_s = 0;  ///< 0: no limit
  double give_up_after_s = 0;  ///< ends then, with the data where they are; 0: never
};

class Drain {
 public:
  explicit Drain(DrainOptions options);

  /// Takes on a redirect: locks it against other drains and writes its record. False: another drain has it.
  [[nodiscard]] Result<bool> take(const JournalEntry& entry);
  /// Passes a line on each event to `log`.
  void log_to(std::function<void(std::string_view line)> log) { log_ = std::move(log); }
  /// Puts the process id into the records of what it has taken on. Call it in the process that calls run().
  void sign();
  /// Works until everything is settled or given up. Returns how many redirects it gave up.
  [[nodiscard]] std::size_t run();

 private:
  struct Item {
    JournalEntry entry;
    Fd lock;
    DrainRecord record;
    int watch = -1;                ///< of inotify, on the directory of the data; -1: none
    double due_s = 0, wait_s = 0;  ///< when it is tried next; how long the last wait was
    int failures = 0;              ///< in a row: system errors, and states that the user must resolve
    bool is_done = false;
  };
  void step(Item& item);
  void settle_now(Item& item);
  void wait(Item& item, double max_wait_s, std::string why);
  void give_up(Item& item, std::string why);
  void finish(Item& item, const std::string& text);
  void end_without_entry(Item& item);
  void tell(Item& item) const;
  void look_for_more();
  void watch(Item& item);
  void sleep_until_due();
  void log(const std::string& line) const;
  [[nodiscard]] bool must_wait_for_job(const JournalEntry& entry, const Survey& found) const;

  DrainOptions options_;
  std::function<void(std::string_view line)> log_;
  std::map<std::string, Item> items_;  ///< by id
  RateLimit limit_;
  Fd events_;
  std::vector<JournalEntry> of_job_;  ///< at most one: it leads to the processes of the job
  double looked_s_ = 0, began_s_ = 0, scanned_s_ = 0;
  std::size_t gave_up_ = 0;
};

}  // namespace iosig
