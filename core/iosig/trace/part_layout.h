// The layout of a part, the trace of one thread, in memory and on disk (docs/formats/trace.md). Little-endian.
//
//     0        PartHeader
//     512      pending chunks: those that are not appended yet; the first bytes that are no chunk end them
//     4096     slots: the latest calls, one of 64 bytes each; mapped by the recorder, so that they survive SIGKILL
//     40960    chunks, appended one after another: facts of the process, names of files, blocks of packed calls
//
// When the slots are full, the recorder appends them as a block, then empties them. A kill in between leaves calls in
// both places; their ids tell. So does a kill while pending chunks are appended: a chunk may be there twice, which says
// the same. A part has a hole where a short process used few slots; the trace of such a process is often no more than
// the first two pages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "iosig/trace/calls.h"

namespace iosig::trace {

inline constexpr std::uint32_t part_version = 2;  ///< 1: without ChunkKind::sums
inline constexpr char part_magic[8] = {'I', 'O', 'S', 'I', 'G', 'T', 'R', '1'};
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t pending_offset = 512;  ///< to the end of the page
/// Slots that every part has from its start, and all that it can have.
inline constexpr std::uint32_t first_slots = 64, max_slots = first_slots + 512;
inline constexpr std::size_t slots_offset = page_bytes;
inline constexpr std::size_t chunks_offset = slots_offset + std::size_t{max_slots} * 64;

/// Offsets and lengths that a call has not.
inline constexpr std::int64_t no_offset = INT64_MIN, no_length = INT64_MIN;

/// `Slot::flags`.
enum SlotFlag : std::uint16_t {
  derived_offset = 1,  ///< the offset is what the recorder counted, not an argument (read(2), write(2))
  abandoned = 2,       ///< the call never returned: longjmp(3), thread cancellation or the like left it
};

/// One call. `start` != 0 and `end` == 0: it has begun, and had not returned when the process ended (or when the part
/// was read). `start` == 0: unused. The recorder stores `end` last.
struct Slot {
  std::uint64_t start, end;  ///< ticks of the part's clock
  std::int64_t offset;       ///< bytes from the start of the file; no_offset
  std::int64_t length;       ///< bytes asked for; of open: the flags; of the second path of rename: its path id
  std::int64_t result;       ///< what the call returned, or -errno
  std::uint32_t id;          ///< of the call in its part, from 1 in the order in which calls begin; lower 32 bits
  std::uint32_t parent;      ///< id of the call of the same thread during which it was made; 0: none
  std::uint32_t file;        ///< the open file (open file description) in its process, from 1; 0: none
  std::int32_t fd;           ///< -1: none
  std::uint32_t path;        ///< id of a name chunk of the process; 0: none or that of the file
  Call call;
  std::uint16_t flags;  ///< SlotFlag; of a call that has ended, checked_flags()
};
static_assert(sizeof(Slot) == 64);

/// The upper bits of `Slot::flags` are a check of a call that has ended; 0: there is none.
inline constexpr unsigned slot_flag_bits = 2;
inline constexpr std::uint16_t slot_flag_mask = (1u << slot_flag_bits) - 1;

/// Returns `flags` with the check of the slot, as if it had this end and these flags: all words, rotated by multiples
/// of 9 bits, and their exclusive or folded to 14 bits. Damage within one byte changes it.
[[nodiscard]] inline std::uint16_t checked_flags(const Slot& slot, std::uint64_t end, std::uint16_t flags) {
  const auto word = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto pair = [](std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; };
  flags &= slot_flag_mask;
  std::uint64_t sum = slot.start ^ std::rotl(end, 9) ^ std::rotl(word(slot.offset), 18) ^
                      std::rotl(word(slot.length), 27) ^ std::rotl(word(slot.result), 36) ^
                      std::rotl(pair(slot.id, slot.parent), 45) ^
                      std::rotl(pair(slot.file, static_cast<std::uint32_t>(slot.fd)), 54) ^
                      pair(slot.path, static_cast<std::uint32_t>(slot.call) | static_cast<std::uint32_t>(flags) << 16);
  sum ^= sum >> 56;
  sum ^= sum >> 28;
  sum ^= sum >> 14;
  const std::uint64_t check = sum & (UINT16_MAX >> slot_flag_bits);
  return static_cast<std::uint16_t>((check == 0 ? 1 : check) << slot_flag_bits | flags);
}

/// Two clocks read together.
struct ClockPair {
  std::uint64_t ticks;         ///< the part's clock
  std::uint64_t monotonic_ns;  ///< CLOCK_MONOTONIC
};

/// PartHeader::clock.
enum ClockKind : std::uint32_t {
  nanoseconds = 0,  ///< ticks are CLOCK_MONOTONIC in nanoseconds
  tsc = 1,          ///< ticks are the processor's time stamp counter; their rate follows from clock pairs
};

/// The start of a part.
struct PartHeader {
  char magic[8];
  std::uint32_t version;
  ClockKind clock;
  std::uint64_t process;  ///< chosen at random: differs for each process of a trace
  std::int32_t pid, parent_pid;
  ClockPair first;            ///< when the part was made
  std::uint64_t realtime_ns;  ///< CLOCK_REALTIME at that moment
  std::uint64_t boot;         ///< the first 8 bytes of the boot id: parts with equal ones share a clock
  char host[64];              ///< ended by NUL, cut if longer
  std::uint32_t zero;
  std::uint32_t checksum;  ///< CRC-32C of all before it

  // What the recorder changes.
  std::uint32_t slot_capacity;  ///< first_slots or max_slots; there are no slots beyond it
  std::int32_t tid;             ///< of the thread whose calls are in the slots
  ClockPair latest;             ///< when a block was packed last, or the thread or the process ended; else `first`
  std::uint64_t lost_calls;     ///< calls that could not be kept, because the directory was full
  std::uint32_t is_closed;      ///< 1: the thread or the process ended in an orderly way
  std::uint32_t lost_names;     ///< names and facts that could not be kept
  std::uint64_t chunks_end;     ///< the file had chunks up to here; 0: none, or an older program wrote it
};
static_assert(sizeof(PartHeader) <= pending_offset);

/// The file `unrecorded` beside the parts: calls of threads for which no part could be made. It is there from the
/// start, so that it has room in a directory that is full.
struct Unrecorded {
  char magic[8];            ///< unrecorded_magic
  std::uint64_t processes;  ///< that have begun without a part
  std::uint64_t calls;
  std::byte zeros[4096 - 24];
};
static_assert(sizeof(Unrecorded) == 4096);
inline constexpr const char* unrecorded_name = "unrecorded";
inline constexpr char unrecorded_magic[8] = {'I', 'O', 'S', 'I', 'G', 'U', 'N', '1'};

/// Precedes a chunk's payload. Payloads are padded with zeros to a multiple of 8 bytes.
struct ChunkHeader {
  std::uint32_t magic;  ///< chunk_magic
  std::uint16_t kind;   ///< ChunkKind
  std::uint16_t zero;
  std::uint32_t bytes;     ///< of the payload, without padding
  std::uint32_t checksum;  ///< CRC-32C of magic, kind, zero, bytes and of the payload
};
static_assert(sizeof(ChunkHeader) == 16);
inline constexpr std::uint32_t chunk_magic = 0x4b4e4843;  // "CHNK"

enum class ChunkKind : std::uint16_t {
  process =
      1,     ///< "key=value" texts, each ended by NUL: program, argument (each), directory, rank, size, user, variables
  name = 2,  ///< NameChunk, followed by the path's bytes
  block = 3,  ///< BlockHeader, followed by packed columns
  sums = 4,   ///< BlockSums of the block right before it
};

/// A path that calls of this process name. Written before the first call that refers to it ends.
struct NameChunk {
  std::uint32_t path;  ///< id in the process, from 1
};

/// Says what a block has, so that queries can skip it without unpacking.
struct BlockHeader {
  std::uint32_t calls;  ///< number of slots
  std::int32_t tid;
  std::uint64_t first_id;                   ///< the least id, all 64 bits
  std::uint64_t last_id;                    ///< the greatest
  std::uint64_t least_start, greatest_end;  ///< ticks
  ClockPair clock;                          ///< at the moment of packing
  std::uint64_t call_set;                   ///< bit (call % 64) is set for each call
  std::uint64_t file_set;                   ///< bit (file % 64) is set for each file
};
static_assert(sizeof(BlockHeader) == 72);

}  // namespace iosig::trace
