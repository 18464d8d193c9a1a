// A plan is read back as it was written, or refused with its place.
#include <doctest/doctest.h>

#include "iosig/base/units.h"
#include "iosig/format/plan_text.h"
#include "support/text.h"

using namespace iosig;
using iosig::testing::has;

namespace {

/// Two servers with disks and one with an SSD; a file of three regions, one of which moves.
Plan small_plan() {
  Plan plan;
  plan.application = "solver";
  plan.servers.classes = {{"hdd", 2, {8e-3, 1e-8}, {9e-3, 1.1e-8}, {}},
                          {"ssd", 1, {1e-4, 4e-9}, {1.5e-4, 1.0 / 3e8}, 43 * MiB}};
  plan.servers.network = {1e-4, 1 / 117e6};
  plan.servers.processes = 32;
  plan.servers.processes_per_node = 8;
  plan.server_names = {{"h0", "h1"}, {"s0"}};
  plan.window_s = 600;
  plan.files = {{"/data/a b%\xff", 150 * MiB}};
  plan.regions = {{0, 0, 0, 64 * MiB}, {0, 1, 64 * MiB, 64 * MiB}, {0, 2, 128 * MiB, 22 * MiB}};
  const Stripes slow{256 * KiB, 0}, fast{0, 128 * KiB};
  plan.windows = {{-5, 595, 1.25, 2.5, 0, {{slow, 10, 0.1, 0.1}, {fast, 90, 0.2, 1.2}, {slow, 0, 0, 0}}, {}},
                  {595,
                   1195,
                   1.0 / 3,
                   2,
                   0.7,
                   {{fast, 70, 0.2, 1.2}, {slow, 3, 0.2, 0.2}, {slow, 0, 0, 0}},
                   {{1, fast, slow}, {0, slow, fast}}}};
  return plan;
}

std::string plan_refusal(const std::string& text) {
  const auto plan = parse_plan(text, "a.plan");
  REQUIRE_FALSE(plan);
  CHECK(plan.error().kind == ErrorKind::bad_input);
  CHECK(plan.error().message.starts_with("a.plan: "));
  return plan.error().message;
}

std::string plan_refusal(void (*spoil)(Plan&)) {
  Plan plan = small_plan();
  spoil(plan);
  return plan_refusal(plan_text(plan));
}

}  // namespace

TEST_CASE("plan: what was written is read back, to the last bit of its numbers") {
  const Plan plan = small_plan();
  REQUIRE(checked(plan).has_value());
  const auto read = parse_plan(plan_text(plan), "a.plan");
  REQUIRE_MESSAGE(read.has_value(), read.error().message);
  CHECK(*read == plan);
  Plan paper = plan;
  paper.algorithm = PlanAlgorithm::paper;
  CHECK(parse_plan(plan_text(paper), "a.plan").value() == paper);
  CHECK(requests_of(plan.windows[0]) == 100);
}

TEST_CASE("plan: a cut text, and a changed byte anywhere in it, are refused") {
  const std::string whole = plan_text(small_plan());
  for (std::size_t size = 0; size < whole.size() - 1; size += 7) (void)plan_refusal(whole.substr(0, size));
  for (std::size_t at = 0; at < whole.size() - 1; at += 3) {
    std::string changed = whole;
    changed[at] = changed[at] == '1' ? '2' : '1';
    CAPTURE(changed);
    (void)plan_refusal(changed);
  }
}

TEST_CASE("plan: another version, unknown and missing keys are refused with their place") {
  std::string next = plan_text(small_plan());
  next.replace(next.find("iosig.plan/1"), 12, "iosig.plan/2");
  CHECK(has(plan_refusal(next), "this is 'iosig.plan/2'; this iosig reads 'iosig.plan/1'"));
  CHECK(has(plan_refusal("{}"), "schema: expected 'iosig.plan/1'"));
  CHECK(has(plan_refusal("[]"), "no JSON object"));
  CHECK(has(plan_refusal(R"({"schema":"iosig.plan/1"})"), "checksum: expected"));
  CHECK(has(plan_refusal(R"({"schema":"iosig.plan/1","checksum":"00000000"})"), "checksum: does not agree"));
}

TEST_CASE("plan: in a changed text whose checksum is right, each wrong value is refused with its place") {
  const std::string whole = plan_text(small_plan());
  CHECK(with_plan_checksum(whole) == whole);
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return plan_refusal(with_plan_checksum(text.replace(at, from.size(), to)));
  };
  CHECK(has(changed("\"window_s\"", "\"windows_s\""), "unknown key 'windows_s'; did you mean 'window_s'?"));
  CHECK(has(changed("\"home\":0,", ""), "servers: expected the key 'home'"));
  CHECK(has(changed("\"home\":0", "\"home\":-1"), "servers.home: expected a whole number from 0 to 4294967295"));
  CHECK(has(changed("\"requests\":90", "\"requests\":1e99"),
            "windows[0].placements[1].requests: expected a whole number"));
  CHECK(has(changed("[262144,0]", "[262144,\"0\"]"),
            "windows[0].placements[0].stripe_bytes[1]: expected a whole number"));
  CHECK(has(changed("\"moves\":[]", "\"moves\":{}"), "windows[0].moves: expected a list"));
  CHECK(has(changed("\"ours\"", "\"best\""), "algorithm: 'best': expected paper or ours"));
  CHECK(has(changed("%FF", "%F"), "files[0].path: expected a path"));
  CHECK(has(changed("\"application\":\"solver\"", "\"application\":7"), "application: expected a text"));
  CHECK(has(changed("\"seconds\":1.25", "\"seconds\":\"1.25\""), "windows[0].seconds: expected a number"));
}

TEST_CASE("plan: what does not fit together is refused with its place") {
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows.clear(); }), "there is no window"));
  CHECK(
      has(plan_refusal([](Plan& plan) { plan.windows[1].start_s = 0; }), "window 1: begins inside the one before it"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[0].end_s = -6; }), "window 0: ends before it begins"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[0].seconds = -1; }), "window 0: a time is negative"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[1].placements.pop_back(); }),
            "window 1: 2 placements for 3 regions"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[1].placements[2].stripe_bytes = {1}; }),
            "window 1: region 2: 1 stripe sizes for 2 classes"));
  CHECK(has(plan_refusal([](Plan& plan) {
              plan.windows[1].placements[2].stripe_bytes = {0, 0};
            }),
            "region 2: no stripe on any server"));
  CHECK(has(plan_refusal([](Plan& plan) {
              plan.windows[1].placements[2].stripe_bytes = {max_bytes, max_bytes};
            }),
            "region 2: stripes on all servers of more than 2^63 - 1 bytes together"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[1].moves[0].region = 3; }),
            "window 1: moves region 3, which does not exist"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.windows[1].moves[0].to = {}; }),
            "window 1: move of region 1: 0 stripe sizes"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.regions[1].offset_bytes -= 1; }),
            "region 1: begins inside the one before it"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.regions[1].number = 0; }),
            "region 1: expected regions by file and number"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.regions[2].length_bytes = 0; }), "region 2: is empty"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.regions[2].file = 1; }), "region 2: there is no file 1"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.files[0].bytes = UINT64_MAX; }), "file 0: is larger"));
  CHECK(has(plan_refusal([](Plan& plan) {
              plan.files.push_back({plan.files[0].path + "x", 1});
              plan.files.push_back(plan.files[0]);
            }),
            "file 2: has the path of an earlier one"));
  CHECK(has(plan_refusal([](Plan& plan) {
              plan.regions.clear();
              for (PlannedWindow& window : plan.windows) window.placements.clear(), window.moves.clear();
            }),
            "there is no region"));
  CHECK(has(plan_refusal([](Plan& plan) {
              plan.servers.classes[0].name = "\x1b[31m";
              plan.servers.classes[0].read.startup_s = -1;
            }),
            "server class '\\x1b[31m'"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.home = 2; }), "home: there is no class 2"));
  CHECK(has(plan_refusal([](Plan& plan) { plan.window_s = -1; }), "length of the windows"));
}
