#include "iosig/trace/column.h"

#include <algorithm>
#include <bit>
#include <cstring>

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

/// Divides without a division: for an odd divisor, the inverse modulo 2^64 takes multiples to their quotients, and
/// everything else to numbers above every quotient.
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

 private:
  int twos_;
  std::uint64_t limit_, inverse_;
};

struct Plan {
  std::uint64_t base = 0, granule = 1;
  unsigned bits = 0;
  std::uint64_t cost_bits = 0;
  unsigned plain_bits = 0;  ///< the width without granule and exceptions
  std::uint64_t least = 0;  ///< base of that
};

std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

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
      const std::int64_t step = as_signed(samples[at + 1] - samples[at]);
      group[n] = common_divisor(group[n], step < 0 ? 0 - static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step));
    }
  }
  const std::uint64_t first = common_divisor(group[0], group[1]), second = common_divisor(group[1], group[2]),
                      ends = common_divisor(group[0], group[2]);
  if (first >= second && first >= ends) return {first, samples[0]};
  return {std::max(second, ends), samples[15]};
}

Plan plan_of(std::span<const std::uint64_t> values) {
  const std::size_t count = values.size();
  std::int64_t least = as_signed(values[0]), greatest = least;
  for (const std::uint64_t value : values) {
    least = std::min(least, as_signed(value));
    greatest = std::max(greatest, as_signed(value));
  }
  Plan plan;
  plan.least = plan.base = static_cast<std::uint64_t>(least);
  plan.bits = plan.plain_bits =
      static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least)));
  plan.cost_bits = count * plan.bits;
  if (count < 16 || plan.bits == 0) return plan;

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
  std::uint16_t of_width[2][66] = {};
  std::size_t n = 0;
  for (const std::uint64_t value : values) {
    const std::uint64_t quotient = divider.divided(value - base);
    ++of_width[n++ & 1][divider.is_multiple(quotient) ? static_cast<unsigned>(std::bit_width(quotient)) : 65];
  }
  std::uint64_t exceptions_bits = 0;
  std::uint64_t best_cost = UINT64_MAX;
  for (int bits = 65; bits >= 0; --bits) {
    if (bits < 65 && count * static_cast<unsigned>(bits) + exceptions_bits < best_cost) {
      best_cost = count * static_cast<unsigned>(bits) + exceptions_bits;
      plan.bits = static_cast<unsigned>(bits);
    }
    const unsigned here = of_width[0][bits] + of_width[1][bits];
    const unsigned width = bits == 65 ? 32 : static_cast<unsigned>(bits);
    exceptions_bits += here * (8 + 8 * (width / 7 + 1));
  }
  if (best_cost >= plan.cost_bits) {
    plan.bits = plan.plain_bits;
    return plan;
  }
  plan.cost_bits = best_cost;
  plan.base = base;
  plan.granule = granule;
  return plan;
}

void write_packed(std::span<const std::uint64_t> values, const Plan& plan, ByteWriter& out) {
  std::byte* const start = out.at;
  const Divider divider(plan.granule);
  const auto packed_of = [&](std::uint64_t value) { return divider.divided(value - plan.base); };
  const auto fits = [&](std::uint64_t quotient) {
    return divider.is_multiple(quotient) && (plan.bits == 64 || quotient >> plan.bits == 0);
  };
  std::uint32_t exceptions = 0;
  if (plan.bits > 0)
    for (const std::uint64_t value : values) exceptions += fits(packed_of(value)) ? 0 : 1;
  else
    for (const std::uint64_t value : values) exceptions += value != plan.base ? 1 : 0;
  out.byte(plan.bits);
  out.number(plan.granule);
  out.signed_number(plan.base);
  out.number(exceptions);
  if (plan.bits > 0) {
    BitWriter bits(out.at);
    for (const std::uint64_t value : values) {
      const std::uint64_t quotient = packed_of(value);
      bits.put(exceptions == 0 || fits(quotient) ? quotient : 0, plan.bits);
    }
    out.at = bits.finish();
  }
  if (exceptions == 0) return;
  const std::size_t plain_bytes = (values.size() * plan.plain_bits + 7) / 8 + max_column_overhead / 2;
  std::size_t expected = 0;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (fits(packed_of(values[at]))) continue;
    if (static_cast<std::size_t>(out.at - start) > plain_bytes) {  // the estimate was wrong
      out.at = start;
      Plan plain = plan;
      plain.base = plan.least;
      plain.granule = 1;
      plain.bits = plan.plain_bits;
      return write_packed(values, plain, out);
    }
    const std::uint64_t above = values[at] - plan.base, quotient = packed_of(values[at]), minus = divider.divided(0 - above);
    const bool is_multiple = divider.is_multiple(quotient) || divider.is_multiple(minus);
    out.number((at - expected) << 1 | (is_multiple ? 1 : 0));
    out.signed_number(!is_multiple ? above : divider.is_multiple(quotient) ? quotient : 0 - minus);
    expected = at + 1;
  }
}

struct Look {
  std::uint64_t any = 0, differing = 0;  ///< bits
};

Look look_at(std::span<const std::uint64_t> values) {
  Look look;
  for (const std::uint64_t value : values) {
    look.any |= value;
    look.differing |= value ^ values[0];
  }
  return look;
}

}  // namespace

std::uint64_t column_bits(std::span<const std::uint64_t> values) noexcept {
  if (look_at(values).differing == 0) return 0;
  const Plan plan = plan_of(values);
  std::uint64_t others = 0;
  for (const std::uint64_t value : values) others += value != 0 ? 1 : 0;
  return std::min(plan.cost_bits, values.size() + others * plan.plain_bits);
}

void write_column(std::span<const std::uint64_t> values, unsigned mode, std::uint64_t* scratch,
                  ByteWriter& out) noexcept {
  const auto begin = [&](ColumnKind kind) { out.byte(static_cast<unsigned>(kind) | mode << 4); };
  const Look look = look_at(values);
  if (look.any == 0) return begin(ColumnKind::zeros);
  if (look.differing == 0) {
    begin(ColumnKind::constant);
    return out.signed_number(values[0]);
  }
  const Plan dense = plan_of(values);
  std::size_t others = 0;
  for (const std::uint64_t value : values) {
    scratch[others] = value;
    others += value != 0 ? 1 : 0;
  }
  if (others < values.size() - values.size() / 4 && dense.cost_bits > values.size()) {
    const std::span<const std::uint64_t> rest(scratch, others);
    const Plan sparse = plan_of(rest);
    if (values.size() + sparse.cost_bits < dense.cost_bits) {
      begin(ColumnKind::sparse);
      BitWriter bits(out.at);
      for (const std::uint64_t value : values) bits.put(value != 0 ? 1 : 0, 1);
      out.at = bits.finish();
      return write_packed(rest, sparse, out);
    }
  }
  begin(ColumnKind::packed);
  write_packed(values, dense, out);
}

}  // namespace iosig::trace
