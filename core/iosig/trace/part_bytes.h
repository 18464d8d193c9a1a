// The bytes of a part that every writer of traces makes alike: header, chunks (part_layout.h).
//
// For traced programs, too: no allocation, lock, system call or errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// The thread and the clock of a part.
struct PartIdentity {
  std::string_view host;      ///< cut to 63 bytes
  std::uint64_t process = 0;  ///< the same in all parts of a process, different in any other process of the trace
  std::int32_t pid = 0, parent_pid = 0, tid = 0;
  ClockKind clock = ClockKind::nanoseconds;
  ClockPair first{};              ///< read together; of a nanosecond clock, both are the same number
  std::uint64_t realtime_ns = 0;  ///< since 1970, at that moment
  /// boot_number() of the machine: parts with equal ones share a clock. 0: the part's clock is that of its process.
  std::uint64_t boot = 0;
};

/// Returns the header of a part without slots.
[[nodiscard]] PartHeader part_header(const PartIdentity& identity) noexcept;

/// Returns the bytes of a whole chunk: header, payload, padding.
[[nodiscard]] constexpr std::size_t chunk_bytes(std::size_t payload_bytes) {
  return sizeof(ChunkHeader) + (payload_bytes + 7) / 8 * 8;
}
/// Writes a chunk whose payload is `head` and `rest` to `out`, which has room for chunk_bytes() of both. Its header,
/// which makes it one, is stored last.
void put_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest, std::byte* out) noexcept;

/// Returns how many chunks stand in `bytes`, one after the other.
[[nodiscard]] std::uint32_t chunks_in(std::span<const std::byte> bytes) noexcept;

/// Returns the first 16 digits of the kernel's boot id as a number; 0 of an empty text.
[[nodiscard]] std::uint64_t boot_number(std::string_view boot_id) noexcept;

/// Where MPI libraries and batch systems say a process's rank and the number of ranks, in the order of trust: what
/// started the program last comes first.
inline constexpr const char* rank_variables[] = {
    "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"};
inline constexpr const char* size_variables[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE",
                                                 "FLUX_JOB_SIZE", "SLURM_NTASKS"};
/// Variables of the job that are facts of the process under their own names.
inline constexpr const char* job_variables[] = {"SLURM_JOB_ID",    "SLURM_STEP_ID",    "SLURM_JOB_NAME",
                                                "PBS_JOBID",       "LSB_JOBID",        "FLUX_JOB_ID",
                                                "OMP_NUM_THREADS", "IOSIG_CONTAINERS", "IOSIG_RULES"};

}  // namespace iosig::trace
