// Fuzzes the lookup in patterns. The first byte says what the rest is: the binary form without its checksum, the JSON
// form, or nests and exceptions number by number. What is not too large is held against its elements one by one.
#include <algorithm>

#include "iosig/analyze/lookup.h"
#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"
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

/// Nests and exceptions from bytes, most numbers small.
class Maker {
 public:
  explicit Maker(std::string_view bytes) : bytes_(bytes) {}

  Pattern make() {
    const auto kind = static_cast<unsigned>(next());
    const std::uint32_t columns = 3 + (kind & 1);
    std::array<std::int8_t, most_columns> follows;
    follows.fill(-1);
    if ((kind & 6) == 2) follows[2] = 1;
    if ((kind & 14) == 4) follows[0] = 1;
    PatternBuilder builder(columns, follows);
    while (!bytes_.empty() && builder.count() < 400) {
      nodes_.clear();
      numbers_.clear();
      add_loop(0, columns);
      Pattern alone;
      alone.columns = columns;
      alone.nodes = nodes_;
      alone.numbers = numbers_;
      const std::uint64_t count = count_of(alone);
      if (count == 0 || count > 400) continue;
      const std::uint64_t first = builder.count();
      builder.add_nest(nodes_, numbers_, count);
      for (std::uint64_t n = next() & 7; n > 0 && n < count; n += 1 + static_cast<std::uint64_t>(next() & 15)) {
        const std::array<std::int64_t, 4> vector = {number() & INT64_MAX, next() & 15, number(), 0};
        builder.add_exception(first + n, vector.data());
      }
    }
    return builder.finish();
  }

 private:
  int next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::int64_t number() {
    const int byte = next();
    if (byte >= 0xf8) return static_cast<std::int64_t>((std::uint64_t{1} << (56 + (byte & 7))) - 1);
    return byte < 0x80 ? byte & 31 : -(byte & 15);
  }

  void add_loop(std::size_t depth, std::uint32_t columns) {
    const std::size_t me = nodes_.size();
    nodes_.push_back({true, 0, static_cast<std::uint32_t>(numbers_.size())});
    numbers_.push_back(1 + (next() & 7));
    for (std::size_t d = 0; d < depth; ++d) {
      const int byte = next();
      numbers_.push_back(byte >= 0xe0 ? (byte & 3) - 1 : 0);
    }
    for (int body = 1 + (next() & 1); body > 0; --body) {
      if (depth < 3 && (next() & 1) != 0) {
        add_loop(depth + 1, columns);
        continue;
      }
      nodes_.push_back(
          {false, static_cast<std::uint32_t>(nodes_.size() + 1), static_cast<std::uint32_t>(numbers_.size())});
      for (std::size_t n = 0; n < (depth + 2) * columns; ++n) numbers_.push_back(number());
    }
    nodes_[me].end = static_cast<std::uint32_t>(nodes_.size());
  }

  /// 0 unless the nest is sound.
  static std::uint64_t count_of(Pattern& alone) {
    if (!fault_of(view_of(alone), 0).empty()) return 0;
    return iosig::count_of(view_of(alone), 0, {});
  }

  std::string_view bytes_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

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
    const Pattern pattern = Maker(text).make();
    if (checked(pattern)) use(pattern);
  }
}
