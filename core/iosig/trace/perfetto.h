// Accesses as a trace of Perfetto (https://ui.perfetto.dev): its protobuf `Trace`, of which only the fields below are
// written. One pass over accesses in the order of their starts.
//
// Tracks: a process for each process ("rank 3, solver, node1"), in it its threads, in each of these a track for each
// layer. A call is a slice there; calls of one layer and thread that overlap without being parent and child (io_uring,
// kernel AIO) have further tracks, "posix 2" and so on. Arrows (flows) lead from a call to those below it that are on
// other tracks: to the first max_arrows of them. Arguments: path, second_path, fd, offset, length, result, if the call
// has them. A call that had not returned is a slice without end; one that ended by longjmp(3) is an instant.
//
// Perfetto takes pids and tids for unique: a process or thread whose number is already taken gets one above the
// system's greatest; names have the real one. Times are nanoseconds since the start of the trace; a clock snapshot says
// when that was.
//
// Memory: a name and a few numbers for each path and thread, and the calls that are in flight at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace {

class PerfettoWriter {
 public:
  static constexpr std::size_t max_arrows = 1000;

  /// `started_ns`: of the trace, since 1970. Output is appended to `bytes`, which the caller may empty between calls;
  /// it must outlive the object.
  PerfettoWriter(std::int64_t started_ns, std::string& bytes);

  /// The access's path and process must outlive the object.
  void add(const Access& access);
  /// Writes the ends of calls that have not been written.
  void finish();

 private:
  /// A call that has begun.
  struct Frame {
    Access access;
    std::vector<std::uint64_t> arrows;  ///< ids of calls below on other tracks
    bool has_arrow = false;             ///< one leads to it
    bool is_written = false;
  };
  struct Lane {
    std::uint64_t track = 0;
    std::vector<Frame> open;  ///< the innermost last
  };
  struct Thread {
    std::uint64_t track = 0;
    std::vector<Lane> lanes[std::size(layer_names)];
  };
  /// Gives texts numbers from 1, and writes each text when it gets one.
  struct Interned {
    std::uint32_t field;  ///< in InternedData
    std::unordered_map<std::string_view, std::uint64_t> numbers = {};
  };

  void write_clocks(std::int64_t started_ns);
  std::uint64_t process_track(const Process& process);
  Thread& thread_of(const Access& access);
  Lane& lane_of(Thread& thread, const Access& access);
  Lane& made_lane(Thread& thread, Layer layer);
  void close_ended(Lane& lane, std::int64_t until_ns);
  void close_innermost(Lane& lane);
  void write_begin(const Lane& lane, Frame& frame);
  bool add_arrow(Thread& thread, const Lane& lane, const Access& access);
  std::uint64_t number_of(Interned& interned, std::string_view text);
  void append_arguments(const Access& access, std::string& event);
  void write_event(std::int64_t time_ns, const std::string& event);
  void write_packet(std::string_view packet);

  std::string& bytes_;
  bool has_begun_ = false;  ///< of the sequence
  std::uint64_t latest_track_ = 0;
  std::unordered_set<std::int32_t> pids_, tids_;
  std::int32_t next_free_id_;
  struct ProcessTrack {
    std::uint64_t track = 0;
    std::int32_t pid = 0;  ///< the one that Perfetto is told
  };
  std::unordered_map<const Process*, ProcessTrack> processes_;
  std::map<std::pair<const Process*, std::int32_t>, Thread> threads_;
  Interned event_names_{2}, argument_names_{3}, argument_texts_{29};
};

}  // namespace iosig::trace
