#include "iosig/cost/reliability.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "iosig/cost/markov.h"
#include "iosig/cost/structure.h"

namespace iosig {

namespace {

/// Returns log(n!) - log(sqrt(2 pi n) (n / e)^n), n >= 1.
double stirling_error(double n) {
  if (n < 16) return std::lgamma(n + 1) - (n + 0.5) * std::log(n) + n - 0.5 * std::log(2 * std::numbers::pi);
  const double square = n * n;
  return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / square) / square) / square) / square) / n;
}

/// Returns x log(x / mean) + mean - x, x > 0, without cancellation for x close to the mean.
double deviance(double x, double mean) {
  if (std::abs(x - mean) > 0.1 * (x + mean)) return x * std::log(x / mean) + mean - x;
  const double v = (x - mean) / (x + mean);
  double sum = (x - mean) * v, term = 2 * x * v;
  for (int odd = 3;; odd += 2) {
    term *= v * v;
    const double next = sum + term / odd;
    if (next == sum) return sum;
    sum = next;
  }
}

/// Returns the probability of `k` errors among `n` bits. Source: C. Loader, "Fast and accurate computation of binomial
/// probabilities" (2000): avoids sums and differences of logarithms of factorials, which lose as many digits as these
/// have.
double binomial_pmf(double k, double n, double p) {
  if (k == 0) return std::exp(n * std::log1p(-p));
  if (k == n) return std::exp(n * std::log(p));
  const double exponent =
      stirling_error(n) - stirling_error(k) - stirling_error(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p));
  return std::exp(exponent) * std::sqrt(n / (2 * std::numbers::pi * k * (n - k)));
}

}  // namespace

double uncorrectable_bit_error_rate(double bit_error_rate, std::uint32_t sector_bits, std::uint32_t ecc_bits) {
  const double p = bit_error_rate, n = sector_bits, least = ecc_bits + 1.0;
  if (p <= 0) return 0;
  if (p >= 1) return 1 / (n - ecc_bits);
  // From the largest term outwards, each from its neighbour, until the terms are negligible.
  const double mode = std::clamp(std::floor((n + 1) * p), least, n);
  const double largest = binomial_pmf(mode, n, p), odds = p / (1 - p);
  double sum = largest;
  double term = largest;
  for (double k = mode; k < n && term > sum * 1e-18; ++k) sum += term *= (n - k) / (k + 1) * odds;
  term = largest;
  for (double k = mode; k > least && term > sum * 1e-18; --k) sum += term *= k / (n - k + 1) / odds;
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

Result<double> largest_uber(const Storage& storage, const Device& device) {
  if (!device.redundancy || device.redundancy->members.empty()) return uber_of(device);
  double largest = 0;
  for (const std::string& name : device.redundancy->members) {
    const Device* member = storage.find_device(name);
    if (member == nullptr) continue;
    auto uber = largest_uber(storage, *member);
    if (!uber) return uber;
    largest = std::max(largest, *uber);
  }
  return largest;
}

double mds_mttdl_s(std::uint32_t data, std::uint32_t parity, double mttf_s, double mttr_s, double uber,
                   double size_bytes) {
  const double lambda = 1 / mttf_s;
  const double mu = 1 / mttr_s;
  const double h = 8 * size_bytes * uber;
  const double d = double{static_cast<double>(data)} + parity;
  double mttdl = 1 / (lambda + h * mu);
  for (std::uint32_t i = 0; i < parity; ++i) mttdl *= mu / lambda / (d - i);
  return std::min(mttdl / (d - parity), std::numeric_limits<double>::max());
}

namespace {

struct Weakest {
  double mttf_s, uber;
};

/// Returns a member's failures and bit errors: its own, or those that remain after its own redundancy.
Result<Weakest> weakest_member(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  Weakest weakest{HUGE_VAL, 0};
  const auto count_in = [&](const Device& member, double mttf_s) {
    weakest.mttf_s = std::min(weakest.mttf_s, mttf_s);
    if (member.bit_error_rate)
      weakest.uber = std::max(
          weakest.uber, uncorrectable_bit_error_rate(*member.bit_error_rate, member.sector_bits, member.ecc_bits));
  };
  if (device.redundancy->members.empty()) {  // the device's own values are those of each member
    if (!device.mttf_s) return fail(ErrorKind::infeasible, "the mttf of the members of '{}' is not known", device.name);
    count_in(device, *device.mttf_s);
    return weakest;
  }
  for (const std::string& name : device.redundancy->members) {
    const Device* member = storage.find_device(name);
    if (member == nullptr)
      return fail(ErrorKind::infeasible, "the member '{}' of '{}' is not described", name, device.name);
    if (member->redundancy) {
      const auto nested = eq2_mttdl_s(storage, *member, size_bytes);
      if (!nested) return pass_on(nested.error());
      weakest.mttf_s = std::min(weakest.mttf_s, *nested);
    } else if (member->mttf_s) {
      count_in(*member, *member->mttf_s);
    } else {
      return fail(ErrorKind::infeasible, "the mttf of '{}', a member of '{}', is not known", name, device.name);
    }
  }
  return weakest;
}

/// Returns whether Eq. 2 applies: all members are simple devices and equal.
bool stands_on_equal_devices(const Storage& storage, const Device& device) {
  const auto& names = device.redundancy->members;
  const Device* first = names.empty() ? nullptr : storage.find_device(names.front());
  return std::ranges::all_of(names, [&](const std::string& name) {
    const Device* member = storage.find_device(name);
    return member != nullptr && first != nullptr && !member->redundancy && member->mttf_s == first->mttf_s &&
           uber_of(*member).value_or(-1) == uber_of(*first).value_or(-1);
  });
}

}  // namespace

Result<double> eq2_mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  if (!device.redundancy)
    return fail(ErrorKind::infeasible, "'{}' is one simple device, without redundancy", device.name);
  const auto code = code_of(*device.redundancy);
  if (!code) return pass_on(code.error());
  if (code->parity == 0) return fail(ErrorKind::infeasible, "'{}' is a stripe, without redundancy", device.name);
  if (code->local_groups > 0)
    return fail(ErrorKind::infeasible, "'{}' is a local reconstruction code, and Eq. 2 is for MDS codes", device.name);
  const auto weakest = weakest_member(storage, device, size_bytes);
  if (!weakest) return pass_on(weakest.error());
  // Each group holds its share of the data; the first group to lose data ends it.
  const double share_bytes = static_cast<double>(size_bytes) / code->groups;
  return mds_mttdl_s(code->data, code->parity, weakest->mttf_s, device.mttr_s, weakest->uber, share_bytes) /
         code->groups;
}

Result<double> mttdl_s(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  auto chain = structure_of(storage, device, size_bytes).and_then(chain_mttdl_s);
  if (!chain) return chain;
  return stands_on_equal_devices(storage, device)
             ? std::min(*chain, eq2_mttdl_s(storage, device, size_bytes).value_or(*chain))
             : *chain;
}

double loss_probability(double mttdl_s, double duration_s) { return -std::expm1(-duration_s / mttdl_s); }

}  // namespace iosig
