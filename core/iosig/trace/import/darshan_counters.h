// The counters of Darshan's modules: one record for each file and rank, or for each file that all ranks opened.
//
// Facts: darshan-util's public sources, include/darshan-*-log-format.h and the conversions between versions of a module
// in darshan-*-logutils.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "iosig/trace/counters.h"
#include "iosig/trace/import/darshan_log.h"

namespace iosig::trace {

/// The MPI-IO counters of the reads, or the writes, of a rank on a file.
enum class MpiKind : std::uint8_t { independent, collective, split, nonblocking, mixed };

/// The call that stands for accesses of this kind; of mixed ones, for all of MPI-IO.
[[nodiscard]] Call mpi_call(MpiKind kind, bool is_write);

/// Where the records of a module's version have what is read here: sizes and indices of 8-byte counters.
struct CounterLayout {
  DarshanModule module;
  std::uint32_t version;
  std::size_t bytes;               ///< of a record
  std::size_t first_access;        ///< reads, then writes; of MPI-IO, four pairs
  std::size_t syncs, bytes_moved;  ///< syncs: the first of `sync_counters`
  std::size_t
      rest;  ///< of POSIX: from the highest bytes on; of MPI-IO: the ranges of sizes; of stdio: the highest bytes
  std::size_t first_fopen = 0;  ///< 0: has no counters of stdio
};

/// Null: this version is not known.
[[nodiscard]] const CounterLayout* counter_layout(const DarshanRegion& region, DarshanModule module);

struct DarshanCounters {
  std::uint64_t record = 0;                                             ///< the file's
  std::int64_t rank = 0;                                                ///< -1: all
  FileCounters file;                                                    ///< without path
  MpiKind reads = MpiKind::independent, writes = MpiKind::independent;  ///< of MPI-IO
  /// Why the record is not used; empty: it is.
  std::string fault;
};

/// Reads a record of layout.bytes. `processes`: of the job.
[[nodiscard]] DarshanCounters darshan_counters(const CounterLayout& layout, DarshanNumbers number, const char* record,
                                               std::int64_t processes);

}  // namespace iosig::trace
