// Every byte of the logical file is found where its newest writer put it, and nowhere where nobody wrote.
#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/lookup.h"
#include "iosig/analyze/merge.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

using Pieces = std::vector<Piece>;

Pieces pieces_of(const PatternLookup& lookup, std::int64_t offset, std::int64_t length) {
  Pieces pieces;
  lookup.find(offset, length, [&](const Piece& piece) { pieces.push_back(piece); });
  return pieces;
}

std::string text(const Pieces& pieces) {
  std::string text;
  for (const Piece& piece : pieces)
    text += piece.is_hole ? fmt::format("[{} +{} hole]", piece.logical, piece.length)
                          : fmt::format("[{} +{} id {} at {}]", piece.logical, piece.length, piece.id, piece.physical);
  return text;
}

/// The oracle: a file of bytes, written element by element.
struct Bytes {
  struct Byte {
    bool is_written = false;
    std::int64_t id = 0, physical = 0;
  };
  std::vector<Byte> bytes;

  Bytes(const Pattern& pattern, bool has_ids) {
    const auto vectors = *expanded(pattern);
    for (std::size_t at = 0; at < vectors.size(); at += pattern.columns) {
      const std::int64_t *vector = &vectors[at], length = vector[1];
      if (length > 0 && vector[0] + length > static_cast<std::int64_t>(bytes.size()))
        bytes.resize(static_cast<std::size_t>(vector[0] + length));
      for (std::int64_t n = 0; n < length; ++n)
        bytes[static_cast<std::size_t>(vector[0] + n)] = {true, has_ids ? vector[3] : 0, vector[2] + n};
    }
  }

  [[nodiscard]] Pieces pieces(std::int64_t offset, std::int64_t length) const {
    Pieces found;
    for (std::int64_t at = offset; at < offset + length; ++at) {
      const Byte byte = at < static_cast<std::int64_t>(bytes.size()) ? bytes[static_cast<std::size_t>(at)] : Byte{};
      const bool goes_on = !found.empty() && found.back().is_hole != byte.is_written &&
                           (!byte.is_written || (found.back().id == byte.id &&
                                                 found.back().physical + found.back().length == byte.physical));
      if (goes_on)
        ++found.back().length;
      else
        found.push_back({at, 1, byte.id, byte.physical, !byte.is_written});
    }
    return found;
  }
};

/// Nests as accesses make them: strides that leave gaps, fit, overlap or are 0, upwards and downwards.
class AccessNests {
 public:
  AccessNests(Random& random, bool has_ids) : random_(random) { nest_.columns = has_ids ? 4 : 3; }

  GeneratedNest make(bool is_affine) {
    is_affine_ = is_affine;
    length_ = random_.chance(10) ? 0 : 1 + random_.below(12);
    generate(0, true);
    std::vector<std::int64_t> indices;
    expand();
    std::int64_t least = 0;
    for (std::size_t at = 0; at < nest_.vectors.size(); at += nest_.columns) least = std::min(least, nest_.vectors[at]);
    const std::int64_t shift = random_.below(40) - least;
    for (const std::size_t number : bases_) nest_.numbers[number] += shift;
    nest_.vectors.clear();
    expand();
    nest_.count = nest_.vectors.size() / nest_.columns;
    return nest_;
  }

 private:
  void expand() {
    std::vector<std::int64_t> indices;
    testing::detail::expand(nest_, 0, indices);
  }

  std::int64_t stride() {
    const std::int64_t sign = random_.chance(25) ? -1 : 1;
    switch (random_.below(6)) {
      case 0: return 0;
      case 1: return sign * length_;
      case 2: return sign * (length_ + random_.below(8));
      case 3: return sign * random_.below(length_ + 1);
      case 4: return sign * length_ * (2 + random_.below(6));
      default: return sign * random_.below(120);
    }
  }

  void generate(std::size_t depth, bool is_loop) {
    const std::size_t me = nest_.nodes.size();
    nest_.nodes.push_back({is_loop, 0, static_cast<std::uint32_t>(nest_.numbers.size())});
    if (is_loop) {
      nest_.numbers.push_back(1 + random_.below(6));
      for (std::size_t d = 0; d < depth; ++d)
        nest_.numbers.push_back(is_affine_ && random_.chance(50) ? random_.below(3) - 1 : 0);
      const std::int64_t body = random_.chance(70) ? 1 : 2 + random_.below(2);
      for (std::int64_t n = 0; n < body; ++n) generate(depth + 1, depth < 3 && random_.chance(55));
    } else {
      bases_.push_back(nest_.numbers.size());
      const bool varies = random_.chance(20);
      nest_.numbers.push_back(random_.below(50));
      for (std::size_t d = 0; d < depth; ++d) nest_.numbers.push_back(stride());
      nest_.numbers.push_back(length_ + (varies ? random_.below(8) : 0));
      for (std::size_t d = 0; d < depth; ++d) nest_.numbers.push_back(varies ? random_.below(4) - 1 : 0);
      nest_.numbers.push_back(random_.below(1000));
      for (std::size_t d = 0; d < depth; ++d) nest_.numbers.push_back(random_.chance(50) ? length_ : random_.below(99));
      if (nest_.columns == 4) {
        nest_.numbers.push_back(random_.below(3));
        for (std::size_t d = 0; d < depth; ++d) nest_.numbers.push_back(random_.chance(70) ? 0 : random_.below(3));
      }
    }
    nest_.nodes[me].end = static_cast<std::uint32_t>(nest_.nodes.size());
  }

  Random& random_;
  GeneratedNest nest_;
  std::vector<std::size_t> bases_;
  std::int64_t length_ = 1;
  bool is_affine_ = false;
};

/// Nests, literals and exceptions in a row.
Pattern generated_pattern(Random& random) {
  const bool has_ids = random.chance(70);
  const std::uint32_t columns = has_ids ? 4 : 3;
  auto follows = follows_none;
  if (random.chance(30)) follows[2] = 1;
  PatternBuilder builder(columns, follows);
  const auto literal = [&] {
    return std::array<std::int64_t, max_columns>{random.below(400), random.below(10) - (random.chance(1) ? 2 : 0),
                                                 random.below(1000), random.below(3)};
  };
  const std::int64_t terms = 1 + random.below(5);
  for (std::int64_t n = 0; n < terms; ++n) {
    if (random.chance(25)) {
      for (std::int64_t k = random.below(12); k >= 0; --k) builder.add_literal(literal().data());
      continue;
    }
    const GeneratedNest nest = AccessNests(random, has_ids).make(random.chance(30));
    if (nest.count == 0) continue;
    const std::uint64_t first = builder.count();
    builder.add_nest(nest.nodes, nest.numbers, nest.count);
    if (random.chance(30))
      for (std::uint64_t k = 0; k < nest.count; ++k)
        if (random.chance(15)) builder.add_exception(first + k, literal().data());
  }
  return builder.finish();
}

/// Whether the elements can be looked up at all: lengths and offsets from 0.
bool is_sound(const Pattern& pattern) {
  const auto vectors = *expanded(pattern);
  for (std::size_t at = 0; at < vectors.size(); at += pattern.columns)
    if (vectors[at + 1] < 0 || (vectors[at + 1] > 0 && vectors[at] < 0)) return false;
  return true;
}

void require_equal(const Pieces& found, const Pieces& expected) {
  if (found != expected) REQUIRE(text(found) == text(expected));
}

/// Holds every answer of the lookup against the bytes.
void check_against_bytes(const Pattern& pattern, Random& random) {
  const bool has_ids = pattern.columns == 4;
  const auto lookup = PatternLookup::of(pattern, {.id = has_ids ? 3 : -1});
  REQUIRE_MESSAGE(lookup, lookup.error().message);
  const Bytes bytes(pattern, has_ids);
  const auto size = static_cast<std::int64_t>(bytes.bytes.size());
  REQUIRE(lookup->size() == size);
  require_equal(pieces_of(*lookup, 0, size + 10), bytes.pieces(0, size + 10));
  for (int n = 0; n < 10; ++n) {
    const std::int64_t offset = random.below(size + 5), length = random.below(60);
    require_equal(pieces_of(*lookup, offset, length), bytes.pieces(offset, length));
  }
  Pieces all;
  PieceCursor cursor(*lookup);
  for (Piece piece; cursor.next(piece);) all.push_back(piece);
  require_equal(all, bytes.pieces(0, size));
}

/// for i < trips { (first + i stride, length, physical + i length, id) }
void add_strided(PatternBuilder& builder, std::int64_t first, std::int64_t stride, std::int64_t trips,
                 std::int64_t length, std::int64_t id, std::int64_t physical = 0) {
  const std::array<Node, 2> nodes = {Node{true, 2, 0}, Node{false, 2, 1}};
  const std::array<std::int64_t, 9> numbers = {trips, first, stride, length, 0, physical, length, id, 0};
  builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(trips));
}

}  // namespace

TEST_CASE("lookup: generated patterns of all kinds answer for each byte as if they were expanded") {
  int sound = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    Random random(seed);
    for (int n = 0; n < 500; ++n) {
      const Pattern pattern = generated_pattern(random);
      if (!checked(pattern)) continue;
      CAPTURE(seed);
      CAPTURE(n);
      if (!is_sound(pattern)) {
        CHECK(!PatternLookup::of(pattern, {.id = pattern.columns == 4 ? 3 : -1}));
        continue;
      }
      check_against_bytes(pattern, random);
      ++sound;
    }
  }
  CHECK(sound > 1500);
}

TEST_CASE("lookup: ranks that write in turn are one group, and phases, tiles and shared residues are found in it") {
  Random random(5);
  for (int n = 0; n < 150; ++n) {
    const std::int64_t ranks = 8 + random.below(20), length = 1 + random.below(5), gap = random.below(3);
    const std::int64_t trips = 2 + random.below(5), phases = 1 + random.below(4), rows = 1 + random.below(4);
    const std::int64_t block = length + gap, row = ranks * block * trips, phase = row * rows + random.below(9);
    const bool is_tiled = random.chance(50), overwrites = random.chance(30), is_uneven = random.chance(30);
    PatternBuilder builder(4, follows_none);
    for (std::int64_t p = 0; p < phases; ++p)
      for (std::int64_t r = 0; r < ranks; ++r) {
        const std::int64_t first = (overwrites ? 0 : p * phase) + r * block + (is_uneven ? random.below(6) * block : 0);
        const std::int64_t turns = is_uneven ? 1 + random.below(trips) : trips;
        if (!is_tiled) {
          add_strided(builder, first, ranks * block, turns * rows, length, r, 100 * p);
          continue;
        }
        const std::array<Node, 3> nodes = {Node{true, 3, 0}, Node{true, 3, 1}, Node{false, 3, 3}};
        const std::array<std::int64_t, 15> numbers = {
            rows, turns, 0, first, row, ranks * block, length, 0, 0, 100, length * turns, length, r, 0, 0};
        builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(rows * turns));
      }
    const Pattern pattern = builder.finish();
    REQUIRE(checked(pattern));
    CAPTURE(n);
    check_against_bytes(pattern, random);
    if (!is_uneven) CHECK((*PatternLookup::of(pattern)).groups() > 0);
  }
}

TEST_CASE(
    "lookup: what a detector makes of accesses, exceptions and sums of lengths among it, is looked up as they were") {
  Random random(6);
  for (int n = 0; n < 150; ++n) {
    std::vector<std::int64_t> vectors;
    std::int64_t physical = 0;
    for (std::int64_t phases = 1 + random.below(3); phases > 0; --phases) {
      const GeneratedNest nest = AccessNests(random, true).make(random.chance(30));
      for (std::size_t at = 0; at < nest.vectors.size(); at += 4) {
        std::int64_t logical = nest.vectors[at];
        const std::int64_t length = std::max<std::int64_t>(nest.vectors[at + 1], 0);
        if (logical < 0 || random.chance(2)) logical = random.below(500);
        vectors.insert(vectors.end(), {logical, length, physical, 0});
        physical += length;
      }
    }
    DetectOptions options{.columns = 4};
    if (random.chance(70)) options.follows[2] = 1;
    CAPTURE(n);
    check_against_bytes(detect(vectors, options), random);
  }
}

TEST_CASE("lookup: 10000 ranks that interleave are found by residue, at both ends of the file") {
  constexpr std::int64_t ranks = 10000, block = 4096, trips = 1 << 18;
  PatternBuilder builder(4, follows_none);
  for (std::int64_t r = 0; r < ranks; ++r) add_strided(builder, r * block, ranks * block, trips, block, r);
  const Pattern pattern = builder.finish();
  const auto lookup = PatternLookup::of(pattern);
  REQUIRE(lookup);
  CHECK(lookup->groups() == 1);
  CHECK(lookup->size() == ranks * block * trips);
  for (const std::int64_t rank : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4711}, ranks - 1})
    for (const std::int64_t turn : {std::int64_t{0}, std::int64_t{77}, trips - 1}) {
      const std::int64_t begin = (turn * ranks + rank) * block;
      CHECK(pieces_of(*lookup, begin + 5, 10) == Pieces{{begin + 5, 10, rank, turn * block + 5, false}});
    }
  CHECK(pieces_of(*lookup, lookup->size() - 1, 3) ==
        Pieces{{lookup->size() - 1, 1, ranks - 1, trips * block - 1, false}, {lookup->size(), 2, 0, 0, true}});
}

TEST_CASE("lookup: the paper's worked examples of Algorithms 2 and 3") {
  // read(off=29, len=1) in [0,(3,4,7)^3]: row (29 - 0) / 14 = 2, remainder 1, so the element at 28, with one byte of
  // shift. `off > last: out of range`, as printed, would lose all but the first byte of the last element. The figure
  // with the paper's lengths is lost; here all are 2, and physical is their sum: 12 before the 7th.
  auto follows = follows_none;
  follows[2] = 1;
  PatternBuilder local(3, follows);
  const std::array<Node, 4> nodes = {Node{true, 4, 0}, Node{false, 2, 1}, Node{false, 3, 7}, Node{false, 4, 13}};
  const std::array<std::int64_t, 19> numbers = {3, 0, 14, 2, 0, 0, 0, 3, 14, 2, 0, 0, 0, 7, 14, 2, 0, 0, 0};
  local.add_nest(nodes, numbers, 9);
  const Pattern of_process = local.finish();
  const auto one = PatternLookup::of(of_process, {.id = -1});
  REQUIRE(one);
  CHECK(pieces_of(*one, 29, 1) == Pieces{{29, 1, 0, 13, false}});
  CHECK(pieces_of(*one, 36, 1) == Pieces{{36, 1, 0, 17, false}});  // the last byte of the last element
  // Figure 10: groups of three processes write 10 bytes each in turn, 4 times; (4,7,6), (2,8,9), (4,7,6). Byte 1250 is
  // the first of process 7's second time: 10 * 4 * 1 + 10 * 0 = 40 in its file.
  PatternBuilder global(4, follows_none);
  const std::array<std::array<std::int64_t, 3>, 3> groups = {{{4, 7, 6}, {2, 8, 9}, {4, 7, 6}}};
  for (std::int64_t g = 0; g < 3; ++g)
    for (std::int64_t column = 0; column < 3; ++column)
      add_strided(global, 1000 + 120 * g + 10 * column, 30, 4, 10,
                  groups[static_cast<std::size_t>(g)][static_cast<std::size_t>(column)], g == 2 ? 40 : 0);
  const Pattern of_all = global.finish();
  const auto all = PatternLookup::of(of_all);
  REQUIRE(all);
  CHECK(pieces_of(*all, 1250, 10) == Pieces{{1250, 10, 7, 40, false}});
}

TEST_CASE("lookup: the newest write wins over what lies under it, older ones show beside it") {
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, 10, 10, 10, 1);  // [0, 100) by 1
  const std::array<std::int64_t, 4> over = {35, 30, 500, 2}, nothing = {90, 0, 0, 3};
  builder.add_literal(over.data());
  builder.add_literal(nothing.data());
  const Pattern pattern = builder.finish();
  const auto lookup = PatternLookup::of(pattern);
  REQUIRE(lookup);
  CHECK(pieces_of(*lookup, 0, 120) ==
        Pieces{{0, 35, 1, 0, false}, {35, 30, 2, 500, false}, {65, 35, 1, 65, false}, {100, 20, 0, 0, true}});
  CHECK(lookup->size() == 100);
}

TEST_CASE("lookup: an exception is where it says, and what it replaces is a hole or what was there before") {
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, 20, 5, 10, 1);  // 0, 20, 40, 60, 80
  const std::array<std::int64_t, 4> elsewhere = {70, 5, 900, 7};
  builder.add_exception(2, elsewhere.data());
  builder.add_exception(4, elsewhere.data());
  const Pattern pattern = builder.finish();
  const auto lookup = PatternLookup::of(pattern);
  REQUIRE(lookup);
  CHECK(lookup->size() == 75);  // the element at 80 was never written
  CHECK(pieces_of(*lookup, 20, 55) ==
        Pieces{{20, 10, 1, 10, false}, {30, 30, 0, 0, true}, {60, 10, 1, 30, false}, {70, 5, 7, 900, false}});
}

TEST_CASE("lookup: offsets up to 2^63 - 1 do not overflow") {
  constexpr std::int64_t most = INT64_MAX;
  PatternBuilder builder(4, follows_none);
  add_strided(builder, 0, most - 1, 2, 1, 1);                    // bytes 0 and 2^63 - 2
  add_strided(builder, most - 10, -((most - 10) / 3), 4, 5, 2);  // downwards over all of it
  const Pattern pattern = builder.finish();
  REQUIRE(checked(pattern));
  const auto lookup = PatternLookup::of(pattern);
  REQUIRE(lookup);
  CHECK(lookup->size() == most);
  CHECK(pieces_of(*lookup, most - 12, most) == Pieces{{most - 12, 2, 0, 0, true},
                                                      {most - 10, 5, 2, 0, false},
                                                      {most - 5, 4, 0, 0, true},
                                                      {most - 1, 1, 1, 1, false}});
  CHECK(pieces_of(*lookup, most, 5).empty());
  CHECK(pieces_of(*lookup, 0, most).size() == 9);  // 4 extents (3 divides 2^63 - 11), a byte, 4 holes
}

TEST_CASE("lookup: what cannot be a file, or would have to be expanded beyond measure, is refused") {
  const auto refusal = [](std::array<std::int64_t, 9> numbers, std::int8_t follows = -1) {
    auto all = follows_none;
    all[0] = follows;
    PatternBuilder builder(4, all);
    const std::array<Node, 2> nodes = {Node{true, 2, 0}, Node{false, 2, 1}};
    builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(numbers[0]));
    const Pattern pattern = builder.finish();
    REQUIRE(checked(pattern));
    const auto lookup = PatternLookup::of(pattern);
    return lookup ? "" : lookup.error().message;
  };
  CHECK(refusal({3, 0, 8, 8, 0, 0, 8, 0, 0}).empty());
  CHECK(refusal({3, -8, 8, 8, 0, 0, 8, 0, 0}) == "element 1 has logical offset -8; expected 0 or more");
  CHECK(refusal({3, 0, 8, 1, -1, 0, 8, 0, 0}) == "element 3 has length -1; expected 0 or more");
  CHECK(refusal({2, 0, INT64_MAX - 7, 8, 0, 0, 8, 0, 0}) == "element 2 ends after byte 2^63 - 1");
  CHECK(refusal({1 << 20, 0, 0, 0, 1, 0, 8, 0, 0}, 1).empty());  // expanded: offsets are sums of growing lengths
  CHECK(refusal({1 << 23, 0, 0, 0, 1, 0, 8, 0, 0}, 1).starts_with("term 1 has offsets or lengths that follow sums"));
  CHECK(!PatternLookup::of(Pattern{}));  // one column
}

TEST_CASE("lookup: a triangle whose inner loop runs backwards, and does not turn at all at its corner, has no holes") {
  // Bounds by linear substitution begin below the least offset that there is.
  Detector detector({.columns = 3});
  std::int64_t physical = 0;
  std::vector<bool> is_written(5000);
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t j = 0; j < 9 - i; ++j)
      for (std::int64_t k = 0; k < i + j; ++k, physical += 8) {
        const std::int64_t offset = 3000 + 100 * j - 100 * k;
        detector.push(std::array<std::int64_t, 3>{offset, 8, physical});
        for (std::int64_t byte = offset; byte < offset + 8; ++byte) is_written[static_cast<std::size_t>(byte)] = true;
      }
  const Pattern pattern = detector.finish();
  const auto lookup = PatternLookup::of(pattern, {.id = -1});
  REQUIRE(lookup);
  std::int64_t end = 0;
  lookup->find(0, 5000, [&](const Piece& piece) {
    CHECK(piece.logical == end);
    end += piece.length;
    for (std::int64_t byte = piece.logical; byte < end; ++byte)
      REQUIRE(is_written[static_cast<std::size_t>(byte)] != piece.is_hole);
  });
  CHECK(end == 5000);
}

TEST_CASE("lookup: what goes round permuted places is found, and not expanded") {
  // A nest that fits seven places of eight may reach below 0 where an exception replaces it.
  constexpr std::int64_t places = 64, length = 8, count = (std::int64_t{1} << 22) + 999;
  for (const std::int64_t step : {7919}) {
    const auto offset = [&](std::int64_t n) { return n * step % places * 3 * length; };
    DetectOptions options;
    options.columns = 3;
    options.unsigned_columns = 2;
    options.follows[2] = 1;
    Detector detector(options);
    for (std::int64_t n = 0; n < count; ++n) detector.push(std::array<std::int64_t, 3>{offset(n), length, n * length});
    const Pattern pattern = detector.finish();
    REQUIRE(pattern.count() == count);
    const auto lookup = PatternLookup::of(pattern, {.id = -1});
    REQUIRE(lookup);
    for (std::int64_t n = count - places; n < count; ++n) {
      const Piece piece = lookup->piece_at(offset(n));
      CHECK(!piece.is_hole);
      CHECK(piece.physical == n * length);
    }
    // The merge of two of them, which overlap, is a pattern of that kind, too.
    Pattern other = pattern;
    const std::array<LocalPattern, 2> locals = {LocalPattern{&pattern, 0, 0, 10}, LocalPattern{&other, 1, 11, 20}};
    const auto merged = merge_patterns(locals);
    REQUIRE(merged);
    CHECK(PatternLookup::of(merged->pattern).has_value());
  }
}
