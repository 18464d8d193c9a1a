// Fuzzes plans: whatever is accepted is printed and read back, and becomes placements of the region map.
#include "iosig/format/plan_text.h"
#include "iosig/regions/planned.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

void try_one(std::string_view given) {
  const std::string text = with_plan_checksum(given);  // else no change would come past the checksum
  const auto plan = parse_plan(text.empty() ? given : text, "a.plan");
  if (!plan) {
    hold(plan.error().kind == ErrorKind::bad_input, "a refusal is bad input", plan.error().message);
    hold(plan.error().message.starts_with("a.plan: "), "a refusal names the file", plan.error().message);
    return;
  }
  const auto again = parse_plan(plan_text(*plan), "printed");
  hold(again.has_value(), "a printed plan is read back", again ? "" : again.error().message);
  hold(*again == *plan, "a plan is printed whole", plan_text(*plan));
  hold(regions::placements_of(*plan).size() == plan->files.size(), "each file has its placement", text);
}
