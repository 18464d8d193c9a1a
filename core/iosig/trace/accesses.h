// Passes on the accesses of a trace one after the other, over all threads in the order of their starts.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace {

/// The lower bits of an access's id are the call's id in its part; those above, the part's number in Trace::parts().
inline constexpr unsigned call_id_bits = 44;

/// Memory: about a block for each level of nested calls of each thread that is active at a time.
class Accesses {
 public:
  /// Refers to all three. A block that cannot be read, or has impossible content, goes to `faults`; the calls of its
  /// part that are not in earlier blocks are left out.
  Accesses(const Trace& trace, const Selection& selection, std::vector<Error>& faults);

  /// Returns the next selected access, in the order of start, then of part and id; null: there is none. It is valid
  /// until the next call.
  [[nodiscard]] const Access* next();

 private:
  using Paths = std::unordered_map<std::uint32_t, std::uint32_t>;  ///< of open files
  /// A batch that is being passed on.
  struct Open {
    std::uint32_t part;
    std::int32_t tid;
    const Process* process;
    Paths* paths;
    std::vector<std::pair<std::int64_t, PartCall>> calls;  ///< with their starts in nanoseconds
    std::size_t next = 0;
  };
  static bool is_later(const std::unique_ptr<Open>& a, const std::unique_ptr<Open>& b);
  void open_batch();
  [[nodiscard]] bool is_wanted(const Trace::Batch& batch) const;
  void set_access(const Open& from);
  [[nodiscard]] bool is_selected();

  const Trace& trace_;
  const Selection& selection_;
  std::vector<Error>& faults_;
  std::vector<bool> is_part_wanted_;
  std::vector<std::uint32_t> sound_blocks_;  ///< of each part: the number before the first fault
  std::size_t next_batch_ = 0;
  std::vector<std::unique_ptr<Open>> open_;  ///< a heap, the earliest next call first
  std::unordered_map<const Process*, Paths> paths_;
  std::unordered_map<const char*, bool> matches_;  ///< whether the path at this address matches Selection::files
  Access access_;
};

}  // namespace iosig::trace
