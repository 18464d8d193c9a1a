// The composition of a device with respect to reliability: a tree whose leaves are simple devices.
//
// The Markov chain (cost/markov) and the simulation (cost/simulate) use the same tree and can thus be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// A device, or a code over parts that are structures themselves. A lost part is rebuilt from the others, one part of a
/// code at a time.
struct Structure {
  enum class Kind {
    device,  ///< fails, and may contain unreadable sectors
    code,    ///< an MDS code: lost when more than `parity` parts are (replicas: all but one may be lost; stripes: none)
    local_codes,  ///< a local reconstruction code: the parts are local groups (`code`s with their own parity) and
                  ///< global parities (`device`s). Lost when the losses that the groups cannot correct by themselves,
                  ///< plus the lost global parities, exceed `parity` (maximally recoverable codes).
  } kind = Kind::device;

  // device
  double failures_per_s = 0;  ///< 1 / MTTF
  double unreadable = 0;      ///< expected number of unreadable bits in the data on the device (h of Eq. 2): reading it
                              ///< fails with probability 1 - exp(-unreadable)
  // code, local_codes
  std::uint32_t parity = 0;
  double repairs_per_s = 0;  ///< 1 / MTTR
  std::vector<Structure> parts = {};

  bool operator==(const Structure&) const = default;
};

/// Returns the tree below `device` of `storage` when it holds `size_bytes` of data. A part of a stripe and a pair of
/// raid10 hold their share. A part of a code with parity counts as holding all of the data, as in Eq. 2 (only then is
/// the paper's result of 15 months obtained for 1 TB on 4 + 1 disks); for data spread over n parts that is pessimistic.
/// A redundancy without named members has as many devices with the composite's own mttf and bit errors; if members are
/// named, that mttf is ignored. Fails with `infeasible` and a reason if the mttf of a member is unknown or there is no
/// redundancy at all ("not considered as reliable", IOSIG paper, section 4.1); with `bad_input` for an impossible
/// structure.
[[nodiscard]] Result<Structure> structure_of(const Storage& storage, const Device& device, std::uint64_t size_bytes);

}  // namespace iosig
