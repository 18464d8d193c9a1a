// Reads a part, the trace of one thread (part_layout.h), also while it grows, and after a kill or damage.
//
// What can be read is the sound prefix: the calls before the first byte that is wrong, and `Part::fault` says where
// that is. Part headers, chunks, and calls in slots that have ended have checksums. Slots with impossible values are
// left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// A call with 64-bit ids, which are of its part.
struct PartCall {
  std::uint64_t id = 0, parent = 0;
  Slot slot{};
};

/// Where a block is in its part, and what is in it.
struct BlockPlace {
  std::uint64_t offset = 0;  ///< of the payload
  std::uint32_t bytes = 0;   ///< of the payload
  std::uint32_t calls = 0;
  std::uint64_t least_start = 0, greatest_end = 0;  ///< ticks
  std::uint64_t last_id = 0;                        ///< the greatest
  std::uint64_t call_set = 0;                       ///< BlockHeader::call_set
  std::int32_t tid = 0;                             ///< of the thread that made the calls
  std::uint64_t sums_at = 0;                        ///< in Part::sums
  std::uint32_t sums_bytes = 0;                     ///< 0: it has none
};

/// What is wrong in a part.
struct PartFault {
  std::uint64_t at = 0;  ///< byte of the part
  std::string what;
  bool is_cut = false;  ///< the part ends within a chunk: it is being written, or its process was killed meanwhile
};

struct Part {
  std::string name;  ///< of the file in the trace's directory
  PartHeader header{};
  std::string host;
  std::vector<BlockPlace> blocks;  ///< in the order of the part
  std::vector<std::byte> sums;     ///< payloads of the blocks' sums (block_sums.h)
  std::vector<PartCall> loose;     ///< in slots alone, in the order of ids; `end` 0: in flight
  std::vector<std::pair<std::uint32_t, std::string>> names;
  std::vector<std::pair<std::string, std::string>> facts;  ///< of the process
  ClockPair last_clock{};                                  ///< the latest pair in the part
  std::optional<PartFault> fault;
};

/// Reads everything but the blocks' calls of the part `name` in `directory`; messages call it `shown`.
/// Fails with `system` if it is no regular file (symbolic links are not followed) or cannot be read, with `bad_input`
/// if it is no part, is of another version, or its header is damaged. Nothing: its recorder has only just made it.
[[nodiscard]] Result<std::optional<Part>> read_part(const Fd& directory, const std::string& name,
                                                    const std::string& shown);

/// Reads the calls of a block in its order.
[[nodiscard]] Result<std::vector<PartCall>> read_block(const Fd& directory, const Part& part, const BlockPlace& place,
                                                       const std::string& shown);

}  // namespace iosig::trace
