#include "iosig/analyze/piece_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace iosig {
namespace {

constexpr std::size_t max_pieces = 4096;    ///< of a part
constexpr std::uint64_t bucket_pieces = 4;  ///< at least; less than twice as many
constexpr std::size_t slack = 16;           ///< bytes behind the last field
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 32;

std::uint8_t bits_of(std::uint64_t value) { return static_cast<std::uint8_t>(std::bit_width(value)); }
std::uint8_t zeros_of(std::uint64_t value) {
  return static_cast<std::uint8_t>(value == 0 ? 0 : std::countr_zero(value));
}

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Returns the field of `width` <= 64 bits that begins at bit `at`.
std::uint64_t field_at(const std::uint8_t* bytes, std::uint64_t at, unsigned width) {
  if (width == 0) return 0;
  const unsigned shift = at % 8;
  std::uint64_t value = word_at(bytes + at / 8) >> shift;
  if (width + shift > 64) value |= std::uint64_t{bytes[at / 8 + 8]} << (64 - shift);
  return value & (~std::uint64_t{0} >> (64 - width));
}

/// Writes fields one behind the other into zeroed bytes.
class FieldWriter {
 public:
  explicit FieldWriter(std::uint8_t* bytes) : bytes_(bytes) {}
  void put(std::uint64_t value, unsigned width) {
    const unsigned shift = at_ % 8;
    std::uint8_t* const place = bytes_ + at_ / 8;
    const std::uint64_t word = word_at(place) | value << shift;
    std::memcpy(place, &word, sizeof word);
    if (width + shift > 64) place[8] = static_cast<std::uint8_t>(value >> (64 - shift));
    at_ += width;
  }

 private:
  std::uint8_t* bytes_;
  std::uint64_t at_ = 0;
};

}  // namespace

void PieceTableBuilder::add(const Extent& extent) {
  if (!pending_.empty()) {
    Extent& last = pending_.back();
    if (last.id == extent.id && last.logical + last.length == extent.logical &&
        last.physical + last.length == extent.physical) {
      last.length += extent.length;
      return;
    }
  }
  if (pending_.size() == max_pieces) {
    table_.append_part(pending_);
    pending_.clear();
  }
  pending_.push_back(extent);
}

PieceTable PieceTableBuilder::finish() {
  if (!pending_.empty()) table_.append_part(pending_);
  pending_.clear();
  table_.body_.resize(table_.body_.size() + slack);
  table_.body_.shrink_to_fit();
  return std::exchange(table_, {});
}

/// Example: writes of 64 bytes at 0, 640, 128 and 1280, one after the other. The logical fields are 0, 2, 10 and 20,
/// without 6 trailing zeros, in one bucket; the lengths take no bits; the physical fields are 0, 2, 1 and 3, 2 bits
/// each.
void PieceTable::append_part(std::span<const Extent> extents) {
  Part part;
  part.count = static_cast<std::uint16_t>(extents.size());
  const auto least = [&](std::int64_t Extent::*field) {
    return static_cast<std::uint64_t>(std::ranges::min(extents, {}, field).*field);
  };
  part.logical = least(&Extent::logical);
  part.length = least(&Extent::length);
  part.id = least(&Extent::id);
  part.physical = least(&Extent::physical);
  std::uint64_t logicals = 0, lengths = 0, ids = 0, physicals = 0;  // all bits of the differences
  for (const Extent& each : extents) {
    logicals |= static_cast<std::uint64_t>(each.logical) - part.logical;
    lengths |= static_cast<std::uint64_t>(each.length) - part.length;
    ids |= static_cast<std::uint64_t>(each.id) - part.id;
    physicals |= static_cast<std::uint64_t>(each.physical) - part.physical;
  }
  part.logical_shift = zeros_of(logicals);
  part.physical_shift = zeros_of(physicals);
  part.length_bits = bits_of(lengths);
  part.id_bits = bits_of(ids);
  part.physical_bits = bits_of(physicals >> part.physical_shift);
  part.last = (static_cast<std::uint64_t>(extents.back().logical) - part.logical) >> part.logical_shift;
  while (part.last >> part.bucket_bits > extents.size() / bucket_pieces) ++part.bucket_bits;
  part.buckets = static_cast<std::uint16_t>((part.last >> part.bucket_bits) + 1);
  part.at = body_.size();
  body_.resize(part.at + part.bytes() + slack);

  std::uint8_t* const buckets = body_.data() + part.at;
  const auto set_first = [&](std::uint64_t bucket, std::size_t piece) {
    buckets[2 * bucket] = static_cast<std::uint8_t>(piece);
    buckets[2 * bucket + 1] = static_cast<std::uint8_t>(piece >> 8);
  };
  FieldWriter pieces(buckets + part.bucket_bytes());
  const std::uint64_t in_bucket = (std::uint64_t{1} << part.bucket_bits) - 1;
  std::uint64_t bucket = 0;  // the next one
  for (std::size_t n = 0; n < extents.size(); ++n) {
    const std::uint64_t logical = (static_cast<std::uint64_t>(extents[n].logical) - part.logical) >> part.logical_shift;
    for (; bucket <= logical >> part.bucket_bits; ++bucket) set_first(bucket, n);
    pieces.put(logical & in_bucket, part.bucket_bits);
    pieces.put(static_cast<std::uint64_t>(extents[n].length) - part.length, part.length_bits);
    pieces.put(static_cast<std::uint64_t>(extents[n].id) - part.id, part.id_bits);
    pieces.put((static_cast<std::uint64_t>(extents[n].physical) - part.physical) >> part.physical_shift,
               part.physical_bits);
  }
  for (; bucket <= part.buckets; ++bucket) set_first(bucket, extents.size());
  body_.resize(part.at + part.bytes());
  firsts_.push_back(part.logical);
  parts_.push_back(part);
}

void PieceTable::append(const PieceTable& next) {
  if (next.parts_.empty()) return;
  if (parts_.empty()) {
    *this = next;
    return;
  }
  const std::size_t at = body_.size() - slack;
  body_.resize(at);
  body_.insert(body_.end(), next.body_.begin(), next.body_.end());
  firsts_.insert(firsts_.end(), next.firsts_.begin(), next.firsts_.end());
  for (Part part : next.parts_) {
    part.at += at;
    parts_.push_back(part);
  }
}

std::vector<std::uint8_t> PieceTable::bytes() const {
  std::vector<std::uint8_t> bytes;
  append_bytes(bytes);
  return bytes;
}

void PieceTable::append_bytes(std::vector<std::uint8_t>& to) const {
  const std::uint64_t count = parts_.size();
  const std::size_t heads = count * sizeof(Part);
  to.reserve(to.size() + sizeof count + heads + body_.size());
  const auto append_raw = [&](const void* from, std::size_t bytes) {
    const auto* const first = static_cast<const std::uint8_t*>(from);
    to.insert(to.end(), first, first + bytes);
  };
  append_raw(&count, sizeof count);
  if (heads > 0) append_raw(parts_.data(), heads);
  append_raw(body_.data(), body_.size());
}

Result<PieceTable> PieceTable::read(std::span<const std::uint8_t> bytes, std::string_view source) {
  const auto refuse = [&] { return fail(ErrorKind::bad_input, "{}: expected a table of pieces", source); };
  std::uint64_t count = 0;
  if (bytes.size() < sizeof count + slack || bytes.size() > max_bytes) return refuse();
  std::memcpy(&count, bytes.data(), sizeof count);
  bytes = bytes.subspan(sizeof count);
  if (count > (bytes.size() - slack) / sizeof(Part)) return refuse();
  PieceTable table;
  table.parts_.resize(count);
  if (count > 0) std::memcpy(table.parts_.data(), bytes.data(), count * sizeof(Part));
  bytes = bytes.subspan(count * sizeof(Part));
  table.body_.assign(bytes.begin(), bytes.end());
  const std::uint64_t room = bytes.size() - slack;
  for (const Part& part : table.parts_) {
    const bool has_widths = part.logical_shift < 64 && part.physical_shift < 64 && part.bucket_bits < 64 &&
                            part.length_bits <= 64 && part.id_bits <= 64 && part.physical_bits <= 64;
    if (!has_widths || part.count == 0 || part.count > max_pieces || part.at > room || part.bytes() > room - part.at ||
        part.buckets != (part.last >> part.bucket_bits) + 1 ||
        (!table.firsts_.empty() && part.logical <= table.firsts_.back()))
      return refuse();
    for (std::uint64_t bucket = 0; bucket <= part.buckets; ++bucket)
      if (table.first_in(part, bucket) > (bucket == 0 ? 0 : part.count) ||
          (bucket > 0 && table.first_in(part, bucket) < table.first_in(part, bucket - 1)))
        return refuse();
    if (table.first_in(part, part.buckets) != part.count) return refuse();
    table.firsts_.push_back(part.logical);
  }
  return table;
}

/// Returns the number of the first piece in a bucket or behind it.
std::uint64_t PieceTable::first_in(const Part& part, std::uint64_t bucket) const {
  const std::uint8_t* const place = body_.data() + part.at + 2 * bucket;
  return place[0] | std::uint64_t{place[1]} << 8;
}

std::uint64_t PieceTable::logical_of(const Part& part, std::uint64_t piece, std::uint64_t bucket) const {
  const std::uint8_t* const pieces = body_.data() + part.at + part.bucket_bytes();
  const std::uint64_t low = field_at(pieces, piece * part.piece_bits(), part.bucket_bits);
  return part.logical + ((bucket << part.bucket_bits | low) << part.logical_shift);
}

Piece PieceTable::piece_at(std::int64_t offset) const {
  const auto at = static_cast<std::uint64_t>(offset);
  const auto hole_until = [&](std::uint64_t next) {
    const std::uint64_t length = std::min<std::uint64_t>(next, INT64_MAX) - at;
    return Piece{offset, std::max<std::int64_t>(1, static_cast<std::int64_t>(length)), 0, 0, true};
  };
  // No branch in this search and in the next one depends on what is found: it could not be predicted.
  const std::uint64_t* first_part = firsts_.data();
  for (std::size_t parts = firsts_.size(); parts > 1; parts -= parts / 2)
    first_part = first_part[parts / 2] <= at ? first_part + parts / 2 : first_part;
  const auto part_number = static_cast<std::size_t>(first_part - firsts_.data());
  if (firsts_.empty() || at < *first_part) return hole_until(firsts_.empty() ? INT64_MAX : *first_part);
  const std::uint64_t next_part = part_number + 1 < firsts_.size() ? firsts_[part_number + 1] : INT64_MAX;
  const Part& part = parts_[part_number];

  const std::uint8_t* const pieces = body_.data() + part.at + part.bucket_bytes();
  const std::uint64_t field = std::min((at - part.logical) >> part.logical_shift, part.last);
  std::uint64_t bucket = field >> part.bucket_bits;
  const std::uint64_t bits = part.piece_bits();
  // Their line is fetched together with that of the bucket: about here.
  __builtin_prefetch(pieces + bucket * part.count / part.buckets * bits / 8);
  const std::uint64_t low = field & ((std::uint64_t{1} << part.bucket_bits) - 1);
  const std::uint64_t first = first_in(part, bucket), end = first_in(part, bucket + 1);
  std::uint64_t count = first;  // of the pieces that begin at `offset` or before
  for (std::uint64_t n = first; n < end; ++n) count += field_at(pieces, n * bits, part.bucket_bits) <= low ? 1 : 0;
  if (count == 0) return hole_until(next_part);  // only in a table that was made to deceive
  const std::uint64_t piece = count - 1;
  std::uint64_t its_bucket = bucket;
  while (its_bucket > 0 && first_in(part, its_bucket) > piece) --its_bucket;
  const std::uint64_t logical = logical_of(part, piece, its_bucket);
  std::uint64_t field_begin = piece * bits + part.bucket_bits;
  const std::uint64_t length = part.length + field_at(pieces, field_begin, part.length_bits);
  if (at - logical < length && length <= INT64_MAX - logical && logical <= at) {
    field_begin += part.length_bits;
    const std::uint64_t id = part.id + field_at(pieces, field_begin, part.id_bits);
    field_begin += part.id_bits;
    const std::uint64_t physical =
        part.physical + (field_at(pieces, field_begin, part.physical_bits) << part.physical_shift);
    return {offset, static_cast<std::int64_t>(length - (at - logical)), static_cast<std::int64_t>(id),
            static_cast<std::int64_t>(physical + (at - logical)), false};
  }
  if (count == part.count) return hole_until(next_part);
  while (first_in(part, bucket + 1) <= count) ++bucket;
  return hole_until(std::max(at + 1, logical_of(part, count, bucket)));
}

}  // namespace iosig
