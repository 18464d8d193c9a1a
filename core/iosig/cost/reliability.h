// How long data of a given size survive on a device: Eqs. 1 and 2 of the IOSIG paper, and the chain (cost/markov) for
// everything else.
#pragma once

#include <cstdint>
#include <optional>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Returns the uncorrectable bit error rate: Eq. 1 with N = `sector_bits`, E = `ecc_bits`. Requires 0 <= ber <= 1,
/// ecc_bits < sector_bits. Accurate to 12 digits for any BER from 1e-20 and sectors up to 1 Mbit.
[[nodiscard]] double uncorrectable_bit_error_rate(double bit_error_rate, std::uint32_t sector_bits,
                                                  std::uint32_t ecc_bits);

/// Returns the UBER from a device's own bit errors; 0 if unknown. Fails with `bad_input`, naming the device, for a BER
/// outside 0..1 and a sector that has no more bits than its code corrects.
[[nodiscard]] Result<double> uber_of(const Device& device);

/// Returns the largest UBER of the simple devices in `device`, or its own. Fails as uber_of does.
[[nodiscard]] Result<double> largest_uber(const Storage& storage, const Device& device);

/// Eq. 2: returns the mean time to data loss in seconds of `size_bytes` on an MDS code of `data` + `parity` devices (n
/// = data, m = parity). `uber` is per bit, so h = 8 size_bytes uber. At most the largest double.
[[nodiscard]] double mds_mttdl_s(std::uint32_t data, std::uint32_t parity, double mttf_s, double mttr_s, double uber,
                                 double size_bytes);

/// Applies Eq. 2 to `size_bytes` on `device` (by name in `storage`). Differing members all count as the worst (smallest
/// MTTF, largest UBER), a composite member as a device whose MTTF is its MTTDL; raid10 and stripes of codes divide the
/// size and multiply the rate. Fails with `infeasible` and a reason for a device without redundancy ("not considered as
/// reliable", section 4.1), for unknown MTTFs of members, and for local reconstruction codes.
[[nodiscard]] Result<double> eq2_mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes);

/// Returns the mean time to data loss to compare with a demand. Uses the Markov chain of `device` (cost/markov), or Eq.
/// 2 if it applies (one code over equal devices) and is more pessimistic: it takes h for 1 - exp(-h). Fails as
/// structure_of and chain_mttdl_s do.
[[nodiscard]] Result<double> mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes);

/// Returns the probability of data loss within `duration_s`: 1 - exp(-duration / MTTDL).
[[nodiscard]] double loss_probability(double mttdl_s, double duration_s);

}  // namespace iosig
