// What a device is made of, as far as its reliability goes: a tree whose leaves are simple devices.
//
// The Markov chain (cost/markov) and the simulation (cost/simulate) read the same tree, so that one can be held against
// the other.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// A device, or a code over parts that are structures themselves. A part that is lost is rebuilt from the others, one
/// part of a code at a time.
struct Structure {
  enum class Kind {
    device,       ///< fails, and may hold sectors that cannot be read
    code,         ///< an MDS code: lost once more than `parity` parts are (replicas: all but one may be; stripes: none)
    local_codes,  ///< a local reconstruction code: the parts are local groups (`code`s, whose own parity is theirs) and
                  ///< global parities (`device`s). Lost once the losses that the groups cannot mend by themselves, and
                  ///< the global parities lost, are more than `parity` (maximally recoverable codes).
  } kind = Kind::device;

  // device
  double failures_per_s = 0;  ///< 1 / MTTF
  double unreadable = 0;      ///< expected number of unreadable bits in what the device holds of the data (h of Eq. 2):
                              ///< reading it fails with probability 1 - exp(-unreadable)
  // code, local_codes
  std::uint32_t parity = 0;
  double repairs_per_s = 0;  ///< 1 / MTTR
  std::vector<Structure> parts = {};

  bool operator==(const Structure&) const = default;
};

/// The tree below `device` of `storage` when it holds `size_bytes` of data. A part of a stripe, and a pair of raid10,
/// holds its share. A part of a code with parity counts as holding all of them, as Eq. 2 has it (only so do 4 + 1 disks
/// lose 1 TB in the paper's 15 months); for data spread over n parts that errs on the safe side. A member whose own
/// mttf is given counts as one device whatever it is made of. A redundancy without members has as many devices with the
/// composite's own mttf and bit errors.
/// Fails as `infeasible`, saying why, where the mttf of a member is not known, and for what has no redundancy at all
/// ("not considered as reliable", IOSIG paper, section 4.1); `bad_input` for a structure that cannot be.
[[nodiscard]] Result<Structure> structure_of(const Storage& storage, const Device& device, std::uint64_t size_bytes);

}  // namespace iosig
