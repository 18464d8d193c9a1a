#include "iosig/prefetch/planner.h"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/base/room.h"
#include "iosig/prefetch/observer.h"
#include "iosig/prefetch/report.h"
#include "iosig/prefetch/requests.h"
#include "iosig/prefetch/stream.h"

namespace iosig::prefetch {

class Planner {
 public:
  explicit Planner(Observer& observer) : observer_(observer) {
    budget_.total_bytes = observer.settings_->max_bytes;
    budget_.quick_ns = observer.settings_->quick_ns;
    budget_.stream_bytes = std::min(budget_.stream_bytes, budget_.total_bytes);
  }

  void run() {
    while (!observer_.stops_) {
      take_all();
      tick();
      sleep();
    }
    streams_.clear();
    files_.clear();
    requests_.stop();
  }

 private:
  static constexpr std::uint64_t max_waiting = ReadQueue::capacity / 4;
  static constexpr std::int64_t slow_ns = 20'000;
  static constexpr std::size_t max_streams = 512, max_entries = 4096, reads_before_stream = 3;
  static constexpr std::uint32_t reads_of_refused = 1024;

  struct File {
    std::uint32_t number;
    int fd;
    std::uint64_t device, inode;
    std::shared_ptr<OwnFile> own = nullptr;
    std::string path = {};
    std::string note = {};  ///< of the predictor's maker
    bool is_refused = false;
    Counts counts = {};
    std::string_view why = {};
    bool was_prefetched = false;
  };
  using Key = std::uint64_t;  ///< file and thread
  struct Entry {
    std::vector<ReadEvent> first;  ///< until there is a stream
    std::unique_ptr<Stream> stream;
    bool is_behind = false;  ///< it must look ahead when all waiting reads are taken
  };
  static Key key_of(std::uint32_t file, std::uint32_t thread) { return std::uint64_t{file} << 32 | thread; }

  void take_all() {
    ReadEvent event;
    if (!observer_.queue_.pop(event)) return;
    wake_at_ = max_waiting;
    last_event_ns_ = clock_ns();
    do take(event);
    while (observer_.queue_.pop(event));
    // Of a program that reads several files in turns, the same one might else be the newest each time.
    for (const Key key : behind_) {
      const auto entry = streams_.find(key);
      if (entry == streams_.end()) continue;  // closed meanwhile
      entry->second.is_behind = false;
      if (entry->second.stream) entry->second.stream->look_ahead();
    }
    behind_.clear();
  }

  void take(const ReadEvent& event) {
    switch (event.kind) {
      case ReadEvent::Kind::opened:
        if (observer_.begins_at_first_read_) wake_at_ = 1;
        files_.emplace(event.file, File{.number = event.file,
                                        .fd = event.fd,
                                        .device = static_cast<std::uint64_t>(event.length),
                                        .inode = static_cast<std::uint64_t>(event.offset)});
        set_announced(event, true);
        return;
      case ReadEvent::Kind::closed: return take_close(event);
      case ReadEvent::Kind::read: return read(event);
      case ReadEvent::Kind::report: return report();
    }
  }

  void take_close(const ReadEvent& event) {
    if (event.length != 0) {  // a thread waits for it
      const auto file = files_.find(event.file);
      if (file != files_.end() && file->second.own)
        file->second.own->count_down_when_closed(observer_.awaited_closes_);
      else
        observer_.awaited_closes_.fetch_sub(1, std::memory_order_release);
    }
    close(event.file);
  }

  void read(const ReadEvent& event) {
    const auto file = files_.find(event.file);
    if (file == files_.end()) return set_announced(event, false);
    const Key key = key_of(event.file, event.thread);
    if (streams_.size() >= max_entries && !streams_.contains(key)) drop_entries_without_stream();
    Entry& entry = streams_[key];
    if (!entry.stream) {
      if (entry.first.size() < reads_before_stream && !observer_.begins_at_first_read_) {
        entry.first.push_back(event);
        if (event.took_before_ns > slow_ns) wake_at_ = 1;
        return;
      }
      if (!make_stream(file->second, entry)) {
        if (file->second.is_refused) leave_refused(event);
        return;
      }
    }
    const bool is_newest = observer_.queue_.size() == 0;
    entry.stream->observe(event, is_newest);
    if (!is_newest && !entry.is_behind) {
      entry.is_behind = true;
      behind_.push_back(key);
    }
    wake_at_ = std::min(wake_at_, entry.stream->slack());
    Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(event.fd)];
    if (slot.file.load(std::memory_order_relaxed) != event.file) return;
    slot.is_left_alone.store(entry.stream->is_left_alone() && entry.stream->slack() > 1, std::memory_order_relaxed);
    if (const std::uint32_t reads = entry.stream->reads_to_skip(); reads > 0) skip(event, reads);
  }

  /// Says whether the file of an open descriptor is known here. One that is read and is not known must be announced
  /// again: the event was lost in a full queue; or the file was taken for closed, as it was for a moment, unseen, or as
  /// its server did not answer.
  void set_announced(const ReadEvent& event, bool is_known) {
    Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(event.fd)];
    if (slot.file.load(std::memory_order_relaxed) != event.file) return;
    if (!is_known) slot.last_length.store(0, std::memory_order_relaxed);  // of long ago
    slot.is_announced.store(is_known, std::memory_order_relaxed);
  }

  void leave_refused(const ReadEvent& event) {
    Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(event.fd)];
    if (slot.file.load(std::memory_order_relaxed) == event.file)
      slot.is_left_alone.store(true, std::memory_order_relaxed);
    skip(event, reads_of_refused);
  }

  /// Lets the next `reads` of the descriptor pass unobserved.
  void skip(const ReadEvent& event, std::uint32_t reads) {
    Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(event.fd)];
    if (slot.file.load(std::memory_order_relaxed) != event.file) return;
    slot.unchecked.store(0, std::memory_order_relaxed);
    slot.skip.store(reads, std::memory_order_relaxed);
  }

  bool make_stream(File& file, Entry& entry) {
    if (file.is_refused) return false;
    if (alive_ >= max_streams && !end_idle_stream()) {
      file.why = "too many streams at once";
      return false;
    }
    if (!file.own) {
      if (!OwnFile::is_stored(file.fd)) {
        file.is_refused = true;
        file.why = "the kernel makes it when it is read";
        return false;
      }
      Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(file.fd)];
      if (OwnFile::keeps_unlinked_name(file.fd)) {
        slot.is_awaited.store(true);
        if (slot.file.load() != file.number) {  // the program closes it, and may not have seen that it must wait
          file.why = "too few reads";
          return false;
        }
      }
      file.own = OwnFile::open(file.fd, file.device, file.inode);
      file.is_refused = !file.own;
      if (file.is_refused) {
        file.why = "it may not be opened again";
        return false;
      }
      file.path = file.own->path();
    }
    MadePredictor made = observer_.settings_->make_predictor(file.path);
    file.note = std::move(made.note);
    if (!made.predictor) {
      file.is_refused = true;
      file.why = "there is no predictor";
      return false;
    }
    if (memory_asked_ns_ == 0) ask_memory(clock_ns());
    entry.stream = std::make_unique<Stream>(file.own, std::move(made.predictor), requests_, budget_);
    ++alive_;
    for (const ReadEvent& event : entry.first) entry.stream->observe(event, false);
    entry.first = {};
    return true;
  }

  void end_stream(File& file, Entry& entry) {
    if (!entry.stream) {
      for (const ReadEvent& event : entry.first) {
        ++file.counts.reads;
        file.counts.read_bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(event.length, 0));
      }
      if (file.why.empty()) file.why = "too few reads";
      return;
    }
    add(file, *entry.stream);
    const Counts before = entry.stream->counts();
    entry.stream->give_up();
    file.counts.wasted_bytes += entry.stream->counts().wasted_bytes - before.wasted_bytes;
    entry.stream.reset();
    --alive_;
  }
  /// Of a program that starts a thread for each request, each thread reads a few times only.
  void drop_entries_without_stream() {
    for (auto each = streams_.begin(); each != streams_.end();) {
      if (each->second.stream) {
        ++each;
        continue;
      }
      end_stream(files_.find(static_cast<std::uint32_t>(each->first >> 32))->second, each->second);
      each = streams_.erase(each);
    }
  }

  /// Ends the stream that was not read for the longest time, if that is a second at least. false: there is none.
  bool end_idle_stream() {
    constexpr std::int64_t idle_ns = 1'000'000'000, looked_ns = 10'000'000;
    const std::int64_t now = clock_ns();
    if (now - idle_asked_ns_ < looked_ns) return false;
    const auto last_read_ns = [](const Entry& entry) {
      return entry.stream ? entry.stream->last_read_ns() : INT64_MAX;
    };
    const auto oldest =
        std::ranges::min_element(streams_, {}, [&](const auto& each) { return last_read_ns(each.second); });
    if (oldest == streams_.end() || now - last_read_ns(oldest->second) < idle_ns) {
      idle_asked_ns_ = now;
      return false;
    }
    const auto number = static_cast<std::uint32_t>(oldest->first >> 32);
    const auto file = files_.find(number);
    end_stream(file->second, oldest->second);
    streams_.erase(oldest);
    const auto next = streams_.lower_bound(key_of(number, 0));
    if (next == streams_.end() || next->first >> 32 != number) file->second.own.reset();
    return true;
  }

  static void add(File& file, const Stream& stream) {
    file.counts += stream.counts();
    file.was_prefetched = file.was_prefetched || stream.was_prefetched();
    file.why = stream.why_left_alone();
  }

  void close(std::uint32_t number) {
    const auto file = files_.find(number);
    if (file == files_.end()) return;
    const auto begin = streams_.lower_bound(key_of(number, 0)), end = streams_.upper_bound(key_of(number, ~0U));
    for (auto each = begin; each != end; ++each) end_stream(file->second, each->second);
    streams_.erase(begin, end);
    report_.add(summary_of(file->second));
    files_.erase(file);
  }

  static FileSummary summary_of(const File& file) {
    return {file.path, file.counts, std::string(file.why), file.was_prefetched, file.note};
  }

  void report() {
    Report now = report_;
    for (const auto& [number, file] : files_) {
      File copy = file;
      for (auto each = streams_.lower_bound(key_of(number, 0)); each != streams_.end() && each->first >> 32 == number;
           ++each)
        if (each->second.stream) add(copy, *each->second.stream);
      now.add(summary_of(copy));
    }
    const std::string text = now.text();
    const std::size_t bytes = std::min(text.size(), observer_.report_.size());
    std::copy_n(text.begin(), bytes, observer_.report_.begin());
    observer_.report_bytes_ = bytes;
    observer_.reported_counts_ = now.total();
    observer_.is_report_of_note_ = now.is_of_note();
    observer_.reported_ = true;
  }

  void ask_memory(std::int64_t now) {
    constexpr std::int64_t least_room = 32 << 20;
    memory_asked_ns_ = now;
    budget_.is_wanted = false;
    const auto room = memory_room_bytes();
    const auto most = room ? static_cast<std::int64_t>(std::min<std::uint64_t>(*room, INT64_MAX)) : INT64_MAX;
    budget_.total_bytes = most < least_room ? 0 : std::min(observer_.settings_->max_bytes, most / 8);
  }

  /// Does the periodic work: limits the budget to the free memory, and finds files whose close was not seen.
  void tick() {
    constexpr std::int64_t memory_ns = 100'000'000, closed_ns = 1'000'000'000;
    const std::int64_t now = clock_ns();
    if (budget_.is_wanted && now - memory_asked_ns_ > memory_ns) ask_memory(now);
    if (now - closed_asked_ns_ < closed_ns) return;
    closed_asked_ns_ = now;
    std::vector<std::uint32_t> gone;
    for (const auto& [number, file] : files_) {
      const Observer::Slot& slot = observer_.slots_[static_cast<unsigned>(file.fd)];
      const bool is_elsewhere = slot.file.load(std::memory_order_relaxed) != number;  // its last event was lost
      if (is_elsewhere || (file.own && !OwnFile::is_behind(file.fd, file.device, file.inode))) gone.push_back(number);
    }
    for (const std::uint32_t number : gone) close(number);
  }

  void sleep() {
    observer_.wake_at_.store(wake_at_, std::memory_order_relaxed);
    observer_.sleeping_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t waiting = observer_.queue_.size();
    if (waiting >= wake_at_ || observer_.stops_) {
      observer_.sleeping_.store(0, std::memory_order_relaxed);
      return;
    }
    // Events for which it is not woken are seen a little later, and files that were closed unseen in a second. A
    // program that reads nothing is not disturbed.
    const timespec soon{0, 10'000'000}, later{1, 0};
    const bool may_wait = waiting > 0 || (wake_at_ > 1 && clock_ns() - last_event_ns_ < 100'000'000);
    const timespec* const limit = may_wait ? &soon : alive_ > 0 ? &later : nullptr;
    (void)::syscall(SYS_futex, &observer_.sleeping_, FUTEX_WAIT_PRIVATE, 1, limit, nullptr, 0);
    observer_.sleeping_.store(0, std::memory_order_relaxed);
  }

  Observer& observer_;
  Requests requests_;
  Budget budget_;
  std::unordered_map<std::uint32_t, File> files_;
  std::map<Key, Entry> streams_;
  std::vector<Key> behind_;
  std::size_t alive_ = 0;
  Report report_;
  std::uint64_t wake_at_ = 1;
  std::int64_t last_event_ns_ = 0, memory_asked_ns_ = 0, closed_asked_ns_ = 0, idle_asked_ns_ = 0;
  friend void run_planner(Observer& observer);
};

void run_planner(Observer& observer) {
  ::prctl(PR_SET_NAME, "iosig-prefetch");
  if (!leave_descriptor_table()) {
    observer.state_ = Observer::State::refused;
    return;
  }
  if (observer.settings_->thread_started != nullptr) observer.settings_->thread_started();
  observer.state_ = Observer::State::running;
  try {
    Planner planner(observer);
    planner.run();
  } catch (const std::bad_alloc&) {
    observer.state_ = Observer::State::refused;  // the program goes on without
  }
  observer.stops_ = false;
}

}  // namespace iosig::prefetch
