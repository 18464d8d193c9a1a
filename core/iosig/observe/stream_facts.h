// Counts the accesses to each file in a trace, and follows its names: the evidence for its signature (infer.h).
//
// A stream is the file under the name by which it was opened. A later rename(2) or unlink(2) of the file is a fact of
// that stream.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "iosig/observe/size_counts.h"
#include "iosig/trace/trace.h"

namespace iosig::observe {

/// Reads and writes of one layer. Those that failed, had not returned, or transferred nothing do not count.
struct Transfers {
  std::uint64_t reads = 0, writes = 0, read_bytes = 0, written_bytes = 0;
  SizeCounts sizes;               ///< transferred bytes of each
  std::uint64_t sequences = 0;    ///< of accesses of one thread in one direction; another open begins a new one
  std::uint64_t followed = 0;     ///< accesses that have one before them in their sequence
  std::uint64_t contiguous = 0;   ///< of those: begin where the other ended
  std::uint64_t forward = 0;      ///< of those: begin further behind
  std::uint64_t same_stride = 0;  ///< of these: as far behind as the other one was behind the one before it
  std::uint64_t first_jumps =
      0;                      ///< of those ahead: the second access of a sequence, which has no stride to compare with
  std::uint64_t aligned = 0;  ///< offset and size are multiples of 4096
  std::uint64_t waited = 0;   ///< through descriptors with O_SYNC, O_DSYNC or O_DIRECT
  std::int64_t end = 0;       ///< of the access that reached furthest
  std::int64_t think_ns = 0;  ///< from the first access to the last one, pauses of at least 10 ms
  std::int64_t busy_until_ns = 0;
  std::set<std::uint64_t> readers, writers;  ///< Process::key; of counters, ranks
  bool is_counted = false;                   ///< from counters (counted_files.h): the rest is of them alone
  bool has_unknown_order = false, has_unknown_sizes = false;
  std::uint64_t shared_by = 0;          ///< so many processes at most, of which the counters are the sum
  std::uint64_t counted_alignment = 0;  ///< `aligned` is about offsets and this many bytes; 0: as said there
  std::set<std::string> hosts;

  [[nodiscard]] std::uint64_t count() const { return reads + writes; }
  [[nodiscard]] std::uint64_t bytes() const { return read_bytes + written_bytes; }
};

struct StreamFacts {
  std::string path;
  std::array<std::unique_ptr<Transfers>, std::size(trace::layer_names)> layers;  ///< null: no access
  std::uint64_t syncs = 0;              ///< fsync(2) and its like, also asynchronous ones, syncfs(2), msync(2)
  std::uint64_t mapped_bytes = 0;       ///< by mmap(2): loads and stores are not in the trace
  std::int64_t allocated_end = 0;       ///< fallocate(2) and ftruncate(2) have made the file so large, or larger
  bool is_created = false;              ///< opened with O_CREAT, and nothing shows that it existed before
  bool is_created_exclusively = false;  ///< with O_EXCL, as mkstemp(3) does
  bool is_refused_as_link = false;      ///< opened with O_NOFOLLOW
  bool was_there = false;               ///< opened or found by its name before anything made it
  bool is_emptied = false;              ///< opened with O_TRUNC
  bool is_removed = false;              ///< by unlink(2), and nothing of it has a name at the end of the trace
  bool may_remain = false;              ///< replaced by rename(2), or moved or linked to a name that is not known
  bool has_read_end = false;            ///< a read returned nothing: its end is the file's
  std::string renamed_to;               ///< the last name; empty: none

  /// The lowest layer that has accesses: what reaches the file system. Null: none has.
  [[nodiscard]] const Transfers* transfers() const;
};

/// Gathers facts of one trace. Accesses come in the order of their starts.
/// Memory: about 1 KB a stream, and 100 bytes for each thread that accesses it.
class FactGatherer {
 public:
  void add(const trace::Access& access);
  /// Returns the facts by path; call it once.
  [[nodiscard]] std::vector<StreamFacts> finish();

 private:
  /// The last access of a thread to a stream in one direction and layer.
  struct Last {
    std::int64_t end = 0, distance = 0;
    std::uint32_t file = 0;  ///< the open file
    bool is_first = true;
  };
  struct LastKey {
    std::size_t stream;
    const trace::Process* process;
    std::int32_t tid;
    std::uint16_t way;  ///< layer and direction
    bool operator==(const LastKey&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const LastKey& key) const;
  };

  [[nodiscard]] std::size_t number_of(std::string_view path);
  void add_transfer(const trace::Access& access, trace::Moves moves);
  void add_open(const trace::Access& access);
  void add_removal(std::string_view path);
  void add_rename(std::string_view from, std::string_view to);
  void add_link(std::string_view from, std::string_view to);
  void move_directory(std::string_view from, std::string_view to);
  /// Takes the streams whose file has this name now.
  [[nodiscard]] std::vector<std::size_t> take_named(std::string_view path);

  std::map<std::string, std::size_t, std::less<>> numbers_;  ///< of streams, by path
  std::vector<StreamFacts> streams_;
  /// The streams whose files have a name at present, by that name.
  std::map<std::string, std::vector<std::size_t>, std::less<>> named_;
  std::unordered_set<std::string> found_;  ///< by stat(2) and the like, and not opened yet; at most `max_found`
  std::unordered_map<LastKey, Last, KeyHash> last_;
  using OpenFiles = std::unordered_map<const trace::Process*, std::unordered_set<std::uint32_t>>;
  OpenFiles waiting_files_;   ///< with O_SYNC, O_DSYNC or O_DIRECT
  OpenFiles nameless_files_;  ///< with O_TMPFILE: their path is a directory
};

}  // namespace iosig::observe
