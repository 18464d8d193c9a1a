#include "iosig/trace/column.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "iosig/trace/column_loops.h"

namespace iosig::trace {
namespace {

/// Writes numbers of the same width, the lowest bit first.
class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}

  void put(std::uint64_t value, unsigned bits) {
    held_ |= value << filled_;
    filled_ += bits;
    if (filled_ < 64) return;
    std::memcpy(at_, &held_, sizeof held_);
    at_ += sizeof held_;
    filled_ -= 64;
    held_ = filled_ == 0 ? 0 : value >> (bits - filled_);
  }
  std::byte* finish() {
    for (; filled_ > 0; filled_ -= std::min(filled_, 8U), held_ >>= 8) *at_++ = static_cast<std::byte>(held_ & 0xff);
    return at_;
  }

 private:
  std::byte* at_;
  std::uint64_t held_ = 0;
  unsigned filled_ = 0;  ///< bits of held_; below 64
};

std::uint64_t common_divisor(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return a | b;
  const int twos = std::countr_zero(a | b);
  a >>= std::countr_zero(a);
  while (b != 0) {
    b >>= std::countr_zero(b);
    if (a > b) std::swap(a, b);
    b -= a;
  }
  return a << twos;
}

/// See ColumnDivision.
class Divider {
 public:
  explicit Divider(std::uint64_t divisor) : twos_(std::countr_zero(divisor)), limit_(UINT64_MAX / divisor) {
    const std::uint64_t odd = divisor >> twos_;
    inverse_ = odd;  // right in 3 bits; each step doubles them
    for (int step = 0; step < 5; ++step) inverse_ *= 2 - odd * inverse_;
  }
  /// Returns the quotient; of other numbers than multiples something for which is_multiple() is false.
  [[nodiscard]] std::uint64_t divided(std::uint64_t value) const { return std::rotr(value * inverse_, twos_); }
  [[nodiscard]] bool is_multiple(std::uint64_t quotient) const { return quotient <= limit_; }
  /// The division of a column, for quotients of at most `greatest`.
  [[nodiscard]] ColumnDivision division(std::uint64_t base, std::uint64_t greatest) const {
    return {
        .base = base, .inverse = inverse_, .twos = static_cast<unsigned>(twos_), .limit = std::min(greatest, limit_)};
  }

 private:
  int twos_;
  std::uint64_t limit_, inverse_;
};

struct Granule {
  std::uint64_t granule;    ///< 0: the samples are equal
  std::uint64_t reference;  ///< a value in phase
};

/// The greatest divisor of the differences between samples. One of three groups of them may be out of phase.
Granule granule_of(const std::uint64_t* samples) {
  std::uint64_t group[3];
  for (int n = 0; n < 3; ++n) {
    group[n] = 0;
    for (int at = 5 * n; at < 5 * n + 5 && group[n] != 1; ++at) {
      const std::uint64_t up = samples[at + 1] - samples[at], step = as_signed(up) < 0 ? 0 - up : up;
      if (group[n] == 0 || step % group[n] != 0) group[n] = common_divisor(group[n], step);
    }
  }
  const std::uint64_t first = common_divisor(group[0], group[1]), second = common_divisor(group[1], group[2]),
                      ends = common_divisor(group[0], group[2]);
  if (first >= second && first >= ends) return {first, samples[0]};
  return {std::max(second, ends), samples[15]};
}

/// Chooses base, granule and bits.
void refine(std::span<const std::uint64_t> values, ColumnPlan& plan) {
  const std::size_t count = values.size();
  std::uint64_t samples[16], sorted[16];
  for (std::size_t n = 0; n < 16; ++n) sorted[n] = samples[n] = values[n * (count - 1) / 15];
  std::sort(sorted, sorted + 16, [](std::uint64_t a, std::uint64_t b) { return as_signed(a) < as_signed(b); });
  const Granule found = granule_of(samples);
  const std::uint64_t granule = std::max<std::uint64_t>(found.granule, 1);
  // A few values far below the others are exceptions, and do not widen them.
  const std::uint64_t spread = sorted[14] - sorted[1];
  std::uint64_t base = plan.least;
  if (sorted[1] - base > 2 * spread) base = sorted[1] - std::min(spread / 2, sorted[1] - base);
  const std::uint64_t off_phase = as_signed(found.reference) >= as_signed(base)
                                      ? (found.reference - base) % granule
                                      : (granule - (base - found.reference) % granule) % granule;
  if (off_phase != 0) base -= granule - off_phase;

  const Divider divider(granule);
  const std::size_t stride = count < 128 ? 1 : 4;
  std::uint16_t of_width[66] = {};
  for (std::size_t n = 0; n < count; n += stride) {
    const std::uint64_t quotient = divider.divided(values[n] - base);
    ++of_width[divider.is_multiple(quotient) ? static_cast<unsigned>(std::bit_width(quotient)) : 65];
  }
  const auto exception_bits = [&](unsigned width) { return of_width[width] * stride * (8 + 8 * (width / 7 + 1)); };
  std::uint64_t exceptions_bits = of_width[65] * stride * (8 + 8 * (32 / 7 + 1)), best_cost = UINT64_MAX;
  unsigned best_bits = 0;
  for (unsigned bits = 65; bits-- > 0;) {
    if (of_width[bits] == 0 && bits > 0) continue;  // fewer bits have no more exceptions
    if (const std::uint64_t cost = count * bits + exceptions_bits; cost < best_cost) {
      best_cost = cost;
      best_bits = bits;
    }
    exceptions_bits += exception_bits(bits);
  }
  if (best_cost >= plan.cost_bits) return;
  plan.bits = best_bits;
  plan.cost_bits = best_cost;
  plan.base = base;
  plan.granule = granule;
}

/// Writes values of at most `bits` bits.
std::byte* put_bits(std::span<const std::uint64_t> values, unsigned bits, std::byte* at) {
  if (bits == 0) return at;
  BitWriter out(at);
  std::size_t n = 0;
  if (bits <= 16)  // several at once: most columns are narrow
    for (; n + 4 <= values.size(); n += 4)
      out.put(values[n] | values[n + 1] << bits | values[n + 2] << 2 * bits | values[n + 3] << 3 * bits, 4 * bits);
  for (; n < values.size(); ++n) out.put(values[n], bits);
  return out.finish();
}

/// `quotients`: scratch for as many numbers as there are values.
void write_packed(std::span<const std::uint64_t> values, const ColumnPlan& plan, std::uint64_t* quotients,
                  ByteWriter& out) {
  std::byte* const start = out.at;
  const Divider divider(plan.granule);
  out.byte(plan.bits);
  out.number(plan.granule);
  out.signed_number(plan.base);
  const ColumnDivision division =
      divider.division(plan.base, plan.bits == 64 ? UINT64_MAX : (std::uint64_t{1} << plan.bits) - 1);
  const std::uint32_t exception_count = column_loops().divide(values, division, quotients);
  out.at = put_bits({quotients, values.size()}, plan.bits, out.at);
  out.number(exception_count);
  const std::size_t plain_bytes = (values.size() * plan.plain_bits + 7) / 8 + max_column_overhead / 2;
  std::size_t expected = 0;
  for (std::size_t at = 0, left = exception_count; left > 0; ++at) {
    const std::uint64_t above = values[at] - plan.base, quotient = divider.divided(above);
    if (quotient <= division.limit) continue;
    --left;
    if (static_cast<std::size_t>(out.at - start) > plain_bytes) {  // the estimate was wrong
      out.at = start;
      ColumnPlan plain = plan;
      plain.base = plan.least;
      plain.granule = 1;
      plain.bits = plan.plain_bits;
      return write_packed(values, plain, quotients, out);
    }
    const std::uint64_t minus = divider.divided(0 - above);
    const bool is_multiple = divider.is_multiple(quotient) || divider.is_multiple(minus);
    out.number((at - expected) << 1 | (is_multiple ? 1 : 0));
    out.signed_number(!is_multiple ? above : divider.is_multiple(quotient) ? quotient : 0 - minus);
    expected = at + 1;
  }
}

}  // namespace

ColumnPlan plan_column(std::span<const std::uint64_t> values) noexcept {
  ColumnPlan plan;
  const ColumnSurvey seen = column_loops().survey(values);
  plan.count = static_cast<std::uint32_t>(values.size());
  plan.others = seen.others;
  plan.is_constant = seen.is_constant;
  plan.least = plan.base = static_cast<std::uint64_t>(seen.least);
  if (plan.is_constant) return plan;
  plan.bits = plan.plain_bits = static_cast<unsigned>(
      std::bit_width(static_cast<std::uint64_t>(seen.greatest) - static_cast<std::uint64_t>(seen.least)));
  plan.cost_bits = values.size() * plan.bits;
  if (values.size() >= 16) refine(values, plan);
  return plan;
}

void write_column(std::span<const std::uint64_t> values, const ColumnPlan& plan, unsigned mode, std::uint64_t* scratch,
                  ByteWriter& out) noexcept {
  const auto begin = [&](ColumnKind kind) { out.byte(static_cast<unsigned>(kind) | mode << 4); };
  if (plan.others == 0) return begin(ColumnKind::zeros);
  if (plan.is_constant) {
    begin(ColumnKind::constant);
    return out.signed_number(values[0]);
  }
  if (plan.others < values.size() - values.size() / 4 && plan.cost_bits > values.size()) {
    std::size_t others = 0;
    for (std::size_t n = 0; others < plan.others; ++n) {
      scratch[others] = values[n];
      others += values[n] != 0 ? 1 : 0;
    }
    const std::span<const std::uint64_t> rest(scratch, others);
    const ColumnPlan sparse = plan_column(rest);
    if (values.size() + sparse.cost_bits < plan.cost_bits) {
      begin(ColumnKind::sparse);
      BitWriter bits(out.at);
      for (const std::uint64_t value : values) bits.put(value != 0 ? 1 : 0, 1);
      out.at = bits.finish();
      return write_packed(rest, sparse, scratch + others, out);
    }
  }
  begin(ColumnKind::packed);
  write_packed(values, plan, scratch, out);
}

}  // namespace iosig::trace
