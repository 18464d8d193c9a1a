// The signature: the non-functional properties of one stream, declared or inferred.
//
// Plain data. The text form (pragma, rules file, command line) is format/signature_text.
// Source: IOSIG paper, section 3; `synchrony`, `read_share` and `duration_s` are ours (the model and
// `availability` need them), and so is `container_targets` (PATTERN's N-1 to N-N, asked for by name).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace iosig {

/// Who must see the data: every node of the job, or the node that writes it.
enum class Visibility { local, global };
enum class AccessOrder { sequential, random };
/// Whether the data must outlive a loss of power.
enum class Lifetime { temp, persist };
/// Whether an operation waits for the storage (fdatasync, O_SYNC, O_DIRECT) or for the page cache only.
enum class Synchrony { sync, nosync };

/// An absent member states nothing. Constraints filter mount points; descriptive members go into the cost.
struct Signature {
  // constraints
  std::optional<Visibility> visibility;
  std::optional<Lifetime> lifetime;
  bool archive = false;
  bool tamperproof = false;
  std::optional<std::uint64_t> total_bytes;  ///< room that the stream needs
  std::optional<double> mttdl_s;             ///< smallest acceptable mean time to data loss
  std::optional<double> availability;        ///< largest acceptable probability of losing the data during `duration_s`
  std::optional<double> duration_s;
  std::optional<std::uint64_t> container_targets;  ///< a container, its data over so many mount points; 1: the best
  // descriptive
  std::optional<AccessOrder> access;
  std::optional<Synchrony> synchrony;  ///< absent: sync, as in the paper's experiments
  std::optional<std::uint64_t> bytes_per_io;
  std::optional<double> read_share;  ///< share of the operations that read, 0 to 1; absent: all write

  bool operator==(const Signature&) const = default;
};

/// Named signatures (`sigdef`), by name.
using SignatureDefinitions = std::map<std::string, Signature, std::less<>>;

}  // namespace iosig
