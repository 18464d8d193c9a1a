// The file behind a thread's recording (recorder.h): made at the first call, packed when its slots are full, closed
// when the thread or the process ends.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "iosig/base/signals.h"
#include "iosig/trace/part_layout.h"
#include "preload/trace/open_places.h"
#include "preload/trace/recorder.h"
#include "preload/trace/sources.h"

namespace iosig::preload::trace {

/// What a thread remembers of the names that it has written (names.cpp). In its part's memory, zero at first.
struct NameCache {
  struct Name {
    std::uint64_t hash;
    std::uint32_t id;
  };
  std::array<Name, 512> names;
  std::uint32_t directory_changes, directory_length;
  std::array<char, PATH_MAX> directory;
  std::array<char, 2 * PATH_MAX + 2> path;
};
[[nodiscard]] NameCache& names_of(ThreadPart& part);
[[nodiscard]] ChainCache& chains_of(ThreadPart& part);
[[nodiscard]] PlaceCache& places_of(ThreadPart& part);

/// Memory that is empty in a child made by fork(); null: there is none.
[[nodiscard]] void* map_emptied_at_fork(std::size_t bytes);

/// While it lives, this thread's part changes: signals are blocked. Calls of a handler of SIGSYS, which is not blocked,
/// are not recorded, but counted as lost.
class Undisturbed {
 public:
  Undisturbed();
  ~Undisturbed();
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  [[nodiscard]] ThreadPart* part() const { return part_; }
  void set_part(ThreadPart* part) { part_ = part; }

 private:
  SignalsLater signals_later_;
  ThreadPart* part_;  ///< this_part, before and afterwards
};

/// Whether this process is a child that uses its parent's memory, as one of vfork(2): what the recorder knows is its
/// parent's. A child that was made otherwise, also by a bare clone(2), has a copy that is its own.
[[nodiscard]] bool is_in_memory_of_parent();

/// Ids in this process, from 1.
[[nodiscard]] std::uint32_t next_file_id();
[[nodiscard]] std::uint32_t next_path_id();

/// Adds a chunk to the part: two pieces of payload. Signals are blocked.
void add_chunk(ThreadPart& part, iosig::trace::ChunkKind kind, const void* head, std::size_t head_bytes,
               const void* rest, std::size_t rest_bytes);

/// Traces into the directory from now on; `directory` is absolute and lives as long as the process. `in_microseconds`:
/// times are packed as whole microseconds. false: the process cannot be traced, for lack of memory, and counts so.
[[nodiscard]] bool start_parts(std::string_view directory, bool in_microseconds);

/// Whether no process of the trace has said `what` (a word, at most 24 bytes) before. Later ones get false. Preserves
/// errno.
[[nodiscard]] bool is_first_to_say(std::string_view what);

/// In a child made by fork(): the memory is its own, and a thread for which no part could be made tries again.
void begin_after_fork();

/// Marks all parts of the process as closed, or open again: before execve(2) or the end, or after its failure. In the
/// child of a vfork(2) it does nothing.
void mark_parts(bool are_closed);

}  // namespace iosig::preload::trace
