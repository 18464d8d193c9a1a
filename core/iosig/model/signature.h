// The signature: the non-functional properties of one stream, declared or inferred.
//
// Plain data. The text form (pragma, rules file, command line) is format/signature_text.
// Source: IOSIG paper, section 3. Ours are `synchrony`, `read_share` and `duration_s`, which the model and
// `availability` need; `residence`, `may_be_volatile`, `passes` and `think_s`, which the time of the whole job depends
// on; `policy`; `container_targets` (PATTERN's N-1 to N-N, on request); and `reads`, PATTERN's patterns that are passed
// down.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace iosig {

/// Whether the data must be visible on every node of the job, or only on the writing node.
enum class Visibility { local, global };
enum class AccessOrder { sequential, random };
/// Whether the data must survive a power failure.
enum class Lifetime { temp, persist };
/// Whether an operation waits for the storage (fdatasync, O_SYNC, O_DIRECT) or only for the page cache.
enum class Synchrony { sync, nosync };
/// Where the data must be after the job: at the path that the program opened, or where they were written, with a link
/// at that path.
enum class Residence { home, rest };
/// The aim of a choice: the least time of the whole job, or the highest throughput, as the paper prints it
/// (decide/placement.h).
enum class Policy { job, paper };

/// A file that says how the stream will be read.
struct DeclaredReads {
  /// A model or a pattern (docs/formats/read-model.md, pattern.md), or an order (read-order.md).
  enum class Form { pattern, order };
  Form form = Form::pattern;
  std::string file;  ///< as it was written; absolute in rules

  bool operator==(const DeclaredReads&) const = default;
};

/// Absent members are undeclared. Constraints filter mount points; descriptive members are input to the cost; the form
/// says what the file is made of, and what is read next is prefetched.
struct Signature {
  // constraints
  std::optional<Visibility> visibility;
  std::optional<Lifetime> lifetime;
  bool may_be_volatile = false;  ///< the data may be lost with power although they are not `temp`
  bool archive = false;
  bool tamperproof = false;
  std::optional<std::uint64_t> total_bytes;  ///< space that the stream needs
  std::optional<double> mttdl_s;             ///< minimum acceptable mean time to data loss
  std::optional<double> availability;        ///< maximum acceptable probability of data loss during `duration_s`
  std::optional<double> duration_s;
  // form
  std::optional<std::uint64_t> container_targets;  ///< a container with its data on this many mount points; 1: the best
  // descriptive
  std::optional<AccessOrder> access;
  std::optional<Synchrony> synchrony;  ///< absent: sync, as in the paper's experiments
  std::optional<std::uint64_t> bytes_per_io;
  std::optional<double> read_share;     ///< share of the operations that read, 0 to 1; absent: writes only
  std::optional<std::uint64_t> passes;  ///< bytes that the job transfers / bytes of the data; absent: 1
  std::optional<double> think_s;        ///< time that the job computes while the stream is in use; absent: 0
  // prefetching
  std::optional<DeclaredReads> reads;
  // decision
  std::optional<Residence> residence;  ///< absent: depends on who asks (enact/redirect.h)
  std::optional<Policy> policy;        ///< absent: see config/policy.h

  bool operator==(const Signature&) const = default;
};

[[nodiscard]] constexpr const char* name_of(Policy policy) { return policy == Policy::paper ? "paper" : "job"; }

/// Named signatures (`sigdef`), by name.
using SignatureDefinitions = std::map<std::string, Signature, std::less<>>;

}  // namespace iosig
