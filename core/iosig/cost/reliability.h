// How long data of a size lasts on a device: Eqs. 1 and 2 of the IOSIG paper.
#pragma once

#include <cstdint>
#include <optional>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Uncorrectable bit error rate: Eq. 1 with N = `sector_bits`, E = `ecc_bits`. Requires 0 <= ber <= 1, ecc_bits <
/// sector_bits. Summed in logarithms, so that neither the binomials overflow nor small rates vanish.
[[nodiscard]] double uncorrectable_bit_error_rate(double bit_error_rate, std::uint32_t sector_bits,
                                                  std::uint32_t ecc_bits);

/// Of a device's own bit errors; 0 where they are not known. Fails as `bad_input`, naming the device, for a BER outside
/// 0..1 and a sector that has no more bits than its code corrects.
[[nodiscard]] Result<double> uber_of(const Device& device);

/// Eq. 2: mean time to data loss in seconds of `size_bytes` on an MDS code of `data` + `parity` devices (n = data,
/// m = parity). `uber` counts per bit, so h = 8 size_bytes uber.
[[nodiscard]] double mds_mttdl_s(std::uint32_t data, std::uint32_t parity, double mttf_s, double mttr_s, double uber,
                                 double size_bytes);

/// Mean time to loss of `size_bytes` on `device` (by name in `storage`).
/// Members that differ count as the worst of them (smallest MTTF, largest UBER): a lower bound. raid10 and stripes of
/// codes share the size and multiply the rate. Fails as `infeasible`, saying why, for a device without redundancy ("not
/// considered as reliable", section 4.1) and for one whose members' MTTF is not known.
[[nodiscard]] Result<double> mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes);

/// Probability of loss within `duration_s`: 1 - exp(-duration / MTTDL).
[[nodiscard]] double loss_probability(double mttdl_s, double duration_s);

}  // namespace iosig
