// Adds up the time that the calls on each file of a trace take, and finds calls that could not change anything: the
// evidence for advice (advise.h). stream_facts.h has their sizes and order.
//
// Times are from start to end; calls without an end have none. Pipes, sockets, /dev, /proc and /sys are left out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/observe/text_numbers.h"
#include "iosig/trace/trace.h"

namespace iosig::observe {

struct Spent {
  std::uint64_t calls = 0;
  std::int64_t ns = 0;
  std::uint64_t bytes = 0;  ///< that they moved

  void add(std::int64_t more_ns, std::uint64_t more_bytes = 0) { ++calls, ns += more_ns, bytes += more_bytes; }
  void add(const Spent& other) { calls += other.calls, ns += other.ns, bytes += other.bytes; }
};

inline constexpr std::int64_t io_block_bytes = 4096;
/// An access that moves fewer bytes is small.
inline constexpr std::int64_t small_bytes = 64 * 1024;

/// Reads or writes of one layer that moved bytes.
struct TransferCosts {
  Spent all, small, below_block;
  std::uint64_t small_unaligned = 0, below_block_unaligned = 0;  ///< offset or size is no multiple of a block

  void add(const TransferCosts& other);
};

struct LayerCosts {
  TransferCosts reads, writes;
};

struct StreamCosts {
  std::string path;
  std::array<LayerCosts, std::size(trace::layer_names)> layers;
  Spent opens;  ///< open(2), fopen(3), freopen(3)
  /// Of those that succeeded: by a process that had opened the file before, under a name that has led to the same file
  /// since, and without O_TRUNC, O_EXCL.
  Spent repeated_opens;
  Spent stats;  ///< stat(2), access(2)
  /// Of those that succeeded: the process had asked before, and no traced call has changed the file or its attributes
  /// since.
  Spent repeated_stats;
  Spent syncs;  ///< fsync(2), fdatasync(2)
  /// Of those that succeeded: another one had ended before it began, and had begun after all traced changes had ended.
  Spent idle_syncs;
  bool is_mapped = false;  ///< by mmap(2): changes are not in the trace
  std::uint64_t independent_mpi_writes = 0, collective_mpi_writes = 0;

  void add(const StreamCosts& other);
  /// The lowest layer that moved bytes: what reaches the file system. Layer::posix if none did.
  [[nodiscard]] trace::Layer lowest_layer() const;
};

/// The calls of the layer posix.
struct RankCosts {
  Spent spent;
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::uint64_t collective_bytes = 0;  ///< of these, during collective MPI calls: other ranks' bytes, too
};

struct RunCosts {
  std::vector<StreamCosts> streams;         ///< by path, ascending
  std::map<std::int64_t, RankCosts> ranks;  ///< of processes that have one
  std::int64_t io_ns = 0;                   ///< time of each thread in calls, nothing twice, summed up over the threads
  std::int64_t wall_ns = 0;                 ///< until the last end
  bool has_unseen_writes = false;           ///< by aio_write(3), io_submit(2) and the like, of unknown files
};

/// Accesses come in the order of their starts, and what they refer to stays. Memory: some 700 bytes a file, and 50 for
/// each process that opens it or asks for its attributes.
class CostGatherer {
 public:
  void add(const trace::Access& access);
  [[nodiscard]] RunCosts finish() &&;

 private:
  /// Facts about a path other than its costs.
  struct State {
    bool is_left_out = false;
    std::uint32_t names = 0;    ///< how often the name got another file, or lost it
    std::uint32_t changes = 1;  ///< of the file and its attributes
    std::uint32_t synced = 0;   ///< the changes that the last sync has seen; 0: none
    std::int64_t changed_until_ns = INT64_MIN, synced_until_ns = INT64_MIN;
  };
  /// What a process has seen of a path: the State's numbers, plus 1; 0: nothing.
  struct Seen {
    std::uint32_t opened = 0, asked = 0;
  };
  struct Thread {
    const trace::Process* process = nullptr;
    std::int32_t tid = 0;
    bool operator==(const Thread&) const = default;
  };
  struct HashThread {
    std::size_t operator()(const Thread& thread) const;
  };

  [[nodiscard]] std::size_t number_of(std::string_view path);
  [[nodiscard]] Seen& seen_by(const trace::Process& process, std::size_t number);
  void add_time(const trace::Access& access);
  void add_transfer(const trace::Access& access, StreamCosts& stream);
  void add_change(std::size_t number, std::int64_t end_ns);
  void add_change_of_directory(const trace::Access& access);
  void add_open(const trace::Access& access, std::size_t number);
  void add_sync(const trace::Access& access, std::size_t number);
  void add_stat(const trace::Access& access, std::size_t number);

  TextNumbers numbers_;
  std::vector<StreamCosts> streams_;
  std::vector<State> states_;  ///< of each stream
  std::unordered_map<const trace::Process*, std::unordered_map<std::size_t, Seen>> seen_;
  std::unordered_map<Thread, std::int64_t, HashThread> covered_until_;
  std::unordered_map<Thread, std::uint64_t, HashThread> collective_calls_;  ///< id of the latest
  RunCosts run_;
};

}  // namespace iosig::observe
