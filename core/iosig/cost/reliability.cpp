#include "iosig/cost/reliability.h"

#include <algorithm>
#include <cmath>

namespace iosig {

double uncorrectable_bit_error_rate(double bit_error_rate, std::uint32_t sector_bits, std::uint32_t ecc_bits) {
  if (bit_error_rate <= 0) return 0;
  if (bit_error_rate >= 1) return 1.0 / (sector_bits - ecc_bits);
  const double n = sector_bits;
  const double odds = std::log(bit_error_rate) - std::log1p(-bit_error_rate);
  // The terms rise to n = N BER and then fall faster than geometrically: stop once they no longer count.
  double sum = 0;
  for (std::uint32_t errors = ecc_bits + 1; errors <= sector_bits; ++errors) {
    const double k = errors;
    const double log_term =
        std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * odds + n * std::log1p(-bit_error_rate);
    const double term = std::exp(log_term);
    sum += term;
    if (k > n * bit_error_rate && term < sum * 1e-18) break;
  }
  return sum / (n - ecc_bits);
}

Result<double> uber_of(const Device& device) {
  if (!device.bit_error_rate) return 0.0;
  if (!(*device.bit_error_rate >= 0 && *device.bit_error_rate <= 1))
    return fail(ErrorKind::bad_input, "the bit error rate of '{}' is {}; expected 0 to 1", device.name,
                *device.bit_error_rate);
  if (device.ecc_bits >= device.sector_bits)
    return fail(ErrorKind::bad_input, "the sectors of '{}' have {} bits and a code that corrects {} of them",
                device.name, device.sector_bits, device.ecc_bits);
  return uncorrectable_bit_error_rate(*device.bit_error_rate, device.sector_bits, device.ecc_bits);
}

double mds_mttdl_s(std::uint32_t data, std::uint32_t parity, double mttf_s, double mttr_s, double uber,
                   double size_bytes) {
  const double lambda = 1 / mttf_s;
  const double mu = 1 / mttr_s;
  const double h = 8 * size_bytes * uber;
  const double d = double{static_cast<double>(data)} + parity;
  double mttdl = 1 / (lambda + h * mu);
  for (std::uint32_t i = 0; i < parity; ++i) mttdl *= mu / lambda;
  for (std::uint32_t i = 0; i <= parity; ++i) mttdl /= d - i;
  return mttdl;
}

namespace {

struct Weakest {
  double mttf_s, uber;
};

/// A member's failures and bit errors: its own, or those that its own redundancy leaves over.
Result<Weakest> weakest_member(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  Weakest weakest{HUGE_VAL, 0};
  const auto count_in = [&](const Device& member, double mttf_s) {
    weakest.mttf_s = std::min(weakest.mttf_s, mttf_s);
    if (member.bit_error_rate)
      weakest.uber = std::max(
          weakest.uber, uncorrectable_bit_error_rate(*member.bit_error_rate, member.sector_bits, member.ecc_bits));
  };
  if (device.redundancy->members.empty()) {  // the device's own values are each member's
    if (!device.mttf_s) return fail(ErrorKind::infeasible, "the mttf of the members of '{}' is not known", device.name);
    count_in(device, *device.mttf_s);
    return weakest;
  }
  for (const std::string& name : device.redundancy->members) {
    const Device* member = storage.find_device(name);
    if (member == nullptr)
      return fail(ErrorKind::infeasible, "the member '{}' of '{}' is not described", name, device.name);
    if (member->mttf_s) {
      count_in(*member, *member->mttf_s);
    } else if (member->redundancy) {
      const auto nested = mttdl_s(storage, *member, size_bytes);
      if (!nested) return pass_on(nested.error());
      weakest.mttf_s = std::min(weakest.mttf_s, *nested);
    } else {
      return fail(ErrorKind::infeasible, "the mttf of '{}', a member of '{}', is not known", name, device.name);
    }
  }
  return weakest;
}

}  // namespace

Result<double> mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  if (!device.redundancy)
    return fail(ErrorKind::infeasible, "'{}' is one simple device, without redundancy", device.name);
  const auto code = code_of(*device.redundancy);
  if (!code) return pass_on(code.error());
  if (code->parity == 0) return fail(ErrorKind::infeasible, "'{}' is a stripe, without redundancy", device.name);
  const auto weakest = weakest_member(storage, device, size_bytes);
  if (!weakest) return pass_on(weakest.error());
  // Groups side by side: each holds its share of the data, and the first one that loses some ends it.
  const double share_bytes = static_cast<double>(size_bytes) / code->groups;
  return mds_mttdl_s(code->data, code->parity, weakest->mttf_s, device.mttr_s, weakest->uber, share_bytes) /
         code->groups;
}

double loss_probability(double mttdl_s, double duration_s) { return -std::expm1(-duration_s / mttdl_s); }

}  // namespace iosig
