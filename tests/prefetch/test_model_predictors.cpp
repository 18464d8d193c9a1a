// Which predictor a file gets from a model, and from the name for the files that the model does not have.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "iosig/analyze/detect.h"
#include "iosig/prefetch/predictors.h"

using namespace iosig;
using namespace iosig::prefetch;

namespace {

/// Of 20 reads of 10 bytes, each `step` bytes after the one before.
Pattern strided(std::int64_t step) {
  std::vector<std::int64_t> vectors;
  for (std::int64_t n = 0; n < 20; ++n) vectors.insert(vectors.end(), {n * step, 10});
  Pattern pattern = detect(vectors, {.columns = 2});
  pattern.kinds = {Column::logical, Column::length};
  return pattern;
}

/// What follows a read of 10 bytes at 0, as the predictor says that has seen no other.
std::int64_t second_offset(const PredictorMaker& make, const std::string& path) {
  const auto predictor = make(path);
  if (!predictor) return -2;
  (void)predictor->observe({0, 10});
  const auto next = predictor->expected(1);
  return next ? next->offset : -1;
}

const ReadModel& model() {
  static const ReadModel made{
      {{"/data/a", strided(100)}, {"/data/blocks", BlockTransitions{4096, {{0, 7, 1}}}}, {"/data/b/a", strided(200)}}};
  return made;
}

}  // namespace

TEST_CASE("predictors by model: a file is known by its path, or by the longest path that ends its own") {
  const auto make = predictor_maker("pattern", model());
  REQUIRE(make.has_value());
  CHECK(second_offset(*make, "/data/a") == 100);
  CHECK(second_offset(*make, "/data/b/a") == 200);
  CHECK(second_offset(*make, "/mnt/data/a") == 100);     // a mount of / at /mnt
  CHECK(second_offset(*make, "/data/b/data/a") == 100);  // "data/a" ends it, "b/a" does not
  CHECK(second_offset(*make, "/data/data/b/a") == 200);  // both files' names end with "a"
  CHECK(second_offset(*make, "/data/blocks") == 7 * 4096);
}

TEST_CASE("predictors by model: other files get the predictor of the name, or none") {
  for (const char* path : {"/data/aa", "/data/xa", "/b/a", "a", "/"}) {
    CAPTURE(path);
    CHECK(second_offset(*predictor_maker("pattern", model()), path) == -1);  // there, and it knows nothing yet
    CHECK(second_offset(*predictor_maker("none", model()), path) == -2);
  }
  CHECK(second_offset(*predictor_maker("none", model()), "/data/a") == 100);
  CHECK_FALSE(*predictor_maker("none"));
  CHECK(predictor_maker("oracle", model()).error().kind == ErrorKind::usage);
}

TEST_CASE("predictors by model: a pattern of too many reads to remember leaves its file to the name") {
  Pattern many = strided(100);
  many.numbers.front() = 1 << 30;  // the trip count
  many.terms.front().count = 1 << 30;
  REQUIRE(checked(many).has_value());
  const auto make = predictor_maker("pattern", {{{"/data/a", many}}});
  CHECK(second_offset(*make, "/data/a") == -1);
}
