// Performs one rank's accesses on a file, and tells whether a file holds what they should have left there.
#pragma once

#include <functional>

#include "file.h"
#include "workloads.h"

namespace iosig::workloads {

enum class Phase { write, read, verify };

/// "write", "read", "verify".
[[nodiscard]] std::string_view name_of(Phase phase);

struct Tally {
  std::uint64_t operations = 0, bytes = 0;
  double in_calls_s = 0;  ///< in the file's read and write, without making or comparing the data

  /// Ranks side by side: operations and bytes of both, the longer time.
  Tally& operator+=(const Tally& other);
};

inline constexpr std::uint64_t largest_access_bytes = 1ULL << 30;  ///< of what is performed

/// Writes or reads every access of `rank` in order, or compares the file with the rank's newest writes. Bytes that no
/// access covers are not looked at.
///
/// Fails as the file does; `infeasible` on the first wrong byte, with its place; `bad_input` on an access above
/// largest_access_bytes; `system` once `is_stopped`, which is asked before each access.
[[nodiscard]] Result<Tally> perform(const Plan& plan, Phase phase, std::uint32_t rank, File& file,
                                    const std::function<bool()>& is_stopped);

}  // namespace iosig::workloads
