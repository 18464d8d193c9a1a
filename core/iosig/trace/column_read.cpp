#include <algorithm>
#include <cstring>

#include "iosig/trace/column.h"

namespace iosig::trace {
namespace {

void read_packed(ByteReader& in, std::span<std::uint64_t> values) {
  const unsigned bits = in.byte();
  const std::uint64_t granule = in.number(), base = in.signed_number();
  const std::size_t bytes = (values.size() * bits + 7) / 8;
  if (!in.sound || bits > 64 || bytes > in.bytes.size()) {
    in.sound = false;
    return;
  }
  std::uint64_t bit = 0;
  for (std::uint64_t& value : values) {
    std::uint64_t quotient = 0;
    for (unsigned got = 0; got < bits;) {  // a byte at a time
      const unsigned inside = static_cast<unsigned>(bit % 8), taken = std::min(8 - inside, bits - got);
      const auto byte = static_cast<std::uint64_t>(in.bytes[bit / 8]);
      quotient |= (byte >> inside & ((1U << taken) - 1)) << got;
      got += taken;
      bit += taken;
    }
    value = base + granule * quotient;
  }
  in.bytes = in.bytes.subspan(bytes);
  const std::uint64_t exceptions = in.number();
  std::uint64_t next = 0;
  for (std::uint64_t n = 0; n < exceptions && in.sound; ++n) {
    const std::uint64_t place = in.number(), skipped = place >> 1;
    const std::uint64_t value = base + in.signed_number() * ((place & 1) != 0 ? granule : 1);
    if (skipped >= values.size() - next) {
      in.sound = false;
      return;
    }
    values[next + skipped] = value;
    next += skipped + 1;
  }
}

}  // namespace

unsigned read_column(ByteReader& in, std::span<std::uint64_t> values) {
  const std::uint8_t first = in.byte();
  switch (static_cast<ColumnKind>(first & 0xf)) {
    case ColumnKind::zeros: std::fill(values.begin(), values.end(), 0); break;
    case ColumnKind::constant: std::fill(values.begin(), values.end(), in.signed_number()); break;
    case ColumnKind::packed: read_packed(in, values); break;
    case ColumnKind::sparse: {
      const std::size_t bytes = (values.size() + 7) / 8;
      if (bytes > in.bytes.size()) {
        in.sound = false;
        break;
      }
      const std::span<const std::byte> set = in.bytes.first(bytes);
      in.bytes = in.bytes.subspan(bytes);
      const auto is_set = [&](std::size_t n) { return (static_cast<unsigned>(set[n / 8]) >> (n % 8) & 1) != 0; };
      std::size_t others = 0;
      for (std::size_t n = 0; n < values.size(); ++n) others += is_set(n) ? 1 : 0;
      read_packed(in, values.first(others));
      for (std::size_t n = values.size(); n-- > 0;) values[n] = is_set(n) ? values[--others] : 0;
      break;
    }
    default: in.sound = false;
  }
  return first >> 4;
}

}  // namespace iosig::trace
