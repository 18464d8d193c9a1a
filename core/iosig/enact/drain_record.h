// The report of a background drain (enact/drain.h) to other processes: one small file per redirect in the journal's
// directory,
// `.<id>.drain` (docs/formats/journal.md). It is replaced atomically and not flushed: after a crash of the machine only
// the figures are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "iosig/enact/copy.h"

namespace iosig {

struct DrainRecord {
  enum class Phase {
    waiting,  ///< for the program, the job, room, or a mount; `message` says which
    copying,  ///< the data are on their way
    gave_up,  ///< the user must decide; `message` says what
  };
  Phase phase = Phase::waiting;
  std::string message;
  std::int64_t pid = 0;
  std::string host;
  std::int64_t started_unix_s = 0;  ///< the drain
  std::uint64_t done_bytes = 0, total_bytes = 0;
  double bytes_per_s = 0;
  std::optional<PartialCopy> copy = {};  ///< begun; the next drain or run continues it
};
[[nodiscard]] const char* name_of(DrainRecord::Phase phase);

[[nodiscard]] Result<void> write_drain_record(const std::string& id, const DrainRecord& record);
/// Removes the record. Succeeds if there is none.
void remove_drain_record(const std::string& id);
/// Returns the record; no value if there is none that can be read. Whether its drain lives: is_locked(id, draining).
[[nodiscard]] std::optional<DrainRecord> drain_record(const std::string& id);

}  // namespace iosig
