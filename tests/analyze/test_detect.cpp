// The detector loses nothing, whatever comes, and finds the nests that made regular input.
#include <doctest/doctest.h>

#include "iosig/analyze/detect.h"
#include "iosig/model/pattern_cursor.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

/// What the detector makes of `vectors`: sound, and standing for just them.
Pattern lossless(const std::vector<std::int64_t>& vectors, DetectOptions options) {
  Pattern pattern = detect(vectors, options);
  REQUIRE_MESSAGE(checked(pattern), checked(pattern).error().message);
  const auto again = expanded(pattern);
  REQUIRE(again);
  REQUIRE(*again == vectors);
  return pattern;
}
Pattern lossless(const std::vector<std::int64_t>& vectors, std::uint32_t columns = 1) {
  return lossless(vectors, {.columns = columns});
}

}  // namespace

TEST_CASE("detect: generated nests, and several of them in a row, come back") {
  Random random(3);
  for (int n = 0; n < 2000; ++n) {
    std::vector<std::int64_t> vectors;
    GeneratedNest nest = generated_nest(random);
    const std::uint32_t columns = nest.columns;
    for (int phase = 0; phase < 4; ++phase) {
      vectors.insert(vectors.end(), nest.vectors.begin(), nest.vectors.end());
      do nest = generated_nest(random);
      while (nest.columns != columns);
    }
    DetectOptions options{.columns = columns};
    if (columns > 1 && random.chance(50)) options.follows[columns - 1] = 0;
    lossless(vectors, options);
  }
}

TEST_CASE("detect: two and three dimensions are one nest") {
  std::vector<std::int64_t> plane, cube;
  for (std::int64_t y = 0; y < 1000; ++y)
    for (std::int64_t x = 0; x < 16; ++x) plane.insert(plane.end(), {524288 * y + 4096 * x, 1024});
  Pattern pattern = lossless(plane, 2);
  CHECK(pattern.terms.size() == 1);
  CHECK(pattern.nodes.size() == 3);
  for (std::int64_t z = 0; z < 20; ++z)
    for (std::int64_t y = 0; y < 24; ++y)
      for (std::int64_t x = 0; x < 8; ++x) cube.push_back(99999999 * z + 204800 * y + 1024 * x);
  pattern = lossless(cube);
  CHECK(pattern.terms.size() == 1);
  CHECK(pattern.nodes.size() == 4);
}

TEST_CASE("detect: triangles, upwards and downwards, are one nest, corners too") {
  std::vector<std::int64_t> up, down;
  for (std::int64_t i = 0; i < 50; ++i)
    for (std::int64_t j = 0; j < i; ++j) up.push_back(1000 * i + 8 * j);
  for (std::int64_t i = 0; i < 50; ++i)
    for (std::int64_t j = 0; j < 50 - i; ++j) down.push_back(1000 * i + 8 * j);
  for (const auto& triangle : {up, down}) {
    const Pattern pattern = lossless(triangle);
    CHECK(pattern.terms.size() == 1);
    CHECK(pattern.nodes.size() == 3);
  }
}

TEST_CASE("detect: a rank map (i + m) mod q is a loop over two loops that share q") {
  std::vector<std::int64_t> ranks;
  for (std::int64_t m = 0; m < 64; ++m)
    for (std::int64_t i = 0; i < 64; ++i) ranks.push_back((i + m) % 64);
  const Pattern pattern = lossless(ranks);
  CHECK(pattern.terms.size() == 1);
  CHECK(pattern.nodes.size() == 5);
}

TEST_CASE("detect: one vector in a hundred that does not fit is kept as an exception") {
  Random random(4);
  std::vector<std::int64_t> noisy;
  std::size_t changed = 0;
  for (std::int64_t n = 0; n < 100000; ++n) {
    const bool is_noise = random.chance(1);
    changed += is_noise ? 1 : 0;
    noisy.insert(noisy.end(), {is_noise ? random.below(1'000'000'000) : 4096 * n, 4096});
  }
  const Pattern pattern = lossless(noisy, 2);
  CHECK(pattern.terms.size() <= 5);
  CHECK(pattern.exception_positions.size() >= changed - 20);
}

TEST_CASE("detect: what differs at even distances is structure, not exceptions") {
  std::vector<std::int64_t> rows;
  for (std::int64_t n = 0; n < 500; ++n) {
    for (std::int64_t i = 0; i < 20; ++i) rows.push_back(21 * n + i);
    rows.push_back(1'000'000 + 5 * n);
  }
  const Pattern pattern = lossless(rows);
  CHECK(pattern.terms.size() < 12);
  CHECK(pattern.exception_positions.size() <= 2);
}

TEST_CASE("detect: random input, few values, and the ends of 64 bits") {
  Random random(5);
  for (const std::int64_t bound : {std::int64_t{1} << 40, std::int64_t{2}, std::int64_t{3}, std::int64_t{10}}) {
    std::vector<std::int64_t> vectors;
    for (int n = 0; n < 3000; ++n) vectors.push_back(random.below(bound));
    for (const std::uint32_t columns : {1u, 2u, 3u}) lossless(vectors, columns);
  }
  std::vector<std::int64_t> ends;
  for (int n = 0; n < 3000; ++n)
    ends.push_back(random.chance(50) ? INT64_MAX - random.below(3) : INT64_MIN + random.below(3));
  lossless(ends);
  ends.clear();
  for (int n = 0; n < 100; ++n) ends.push_back(INT64_MAX - 100 + n);
  for (int n = 0; n < 100; ++n) ends.push_back(INT64_MIN + n);
  lossless(ends);
  ends.clear();
  for (std::int64_t n = 0; n < 100; ++n)
    ends.push_back(static_cast<std::int64_t>(0x123456789abcdef0u * static_cast<std::uint64_t>(n)));
  lossless(ends);
  lossless({});
  lossless({7});
}

TEST_CASE("detect: every short sequence of three values") {
  for (int length = 1; length <= 10; ++length) {
    int all = 1;
    for (int n = 0; n < length; ++n) all *= 3;
    for (int code = 0; code < all; ++code) {
      std::vector<std::int64_t> vectors;
      for (int n = 0, rest = code; n < length; ++n, rest /= 3) vectors.push_back(rest % 3);
      if (*expanded(detect(vectors, {})) != vectors) FAIL("lost: ", code, " of length ", length);
    }
  }
}

TEST_CASE("detect: predicts through the ends of rows, and says how sure it is") {
  Detector detector({.columns = 1});
  std::vector<std::int64_t> rows, next(40);
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t x = 0; x < 10; ++x) rows.push_back(1000 * y + x);
  CHECK(detector.predict(next) == 0);
  CHECK(detector.confidence() == 0);
  for (std::size_t n = 0; n < 105; ++n) detector.push(std::span(&rows[n], 1));
  REQUIRE(detector.predict(next) == 40);
  CHECK(std::equal(next.begin(), next.end(), rows.begin() + 105));
  CHECK(detector.confidence() > 0.95);
}

TEST_CASE("detect: a body of any length up to the window's is a loop once it came three times") {
  Random random(13);
  for (const std::uint32_t window : {1u, 5u, 32u, 64u, 80u})
    for (std::uint32_t length = 1; length <= window; ++length) {
      std::vector<std::int64_t> vectors;
      for (std::uint32_t n = 0; n < length; ++n) vectors.push_back(random.below(1'000'000'000));
      const std::vector<std::int64_t> body = vectors;
      for (std::int64_t turn = 1; turn < 3; ++turn)
        for (const std::int64_t value : body) vectors.push_back(value + 77 * turn);
      const Pattern pattern = lossless(vectors, {.columns = 1, .window = window});
      CHECK(pattern.terms.size() == 1);
      CHECK(pattern.nodes.size() == length + 1);
    }
}

TEST_CASE("detect: a body that is longer than the window is found by its steps") {
  Random random(11);
  std::vector<std::int64_t> body, vectors;
  for (int n = 0; n < 300; ++n) body.push_back(random.below(1'000'000));
  for (std::int64_t turn = 0; turn < 10; ++turn)
    for (const std::int64_t value : body) vectors.push_back(value + 1'000'000 * turn);
  const Pattern pattern = lossless(vectors);
  CHECK(pattern.terms.size() == 1);
  CHECK(pattern.nodes.size() == 301);
}

TEST_CASE("detect: predicts columns that follow others, past exceptions and up to the ends of 64 bits") {
  Random random(12);
  for (int n = 0; n < 300; ++n) {
    const GeneratedNest nest = generated_nest(random);
    if (nest.columns < 2 || nest.count < 10) continue;
    std::vector<std::int64_t> vectors = nest.vectors;
    const std::uint32_t columns = nest.columns;
    for (std::size_t v = columns; v < vectors.size(); v += columns)
      vectors[v + 1] = vectors[v + 1 - columns] + vectors[v - columns];
    DetectOptions options{.columns = columns};
    options.follows[1] = 0;
    Detector detector(options);
    std::vector<std::int64_t> next(5 * columns);
    for (std::size_t v = 0; v < vectors.size(); v += columns) {
      // What is foretold with one vector before it is foretold with the vector itself pushed, one further.
      const std::size_t foretold = detector.predict(next);
      const double confidence = detector.confidence();
      REQUIRE((confidence >= 0 && confidence <= 1));
      detector.push(std::span(vectors).subspan(v, columns));
      if (foretold < 2 ||
          !std::equal(next.begin(), next.begin() + columns, vectors.begin() + static_cast<std::ptrdiff_t>(v)))
        continue;
      std::vector<std::int64_t> after(4 * columns);
      const std::size_t again = detector.predict(after);
      REQUIRE(again >= foretold - 1);
      REQUIRE(std::equal(after.begin(), after.begin() + static_cast<std::ptrdiff_t>((foretold - 1) * columns),
                         next.begin() + columns));
    }
  }
  Detector detector({.columns = 1});
  std::int64_t value = INT64_MAX - 12;
  for (; value < INT64_MAX - 2; ++value) detector.push(std::span(&value, 1));
  std::array<std::int64_t, 8> next{};
  CHECK(detector.predict(next) == 3);
  CHECK(next[2] == INT64_MAX);
}
