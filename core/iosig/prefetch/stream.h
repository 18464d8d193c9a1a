// One stream: a file as one thread of the program reads it. Decides what is prefetched for it, when, and whether at
// all.
//
// It is left alone where prefetching does not pay: the kernel's readahead serves it (sequential), its reads find their
// data in memory, or no pattern is known. It is looked at again later, and at once when its reads become slow.
//
// Depth, just in time: a request must begin its latency before the read, so latency / time between reads + 1/2 requests
// are kept ahead, rounded up, and while requests that were made so early come late, up to half as many more: what is
// ahead when a phase ends is wasted. Until a pattern has proved itself the depth grows by two with each read that came
// as expected; of a stream whose reads are known it begins with 16.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "iosig/decide/predictor.h"
#include "iosig/prefetch/counts.h"
#include "iosig/prefetch/read_queue.h"
#include "iosig/prefetch/requests.h"

namespace iosig::prefetch {

/// The limits that all streams share. Bytes are those that were requested and that the program has not read yet.
struct Budget {
  std::int64_t stream_bytes = 16 << 20;  ///< limit for each stream
  std::int64_t total_bytes = 64 << 20;   ///< limit for all; 0: there is too little memory
  std::int64_t used_bytes = 0;
  bool is_wanted = false;          ///< a stream wanted to prefetch since this was set to false
  std::int64_t quick_ns = 10'000;  ///< reads below this time, plus 1 ns a byte, find their data in memory; 0: none does
};

/// The share of the last reads for which something holds: of all, while they are few; later, of about the last 16.
class RecentShare {
 public:
  void add(bool holds) {
    count_ = count_ < 16 ? count_ + 1 : 16;
    share_ += ((holds ? 1 : 0) - share_) / count_;
  }
  [[nodiscard]] bool is_above(double limit) const { return count_ >= 3 && share_ > limit; }
  [[nodiscard]] bool is_below(double limit) const { return count_ >= 3 && share_ < limit; }

 private:
  double share_ = 0;
  int count_ = 0;
};

class Stream {
 public:
  static constexpr std::size_t max_depth = 64;

  Stream(std::shared_ptr<OwnFile> file, std::unique_ptr<ReadPredictor> predictor, Requests& requests, Budget& budget);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Gives up what is ahead.
  ~Stream();

  /// Takes a read that the program has begun, and adds requests for those that are expected to follow. `is_newest`
  /// false: more reads wait to be taken, perhaps of this stream, and it is too late to foresee them. When all are
  /// taken, look_ahead() adds the requests.
  void observe(const ReadEvent& event, bool is_newest = true);
  void look_ahead() {
    if (why_.empty()) refill();
  }

  /// Cancels what is ahead; requests that have begun count as wasted.
  void give_up() { drop_all(); }

  /// How many of the next reads need not be observed; 0: all are.
  [[nodiscard]] std::uint32_t reads_to_skip();
  /// How many reads the planner may let pass before it must look at this stream again; at least 1.
  [[nodiscard]] std::uint64_t slack() const;

  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Why it is left alone; empty while it is prefetched.
  [[nodiscard]] std::string_view why_left_alone() const { return why_; }
  /// Whether it has been left alone for a while.
  [[nodiscard]] bool is_left_alone() const { return !why_.empty() && counts_.reads > 32; }
  [[nodiscard]] bool was_prefetched() const { return was_prefetched_; }
  [[nodiscard]] std::int64_t last_read_ns() const { return last_start_ns_; }

 private:
  /// An expected read. `pieces` is empty if requests before it cover it.
  struct Ahead {
    FileRead read;
    std::size_t distance;  ///< how many reads ahead it was requested
    std::deque<std::shared_ptr<Request>> pieces;
  };
  void take_times(const ReadEvent& event);
  void match(const FileRead& read, std::int64_t start_ns);
  void drop(Ahead& given_up);
  void drop_all();
  void judge();
  void refill();
  [[nodiscard]] std::size_t depth_in_time() const;
  [[nodiscard]] std::size_t wanted_depth() const;
  [[nodiscard]] bool is_quick(std::int64_t took_ns) const;

  std::shared_ptr<OwnFile> file_;
  std::unique_ptr<ReadPredictor> predictor_;
  Requests& requests_;
  Budget& budget_;
  std::deque<Ahead> ahead_;
  std::int64_t ahead_bytes_ = 0;
  Counts counts_;
  std::string_view why_ = "too few reads";
  bool was_prefetched_ = false;
  bool is_known_;  ///< the predictor knows the reads before the first of them

  std::int64_t last_start_ns_ = 0, last_end_ = -1, last_length_ = 0;
  bool was_expected_ = false;  ///< the last read was prefetched
  bool was_quick_ = false, was_sequential_ = true;
  double think_ns_ = 0;    ///< between the program's reads, without their waiting; 0: unknown
  double latency_ns_ = 0;  ///< of requests; 0: unknown
  RecentShare sequential_;
  RecentShare quick_;                ///< of the reads that were not prefetched
  RecentShare cached_;               ///< of the requests: the data were in memory
  std::optional<FileRead> next_;     ///< the read that is expected now
  std::optional<FileRead> matched_;  ///< the expected read that the last one was, or was a part of
  std::uint32_t right_in_row_ = 0, streak_ = 0, extra_depth_ = 0, useful_in_row_ = 0, observed_ = 0,
                skipped_rounds_ = 0;
  std::int64_t file_size_ = 0;
  std::uint32_t size_age_ = 0;
};

}  // namespace iosig::prefetch
