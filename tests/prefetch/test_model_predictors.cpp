// Which predictor a file gets from a model, and from the name for the files that the model does not have.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <unordered_map>

#include "iosig/analyze/detect.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/read_model.h"
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
  const auto predictor = make(path).predictor;
  if (!predictor) return -2;
  (void)predictor->observe({0, 10});
  const auto next = predictor->expected(1);
  return next ? next->offset : -1;
}

std::string json_document(const Pattern& pattern) {
  auto document = pattern_json(pattern);
  document["schema"] = pattern_schema;
  return document.dump();
}

const ReadModel& model() {
  static const ReadModel made{
      {{"/data/a", strided(100)}, {"/data/blocks", BlockTransitions{4096, {{0, 7, 1}}}}, {"/data/b/a", strided(200)}}};
  return made;
}

}  // namespace

TEST_CASE("predictors by model: a file is known by its path, or by the longest path that ends its own") {
  const auto make = predictor_maker("pattern", {model()});
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
    CHECK(second_offset(*predictor_maker("pattern", {model()}), path) == -1);  // there, and it knows nothing yet
    CHECK(second_offset(*predictor_maker("none", {model()}), path) == -2);
  }
  CHECK(second_offset(*predictor_maker("none", {model()}), "/data/a") == 100);
  CHECK_FALSE(*predictor_maker("none"));
  CHECK(predictor_maker("oracle", {model()}).error().kind == ErrorKind::usage);
}

TEST_CASE("predictors by signature: a declared order, pattern or model goes before what an earlier run read") {
  const std::string directory = "/tmp/iosig-declared-" + std::to_string(::getpid());
  REQUIRE(std::filesystem::create_directory(directory));
  const auto file = [&](const std::string& name, const auto& content) {
    std::ofstream(directory + "/" + name, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return directory + "/" + name;
  };
  using Form = DeclaredReads::Form;
  ReadModel two = model();  // "/data/a", "/data/b/a" and "/data/blocks"
  std::ranges::sort(two.files, {}, &FileReads::path);
  const std::unordered_map<std::string, DeclaredReads> declared = {
      {"/data/a", {Form::order, file("order", std::string("iosig.order/1\nrecords 10\n0\n77\n"))}},
      {"/data/binary", {Form::pattern, file("binary", pattern_bytes(strided(300)))}},
      {"/data/json", {Form::pattern, file("json", json_document(strided(400)))}},
      {"/data/only", {Form::pattern, file("only", read_model_bytes({{{"/elsewhere", strided(500)}}}))}},
      {"/data/b/a", {Form::pattern, file("two", read_model_bytes(two))}},
      {"/data/none", {Form::pattern, directory + "/two"}},
      {"/data/absent", {Form::order, directory + "/absent"}},
      {"/data/newer", {Form::order, file("newer", std::string("iosig.order/2\n"))}}};
  const PredictorSources sources{.model = model(), .declared = [&](const std::string& path) {
                                   const auto found = declared.find(path);
                                   return found == declared.end() ? std::nullopt : std::optional(found->second);
                                 }};
  const auto make = predictor_maker("none", sources);
  CHECK(second_offset(*make, "/data/a") == 770);  // the model has 100
  CHECK(second_offset(*make, "/data/binary") == 300);
  CHECK(second_offset(*make, "/data/json") == 400);
  CHECK(second_offset(*make, "/data/only") == 500);         // the model's only file
  CHECK(second_offset(*make, "/data/b/a") == 200);          // the one of three that ends the path
  CHECK(second_offset(*make, "/data/blocks") == 7 * 4096);  // of the run's model
  for (const auto& [path, note] : {std::pair{"/data/none", "two: it has 3 files, but not this one"},
                                   {"/data/absent", "No such file"},
                                   {"/data/newer", "newer:1: version 'iosig.order/2'"}}) {
    CHECK(second_offset(*make, path) == -2);
    CHECK((*make)(path).note.find(note) != std::string::npos);
  }
  file("order", std::string("iosig.order/1\nrecords 10\n0\n55\n5\n"));  // another size: it has changed for sure
  CHECK(second_offset(*make, "/data/a") == 550);
  std::filesystem::remove_all(directory);
}

TEST_CASE("predictors by model: a pattern of too many reads to remember leaves its file to the name") {
  Pattern many = strided(100);
  many.numbers.front() = 1 << 30;  // the trip count
  many.terms.front().count = 1 << 30;
  REQUIRE(checked(many).has_value());
  const auto make = predictor_maker("pattern", {{{{"/data/a", many}}}});
  CHECK(second_offset(*make, "/data/a") == -1);
}
