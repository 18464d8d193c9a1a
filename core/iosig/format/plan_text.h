// Plans as JSON (`iosig.plan/1`), written and read. Pure. The format is docs/formats/plan.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/plan.h"

namespace iosig {

inline constexpr std::string_view plan_schema = "iosig.plan/1";

/// The name in files and options: "paper", "ours".
[[nodiscard]] std::string_view name_of(PlanAlgorithm algorithm);
[[nodiscard]] Result<PlanAlgorithm> parse_plan_algorithm(std::string_view name);

/// Returns the document without `schema` and `checksum`.
[[nodiscard]] nlohmann::ordered_json plan_json(const Plan& plan);

/// Returns the file: the document on one line. parse_plan(plan_text(p)) equals p.
[[nodiscard]] std::string plan_text(const Plan& plan);

/// Returns the text of a plan that was changed, with the checksum that it must have now; "" unless it is a JSON object.
[[nodiscard]] std::string with_plan_checksum(std::string_view text);

/// Fails with `bad_input`: "source: windows[2].moves[0].from: what is wrong; what was expected": text that is not JSON,
/// another version, a wrong checksum, a missing or unknown key, a number out of range, and what checked(Plan) refuses.
[[nodiscard]] Result<Plan> parse_plan(std::string_view text, std::string_view source);

}  // namespace iosig
