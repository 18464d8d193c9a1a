// How long data of a size lasts on a device: Eqs. 1 and 2 of the IOSIG paper, and the chain (cost/markov) beyond them.
#pragma once

#include <cstdint>
#include <optional>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Uncorrectable bit error rate: Eq. 1 with N = `sector_bits`, E = `ecc_bits`. Requires 0 <= ber <= 1, ecc_bits <
/// sector_bits. Right to 12 digits for any BER from 1e-20 and sectors to 1 Mbit.
[[nodiscard]] double uncorrectable_bit_error_rate(double bit_error_rate, std::uint32_t sector_bits,
                                                  std::uint32_t ecc_bits);

/// Of a device's own bit errors; 0 where they are not known. Fails as `bad_input`, naming the device, for a BER outside
/// 0..1 and a sector that has no more bits than its code corrects.
[[nodiscard]] Result<double> uber_of(const Device& device);

/// The largest of the simple devices that `device` is made of, else its own. Fails as uber_of does.
[[nodiscard]] Result<double> largest_uber(const Storage& storage, const Device& device);

/// Eq. 2: mean time to data loss in seconds of `size_bytes` on an MDS code of `data` + `parity` devices (n = data,
/// m = parity). `uber` counts per bit, so h = 8 size_bytes uber. At most the largest double.
[[nodiscard]] double mds_mttdl_s(std::uint32_t data, std::uint32_t parity, double mttf_s, double mttr_s, double uber,
                                 double size_bytes);

/// Eq. 2 for `size_bytes` on `device` (by name in `storage`). Members that differ count as the worst of them (smallest
/// MTTF, largest UBER), a member that is a composite as a device whose MTTF is its MTTDL; raid10 and stripes of codes
/// share the size and multiply the rate. Fails as `infeasible`, saying why, for a device without redundancy ("not
/// considered as reliable", section 4.1), for one whose members' MTTF is not known, and for local reconstruction codes.
[[nodiscard]] Result<double> eq2_mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes);

/// Mean time to loss that a demand is held against: by the Markov chain of what `device` is made of (cost/markov), or
/// by Eq. 2 where that is for such a structure (one code over equal devices) and more pessimistic: it takes h for
/// 1 - exp(-h). Fails as structure_of and chain_mttdl_s do.
[[nodiscard]] Result<double> mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes);

/// Probability of loss within `duration_s`: 1 - exp(-duration / MTTDL).
[[nodiscard]] double loss_probability(double mttdl_s, double duration_s);

}  // namespace iosig
