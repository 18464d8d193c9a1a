#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/format/presets.h"
#include "iosig/format/signature_text.h"

using namespace iosig;

namespace {

Signature signature_of(std::string_view text, const SignatureDefinitions& definitions = {}) {
  const auto signature = parse_signature(text, definitions);
  REQUIRE_MESSAGE(signature.has_value(), text);
  return *signature;
}

std::string signature_refusal(std::string_view text) {
  const auto signature = parse_signature(text);
  REQUIRE_FALSE_MESSAGE(signature.has_value(), text);
  CHECK(signature.error().kind == ErrorKind::bad_input);
  return signature.error().message;
}

/// The parameter with a value of the kind of its example: a number, a size, a time, a share or a file.
std::string with_random_value(const ParameterInfo& parameter, std::mt19937_64& random) {
  const std::string_view example = parameter.example;
  const double number =
      std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 60) - 20);
  std::string value(example);
  if (parse_count(example))
    value = fmt::format("{}", 1 + random() % 64);
  else if (parse_share(example))
    value = fmt::format("{}", static_cast<double>(random() >> 11) * 0x1p-53);
  else if (parse_bytes(example))
    value = bytes_text(1 + (random() >> (1 + random() % 62)));
  else if (parse_seconds(example))
    value = seconds_text(number);
  else if (example.find('.') != std::string_view::npos)
    value = fmt::format("\"{}{}\"", "a /,()~"[random() % 7], example);
  return example.empty() ? std::string(parameter.name) : fmt::format("{}({})", parameter.name, value);
}

}  // namespace

TEST_CASE("signature: each parameter stands in the docs") {
  const std::string page = *read_file(IOSIG_TEST_DATA "/../../docs/formats/signature.md");
  for (const ParameterInfo& parameter : signature_parameters()) {
    CAPTURE(parameter.name);
    const std::string name(parameter.name);
    CHECK(page.find("`" + name + (parameter.example.empty() ? "`" : "(")) != std::string::npos);
  }
}

TEST_CASE("signature: each parameter's example is understood, changes the signature, and is printed again") {
  for (const ParameterInfo& parameter : signature_parameters()) {
    const std::string text = parameter.example.empty() ? std::string(parameter.name)
                                                       : fmt::format("{}({})", parameter.name, parameter.example);
    CAPTURE(text);
    const Signature signature = signature_of(text);
    CHECK(signature != Signature{});
    CHECK(signature_text(signature).starts_with(parameter.name));
    CHECK(signature_of(signature_text(signature)) == signature);
  }
}

TEST_CASE("signature: every parameter of the paper's section 3, and read-share and duration of ours, is understood") {
  const Signature s = signature_of(
      "global random persist size-per-IO(16MB) totalsize(6GB) MTTDL(20y) availability(1e-6) duration(2h) archive "
      "tamperproof read-share(30%)");
  CHECK(s.visibility == Visibility::global);
  CHECK(s.access == AccessOrder::random);
  CHECK(s.lifetime == Lifetime::persist);
  CHECK(s.bytes_per_io == 16 * MiB);
  CHECK(s.total_bytes == 6 * GiB);
  CHECK(s.mttdl_s == 20 * year_s);
  CHECK(s.availability == 1e-6);
  CHECK(s.duration_s == 7200.0);
  CHECK(s.archive);
  CHECK(s.tamperproof);
  CHECK(*s.read_share == doctest::Approx(0.3));
}

TEST_CASE("signature: pattern and order name a file, and replace each other") {
  CHECK(signature_of("pattern(field.reads)").reads == DeclaredReads{DeclaredReads::Form::pattern, "field.reads"});
  CHECK(signature_of("order(\"my (first) epoch\")").reads ==
        DeclaredReads{DeclaredReads::Form::order, "my (first) epoch"});
  CHECK(signature_text(signature_of("order(\"my (first) epoch\")")) == "order(\"my (first) epoch\")");
  CHECK(signature_of(signature_text(signature_of("order(\" a \")"))).reads->file == " a ");
  CHECK(signature_text(signature_of("order(a b, c)")) == "order(a b, c)");
  const SignatureDefinitions definitions{{"epoch", signature_of("order(a)")}};
  CHECK(signature_of("epoch pattern(b)", definitions) == signature_of("pattern(b)"));
  CHECK(signature_refusal("pattern(a) order(b)").find("'order' contradicts 'pattern'") != std::string::npos);
  CHECK(signature_refusal("order").find("'order' needs a value") != std::string::npos);
  CHECK(signature_refusal("order(a\"b)").find("without quotation marks") != std::string::npos);
}

TEST_CASE("signature: order(random) is no file of that name, but a mistake for random") {
  for (const char* word : {"random", "sequential"}) {
    CHECK(signature_refusal(fmt::format("order({})", word)).find(fmt::format("declared by '{}' alone", word)) !=
          std::string::npos);
    CHECK(signature_of(fmt::format("order(./{})", word)).reads->file == fmt::format("./{}", word));
    CHECK_FALSE(signature_of(word).reads);
  }
}

TEST_CASE("signature: blanks, commas and quotes are free") {
  CHECK(signature_of("local , temp,size-per-IO( \"64 KB\" )totalsize (\"1EB\")") ==
        signature_of("local temp size-per-IO(64KB) totalsize(1EB)"));
  CHECK(signature_of("") == Signature{});
  CHECK(signature_of(" \n\t ") == Signature{});
}

TEST_CASE("signature: a use overrides its definition, also by the opposite parameter") {
  const ParsedSignature defined = parse_sigdef("checkpoint global persist size-per-IO(16MB)");
  REQUIRE(defined.ok());
  CHECK(defined.name == "checkpoint");
  const SignatureDefinitions definitions{{defined.name, defined.signature}};
  CHECK(signature_of("checkpoint local size-per-IO(4KB)", definitions) ==
        signature_of("local persist size-per-IO(4KB)"));
  CHECK(signature_of("checkpoint", definitions) == defined.signature);
  CHECK(signature_refusal("checkpont").find("unknown parameter") != std::string::npos);
  CHECK(parse_signature("temp checkpoint", definitions).error().message.find("'checkpoint' names a definition") !=
        std::string::npos);
  CHECK(parse_signature("checkpont", definitions).error().message.find("did you mean 'checkpoint'") !=
        std::string::npos);
}

TEST_CASE("signature: contradictions in one pragma are refused and name both places") {
  for (const char* text : {"global local", "random sequential", "persist temp"}) {
    const ParsedSignature result = parse_sig(text);
    CAPTURE(text);
    REQUIRE(result.diagnostics.size() == 1);
    CHECK_FALSE(result.ok());
    CHECK(result.diagnostics[0].message.find("contradicts") != std::string::npos);
    REQUIRE(result.diagnostics[0].other);
    CHECK(result.diagnostics[0].other->begin == 0);
  }
}

TEST_CASE("signature: a parameter given twice is a warning and the last one counts") {
  const ParsedSignature result = parse_sig("totalsize(1GB) totalsize(2GB)");
  CHECK(result.ok());
  REQUIRE(result.diagnostics.size() == 1);
  CHECK(result.diagnostics[0].severity == Diagnostic::Severity::warning);
  CHECK(result.signature.total_bytes == 2 * GiB);
  CHECK(parse_sig("temp temp temp persist persist").diagnostics.size() == 4);  // one for each word after the first
}

TEST_CASE("signature: an error names line, column, what was expected and the nearest name") {
  const std::string message = signature_refusal("persist\n  randm size-per-IO(1KB)");
  CHECK(message.find("signature:2:3: error: unknown parameter 'randm'; did you mean 'random'?") == 0);
  CHECK(message.find("\n    randm size-per-IO(1KB)\n    ^~~~~") != std::string::npos);
}

TEST_CASE("signature: all errors of a text are reported together") {
  const ParsedSignature result = parse_sig("foo size-per-IO(0) random(3) totalsize");
  CHECK(result.diagnostics.size() == 4);
}

TEST_CASE("signature: malformed texts are refused with their place") {
  CHECK(signature_refusal("size-per-IO").find("needs a value, e.g. size-per-IO(16MB)") != std::string::npos);
  CHECK(signature_refusal("size-per-IO()").find("needs a value") != std::string::npos);
  CHECK(signature_refusal("size-per-IO(16 parsecs)").find("unit of size") != std::string::npos);
  CHECK(signature_refusal("totalsize(-1GB)").find("negative") != std::string::npos);
  CHECK(signature_refusal("MTTDL(20)").find("no unit") != std::string::npos);
  CHECK(signature_refusal("global(yes)").find("takes no value") != std::string::npos);
  CHECK(signature_refusal("size-per-IO(16MB").find("not closed") != std::string::npos);
  CHECK(signature_refusal("size-per-IO(\"16MB)").find("not closed") != std::string::npos);
  CHECK(signature_refusal("size-per-IO((16MB))").find("no parentheses") != std::string::npos);
  CHECK(signature_refusal(") global").find("signature:1:1: error: expected a parameter name") == 0);
  CHECK(signature_refusal("global; local").find("found ';'") != std::string::npos);
  CHECK(signature_refusal("availability(2)").find("above 1") != std::string::npos);
}

TEST_CASE("sigdef: a definition needs a name of its own") {
  CHECK_FALSE(parse_sigdef("").ok());
  CHECK_FALSE(parse_sigdef("global random").ok());
  CHECK_FALSE(parse_sigdef("scratch(3) random").ok());
  CHECK(parse_sigdef("scratch availability(1e-6)").ok());  // the use may add the duration
}

TEST_CASE("signature: whatever parameters and values are given, the printed signature is the same one") {
  std::mt19937_64 random(2);
  std::set<std::string_view> tried;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (const ParameterInfo& parameter : signature_parameters()) {
      if (random() % 2 == 0) continue;
      const std::string more = fmt::format("{} {}", text, with_random_value(parameter, random));
      if (!parse_sig(more).ok()) continue;  // it contradicts one before
      text = more;
      tried.insert(parameter.name);
    }
    const Signature given = signature_of(text);
    const std::string printed = signature_text(given);
    REQUIRE_MESSAGE(signature_of(printed) == given, text);
    REQUIRE(signature_text(signature_of(printed)) == printed);
  }
  for (const ParameterInfo& parameter : signature_parameters()) {
    CAPTURE(parameter.name);
    CHECK(tried.contains(parameter.name));
  }
}

TEST_CASE("signature: no text makes the parser fail other than by a diagnostic inside the text") {
  const std::vector<std::string> pieces{
      "global", "local", "(",    ")",        "\"",    "size-per-IO",       "16MB", " ", ",",
      "-",      "\n",    "\xff", "(1e999y)", "MTTDL", "availability(0.1)", "%"};
  std::mt19937_64 random(3);
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
    const ParsedSignature result = parse_sig(text);
    for (const Diagnostic& d : result.diagnostics) {
      REQUIRE(d.at.begin <= d.at.end);
      REQUIRE(d.at.end <= text.size());
      REQUIRE_FALSE(diagnostic_text(d, text, "x").empty());
    }
    if (result.ok()) REQUIRE(signature_of(signature_text(result.signature)) == result.signature);
  }
}

TEST_CASE("presets: each is a signature in canonical text, with a name that no parameter has") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    CHECK(signature_text(signature_of(preset.signature)) == preset.signature);
    CHECK(signature_of(preset.name) == signature_of(preset.signature));
    CHECK(parse_sigdef(fmt::format("{} temp", preset.name)).ok());  // a parameter's name would be refused
  }
}

TEST_CASE("presets: data management systems' streams are as the paper's section 8 lists them") {
  const Signature hot = signature_of("hot-data"), warm = signature_of("warm-data"), cold = signature_of("cold-data");
  CHECK(hot.access == AccessOrder::random);
  for (const Signature& data : {hot, warm, cold, signature_of("database-table"), signature_of("versioned-store")})
    CHECK(data.lifetime == Lifetime::persist);
  CHECK(cold.archive);
  CHECK(*hot.bytes_per_io < *warm.bytes_per_io);
  CHECK(*warm.bytes_per_io < *cold.bytes_per_io);
  CHECK(signature_of("database-table").access == AccessOrder::random);
  for (const char* appended : {"transaction-log", "rollback-log", "versioned-store"})
    CHECK(signature_of(appended).access == AccessOrder::sequential);
  CHECK(*signature_of("transaction-log").bytes_per_io < *signature_of("rollback-log").bytes_per_io);
}

TEST_CASE("presets: a use overrides them, and a definition of the same name takes their place") {
  CHECK(signature_of("checkpoint temp size-per-IO(1MB)") == signature_of("temp sequential size-per-IO(1MB)"));
  const SignatureDefinitions own{{"checkpoint", signature_of("local")}};
  CHECK(signature_of("checkpoint", own) == signature_of("local"));
  CHECK(signature_refusal("scrach").find("did you mean 'scratch'") != std::string::npos);
  CHECK(signature_refusal("temp scratch").find("'scratch' names a preset; expected it first") != std::string::npos);
}
