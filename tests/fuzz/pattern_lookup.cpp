// Fuzzes the lookup in patterns. The first byte says what the rest is: the binary form without its checksum, the JSON
// form, or nests and exceptions number by number. What is not too large is held against its elements one by one.
#include <algorithm>

#include "iosig/analyze/lookup.h"
#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/model/pattern_cursor.h"
#include "nest_maker.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

constexpr std::uint64_t compared = 500;  ///< elements

/// The newest of the elements that hold byte `offset`: the one from the end.
Piece byte_at(const std::vector<std::int64_t>& vectors, std::uint32_t columns, std::int64_t offset) {
  for (std::size_t at = vectors.size(); at > 0; at -= columns) {
    const std::int64_t* vector = &vectors[at - columns];
    if (vector[1] > 0 && vector[0] <= offset && offset - vector[0] < vector[1])
      return {offset, 1, columns > 3 ? vector[3] : 0,
              static_cast<std::int64_t>(static_cast<std::uint64_t>(vector[2]) +
                                        static_cast<std::uint64_t>(offset - vector[0])),
              false};
  }
  return {offset, 1, 0, 0, true};
}

bool is_sound(const std::vector<std::int64_t>& vectors, std::uint32_t columns) {
  for (std::size_t at = 0; at < vectors.size(); at += columns) {
    const std::int64_t offset = vectors[at], length = vectors[at + 1];
    if (length < 0 || (length > 0 && (offset < 0 || offset > INT64_MAX - length))) return false;
  }
  return true;
}

void use(const Pattern& pattern) {
  const auto lookup = PatternLookup::of(pattern, {.id = pattern.columns > 3 ? 3 : -1});
  if (pattern.columns < 3) return hold(!lookup, "three columns are needed");
  if (pattern.count() > compared) {
    if (lookup)
      for (const std::int64_t offset : {std::int64_t{0}, lookup->size() / 2, lookup->size() - 1})
        if (offset >= 0) hold(lookup->piece_at(offset).length > 0, "a piece has bytes");
    return;
  }
  const auto vectors = *expanded(pattern);
  if (!lookup) {
    hold(lookup.error().kind == ErrorKind::infeasible || !is_sound(vectors, pattern.columns),
         "what can be a file is not refused", lookup.error().message);
    return;
  }
  hold(is_sound(vectors, pattern.columns), "what cannot be a file is refused");
  std::int64_t size = 0;
  std::vector<std::int64_t> offsets;
  for (std::size_t at = 0; at < vectors.size(); at += pattern.columns) {
    if (vectors[at + 1] == 0) continue;
    const std::int64_t begin = vectors[at], end = begin + vectors[at + 1];
    size = std::max(size, end);
    for (const std::int64_t offset : {begin - 1, begin, begin + 1, end - 1, end})
      if (offset >= 0 && offset < INT64_MAX) offsets.push_back(offset);
  }
  hold(lookup->size() == size, "the size is the end of the last byte");
  for (const std::int64_t offset : offsets) {
    Piece found;
    lookup->find(offset, 1, [&](const Piece& piece) { found = piece; });
    hold(found == byte_at(vectors, pattern.columns, offset), "a byte is where its newest writer put it");
  }
  PieceCursor cursor(*lookup);
  Piece piece;
  std::int64_t end = 0;
  for (std::uint64_t n = 0; n < 4 * compared && cursor.next(piece); ++n) {
    hold(piece.logical == end && piece.length > 0, "pieces follow each other");
    end += piece.length;
    for (const std::int64_t into : {std::int64_t{0}, piece.length / 2, piece.length - 1}) {
      Piece byte = byte_at(vectors, pattern.columns, piece.logical + into);
      const std::uint64_t physical = piece.is_hole ? 0 : static_cast<std::uint64_t>(piece.physical + 0) + into;
      hold(byte == Piece{piece.logical + into, 1, piece.id, static_cast<std::int64_t>(physical), piece.is_hole},
           "every byte of a piece is where its newest writer put it");
    }
  }
}

}  // namespace

void try_one(std::string_view text) {
  if (text.empty()) return;
  const auto kind = static_cast<std::uint8_t>(text.front());
  text.remove_prefix(1);
  if ((kind & 3) == 0) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    const std::uint32_t checksum = crc32c(bytes);
    for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
    if (const auto pattern = pattern_from_bytes(bytes, "file")) use(*pattern);
  } else if ((kind & 3) == 1) {
    if (const auto pattern = pattern_from_json(text, "file")) use(*pattern);
  } else {
    const Pattern pattern = fuzz::NestMaker(text).make();
    if (checked(pattern)) use(pattern);
  }
}
