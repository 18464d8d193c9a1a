#include "iosig/format/plan_text.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "iosig/base/crc32c.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig {
namespace {

using nlohmann::ordered_json;

constexpr int plan_depth = 6;

// ---- writing -------------------------------------------------------------------------------------------------------

ordered_json servers_json(const Plan& plan) {
  ordered_json classes = ordered_json::array();
  for (std::size_t n = 0; n < plan.servers.classes.size(); ++n) {
    const ServerClass& each = plan.servers.classes[n];
    classes.push_back({{"name", each.name},
                       {"servers", plan.server_names[n]},
                       {"read_startup_s", each.read.startup_s},
                       {"read_s_per_byte", each.read.s_per_byte},
                       {"write_startup_s", each.write.startup_s},
                       {"write_s_per_byte", each.write.s_per_byte},
                       {"capacity_bytes", each.capacity_bytes ? ordered_json(*each.capacity_bytes) : ordered_json()}});
  }
  return {{"classes", std::move(classes)},
          {"home", plan.home},
          {"network_startup_s", plan.servers.network.connect_s},
          {"network_s_per_byte", plan.servers.network.s_per_byte},
          {"processes", plan.servers.processes},
          {"processes_per_node", plan.servers.processes_per_node}};
}

ordered_json window_json(const PlannedWindow& window) {
  ordered_json placements = ordered_json::array(), moves = ordered_json::array();
  for (const RegionPlacement& each : window.placements)
    placements.push_back({{"stripe_bytes", each.stripe_bytes},
                          {"requests", each.requests},
                          {"seconds", each.seconds},
                          {"home_s", each.home_s}});
  for (const PlannedMove& each : window.moves)
    moves.push_back({{"region", each.region}, {"from", each.from}, {"to", each.to}});
  return {{"start_s", window.start_s}, {"end_s", window.end_s},   {"seconds", window.seconds},
          {"home_s", window.home_s},   {"move_s", window.move_s}, {"placements", std::move(placements)},
          {"moves", std::move(moves)}};
}

std::string checksum_of(const ordered_json& document) {
  const std::string text = json_ascii_line(document);
  return fmt::format("{:08x}", crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

std::string sealed(ordered_json document) {
  document["checksum"] = checksum_of(document);
  return json_ascii_line(document) + "\n";
}

// ---- reading -------------------------------------------------------------------------------------------------------

/// A value of the document and its place. The first fault of all is kept; after it, values are empty.
class JsonNode {
 public:
  JsonNode(const ordered_json& json, std::string place, std::string& fault)
      : json_(&json), place_(std::move(place)), fault_(&fault) {}

  /// Refuses other keys than these, and missing ones.
  void expect_keys(std::initializer_list<std::string_view> keys) const {
    if (!json_->is_object()) return refuse("expected an object");
    const std::vector<std::string_view> known(keys);
    for (const auto& [key, value] : json_->items())
      if (std::ranges::find(known, key) == known.end())
        return refuse(fmt::format("unknown key '{}'{}", printable(key), did_you_mean(key, known)));
    for (const std::string_view key : known)
      if (!json_->contains(key)) return refuse(fmt::format("expected the key '{}'", key));
  }

  [[nodiscard]] JsonNode operator[](std::string_view key) const {
    static const ordered_json nothing;
    const bool has = json_->is_object() && json_->contains(key);
    return {has ? (*json_)[key] : nothing, place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key),
            *fault_};
  }

  template <class Take>
  void for_each(Take take) const {
    if (!json_->is_array()) return refuse("expected a list");
    for (std::size_t n = 0; n < json_->size() && fault_->empty(); ++n)
      take(JsonNode((*json_)[n], fmt::format("{}[{}]", place_, n), *fault_));
  }

  template <class Count = std::uint64_t>
  [[nodiscard]] Count count(std::uint64_t most = std::numeric_limits<Count>::max()) const {
    const bool is_count = json_->is_number_unsigned();
    if (!is_count || json_->get<std::uint64_t>() > most) {
      refuse(fmt::format("expected a whole number from 0 to {}", most));
      return 0;
    }
    return static_cast<Count>(json_->get<std::uint64_t>());
  }
  [[nodiscard]] double number() const {
    if (json_->is_number()) return json_->get<double>();
    refuse("expected a number");
    return 0;
  }
  [[nodiscard]] std::string text() const {
    if (json_->is_string()) return json_->get<std::string>();
    refuse("expected a text");
    return {};
  }
  [[nodiscard]] bool is_null() const { return json_->is_null(); }
  [[nodiscard]] Stripes stripes() const {
    Stripes sizes;
    for_each([&](const JsonNode& each) { sizes.push_back(each.count(max_bytes)); });
    return sizes;
  }
  void refuse(std::string_view what) const {
    if (fault_->empty()) *fault_ = fmt::format("{}{}{}", place_, place_.empty() ? "" : ": ", what);
  }

 private:
  const ordered_json* json_;
  std::string place_;
  std::string* fault_;
};

void read_class(const JsonNode& node, Plan& plan) {
  node.expect_keys({"name", "servers", "read_startup_s", "read_s_per_byte", "write_startup_s", "write_s_per_byte",
                    "capacity_bytes"});
  ServerClass made{node["name"].text(),
                   0,
                   {node["read_startup_s"].number(), node["read_s_per_byte"].number()},
                   {node["write_startup_s"].number(), node["write_s_per_byte"].number()},
                   {}};
  if (!node["capacity_bytes"].is_null()) made.capacity_bytes = node["capacity_bytes"].count();
  std::vector<std::string> names;
  node["servers"].for_each([&](const JsonNode& each) { names.push_back(each.text()); });
  made.count = static_cast<std::uint32_t>(names.size());
  plan.servers.classes.push_back(std::move(made));
  plan.server_names.push_back(std::move(names));
}

void read_servers(const JsonNode& node, Plan& plan) {
  node.expect_keys({"classes", "home", "network_startup_s", "network_s_per_byte", "processes", "processes_per_node"});
  node["classes"].for_each([&](const JsonNode& each) { read_class(each, plan); });
  plan.home = node["home"].count<std::uint32_t>();
  plan.servers.network = {node["network_startup_s"].number(), node["network_s_per_byte"].number()};
  plan.servers.processes = node["processes"].count<std::uint32_t>();
  plan.servers.processes_per_node = node["processes_per_node"].count<std::uint32_t>();
}

PlannedWindow read_window(const JsonNode& node) {
  node.expect_keys({"start_s", "end_s", "seconds", "home_s", "move_s", "placements", "moves"});
  PlannedWindow window{node["start_s"].number(),
                       node["end_s"].number(),
                       node["seconds"].number(),
                       node["home_s"].number(),
                       node["move_s"].number(),
                       {},
                       {}};
  node["placements"].for_each([&](const JsonNode& each) {
    each.expect_keys({"stripe_bytes", "requests", "seconds", "home_s"});
    window.placements.push_back(
        {each["stripe_bytes"].stripes(), each["requests"].count(), each["seconds"].number(), each["home_s"].number()});
  });
  node["moves"].for_each([&](const JsonNode& each) {
    each.expect_keys({"region", "from", "to"});
    window.moves.push_back({each["region"].count<std::uint32_t>(), each["from"].stripes(), each["to"].stripes()});
  });
  return window;
}

void read_files(const JsonNode& root, Plan& plan) {
  root["files"].for_each([&](const JsonNode& each) {
    each.expect_keys({"path", "bytes"});
    const auto path = percent_decoded(each["path"].text());
    if (!path) each["path"].refuse("expected a path with bytes that are not printable ASCII as %XX");
    plan.files.push_back({path.value_or(""), each["bytes"].count()});
  });
  root["regions"].for_each([&](const JsonNode& each) {
    each.expect_keys({"file", "number", "offset_bytes", "length_bytes"});
    plan.regions.push_back({each["file"].count<std::uint32_t>(), each["number"].count<std::uint32_t>(),
                            each["offset_bytes"].count(), each["length_bytes"].count()});
  });
}

Plan read_root(const JsonNode& root) {
  Plan plan;
  root.expect_keys({"algorithm", "application", "servers", "window_s", "files", "regions", "windows"});
  const auto algorithm = parse_plan_algorithm(root["algorithm"].text());
  if (!algorithm) root["algorithm"].refuse(algorithm.error().message);
  plan.algorithm = algorithm.value_or(PlanAlgorithm::ours);
  plan.application = root["application"].text();
  read_servers(root["servers"], plan);
  plan.window_s = root["window_s"].number();
  read_files(root, plan);
  root["windows"].for_each([&](const JsonNode& each) { plan.windows.push_back(read_window(each)); });
  return plan;
}

}  // namespace

std::string_view name_of(PlanAlgorithm algorithm) { return algorithm == PlanAlgorithm::paper ? "paper" : "ours"; }

Result<PlanAlgorithm> parse_plan_algorithm(std::string_view name) {
  if (name == "paper") return PlanAlgorithm::paper;
  if (name == "ours") return PlanAlgorithm::ours;
  return fail(ErrorKind::bad_input, "'{}': expected paper or ours", printable(name));
}

ordered_json plan_json(const Plan& plan) {
  ordered_json files = ordered_json::array(), regions = ordered_json::array(), windows = ordered_json::array();
  for (const PlannedFile& each : plan.files)
    files.push_back({{"path", percent_encoded(each.path)}, {"bytes", each.bytes}});
  for (const PlannedRegion& each : plan.regions)
    regions.push_back({{"file", each.file},
                       {"number", each.number},
                       {"offset_bytes", each.offset_bytes},
                       {"length_bytes", each.length_bytes}});
  for (const PlannedWindow& each : plan.windows) windows.push_back(window_json(each));
  return {{"algorithm", name_of(plan.algorithm)},
          {"application", plan.application},
          {"servers", servers_json(plan)},
          {"window_s", plan.window_s},
          {"files", std::move(files)},
          {"regions", std::move(regions)},
          {"windows", std::move(windows)}};
}

std::string plan_text(const Plan& plan) {
  ordered_json document{{"schema", plan_schema}};
  document.update(plan_json(plan));
  return sealed(std::move(document));
}

std::string with_plan_checksum(std::string_view text) {
  ordered_json document = parse_json(text, plan_depth);
  if (!document.is_object()) return {};
  document.erase("checksum");
  return sealed(std::move(document));
}

Result<Plan> parse_plan(std::string_view text, std::string_view source) {
  const auto refuse = [&](std::string_view what) { return fail(ErrorKind::bad_input, "{}: {}", source, what); };
  ordered_json document = parse_json(text, plan_depth);
  if (document.is_discarded() || !document.is_object())
    return refuse("is no JSON object, or was cut; expected a plan that 'iosig plan -o' wrote");
  const auto schema = document.find("schema"), checksum = document.find("checksum");
  if (schema == document.end() || !schema->is_string())
    return refuse(fmt::format("schema: expected '{}'", plan_schema));
  if (*schema != plan_schema)
    return refuse(
        fmt::format("schema: this is '{}'; this iosig reads '{}'", printable(schema->get<std::string>()), plan_schema));
  if (checksum == document.end() || !checksum->is_string())
    return refuse("checksum: expected eight hexadecimal digits");
  const std::string said = checksum->get<std::string>();
  document.erase("checksum");
  if (said != checksum_of(document)) return refuse("checksum: does not agree with the content; plan again");
  document.erase("schema");
  std::string fault;
  Plan plan = read_root(JsonNode(document, "", fault));
  if (!fault.empty()) return refuse(fault);
  if (const auto sound = checked(plan); !sound) return refuse(sound.error().message);
  return plan;
}

}  // namespace iosig
