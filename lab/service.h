// What the lab's slow programs share: their `key=number` arguments, and when a request to a device ends.
#pragma once

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lab {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// Reads `key=number` arguments; each of `keys` must be there once, and nothing else. Says what is wrong and exits with
/// status 2, for both programs are called by a script.
inline std::map<std::string, std::uint64_t> numbers(const std::vector<std::string>& arguments,
                                                    const std::vector<std::string>& keys) {
  std::map<std::string, std::uint64_t> found;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    std::uint64_t number = 0;
    const char *begin = argument.data() + std::min(equals, argument.size() - 1) + 1,
               *end = argument.data() + argument.size();
    const auto [stop, failure] = std::from_chars(begin, end, number);
    if (std::ranges::find(keys, key) == keys.end() || equals == std::string::npos || failure != std::errc{} ||
        stop != end || !found.emplace(key, number).second) {
      std::fprintf(stderr, "lab: '%s': expected KEY=NUMBER, once for each of:", argument.c_str());
      for (const std::string& wanted : keys) std::fprintf(stderr, " %s", wanted.c_str());
      std::fprintf(stderr, "\n");
      std::exit(2);
    }
  }
  for (const std::string& key : keys)
    if (!found.contains(key)) {
      std::fprintf(stderr, "lab: %s=NUMBER is missing\n", key.c_str());
      std::exit(2);
    }
  return found;
}

/// A device waits for no processor: this thread, and those it starts, come before ordinary programs (where root may
/// ask for that), and their sleeps end on time (the kernel adds 50 us otherwise).
inline void be_punctual() {
  const sched_param first{.sched_priority = 1};
  (void)::sched_setscheduler(0, SCHED_RR, &first);
  (void)::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

/// The wire that all requests share: one transfer after the other.
class Bus {
 public:
  /// The end of a transfer of `bytes` that could begin at `ready`. A bandwidth of 0 is no limit.
  Time transfer(Time ready, std::uint64_t bytes, std::uint64_t bytes_per_s) {
    using Seconds = std::chrono::duration<double>;
    const Seconds time(bytes_per_s == 0 ? 0. : static_cast<double>(bytes) / static_cast<double>(bytes_per_s));
    return free_ = std::max(ready, free_) + std::chrono::duration_cast<Clock::duration>(time);
  }
  [[nodiscard]] Time free() const { return free_; }

 private:
  Time free_{};
};

struct DiskModel {
  std::uint64_t read_bytes_per_s = 0, write_bytes_per_s = 0;
  std::chrono::microseconds latency{}, seek{};
  std::size_t channels = 1;
};

/// A disk: `channels` requests are worked on at a time, each takes the latency, then its place on the bus. Where there
/// is a seek time there is one arm: a request that does not begin near the end of the last one waits for the bus to
/// fall silent, then moves the arm.
///
/// End times follow from end times, not from when somebody woke up, so errors do not add up.
class Disk {
 public:
  explicit Disk(const DiskModel& model) : model_(model), channels_(std::max<std::size_t>(model.channels, 1)) {}

  /// The end of a request that arrives at `now`. Call in order of arrival.
  Time serve(Time now, std::uint64_t offset, std::uint64_t bytes, bool is_write) {
    const auto channel = std::ranges::min_element(channels_);
    Time ready = std::max(now, *channel) + model_.latency;
    const std::uint64_t distance = offset > head_ ? offset - head_ : head_ - offset;
    if (distance > near_bytes && model_.seek.count() > 0) ready = std::max(ready, bus_.free()) + model_.seek;
    head_ = offset + bytes;
    return *channel = bus_.transfer(ready, bytes, is_write ? model_.write_bytes_per_s : model_.read_bytes_per_s);
  }

 private:
  /// Track buffer and command queueing: what arrives slightly out of order costs no seek.
  static constexpr std::uint64_t near_bytes = 2u << 20;

  DiskModel model_;
  std::vector<Time> channels_;
  Bus bus_;
  std::uint64_t head_ = 0;
};

}  // namespace lab
