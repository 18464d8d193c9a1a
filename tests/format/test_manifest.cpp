// Manifests keep every byte of a name, and damage of any kind shows.
#include <doctest/doctest.h>

#include "iosig/format/manifest.h"

using namespace iosig;

namespace {

Manifest sample_manifest() {
  Manifest manifest{
      "5f0c.two\nlines\\\r\xff", "/home/ann/out put\n\xff", {}, 4096, 1'795'240'737'123'456'789, 1'795'240'740,
      std::string(64, 'a')};
  manifest.signature.tamperproof = true;
  return manifest;
}

}  // namespace

TEST_CASE("manifest: it comes back as it was written, whatever bytes its names have") {
  const auto back = parse_manifest(manifest_text(sample_manifest()), "m");
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(*back == sample_manifest());
}

TEST_CASE("manifest: cut at any byte or changed in any bit, it is refused with its line") {
  const std::string whole = manifest_text(sample_manifest());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto cut = parse_manifest(whole.substr(0, length), "m");
    REQUIRE_FALSE(cut);
    CHECK(cut.error().kind == ErrorKind::bad_input);
    CHECK(cut.error().message.starts_with("m:"));
  }
  for (std::size_t bit = whole.find('\n') * 8; bit < whole.size() * 8;
       ++bit) {  // the first line's words are for people
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(parse_manifest(changed, "m"));
  }
}

TEST_CASE("manifest: its name fits beside the longest name, and is not cut within a character") {
  CHECK(manifest_name("data") == "data.sha256");
  CHECK(manifest_name(std::string(255, 'x')).size() == 255);
  std::string umlauts;
  while (umlauts.size() < 254) umlauts += "\xc3\xa4";
  CHECK(manifest_name("x" + umlauts) == "x" + umlauts.substr(0, 246) + ".sha256");
}
