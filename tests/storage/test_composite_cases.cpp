// Every composite of tests/data/composites.
#include <doctest/doctest.h>

#include <set>

#include "support/composite_case.h"
#include "support/composition_text.h"

using namespace iosig;
using test::composite_cases;
using test::CompositeCase;
using test::text_of;

TEST_CASE("composite: each recorded machine's mount is made of what its case says") {
  for (const std::string& name : composite_cases()) {
    CAPTURE(name);
    const CompositeCase given(name);
    CHECK(text_of(inspect_composition(given.mount, {}, given.machine.machine())) == given.composition);
  }
}

TEST_CASE("composite: a tool whose output is cut off within a line, or that is missing, tells nothing wrong") {
  for (const std::string& name : composite_cases()) {
    CompositeCase given(name);
    for (const auto& recorded : given.outputs) {
      const std::string &command = recorded.first, &output = recorded.second;
      CAPTURE(name);
      CAPTURE(command);
      for (std::size_t length = 0; length < output.size(); ++length) {
        if (length > 0 && output[length - 1] == '\n') continue;
        given.machine.says(command, output.substr(0, length));
        const Composed found = inspect_composition(given.mount, {}, given.machine.machine());
        if (found.members.empty()) continue;  // without a list of servers, only a code
        CAPTURE(length);
        CHECK(text_of(found) == given.composition);
      }
      given.machine.says(command, output);
    }
  }
}

TEST_CASE("composite: each reader of mounts has a case") {
  std::set<std::string> types;
  for (const std::string& name : composite_cases()) types.insert(CompositeCase(name).mount.filesystem);
  for (const auto& row : mount_readers) {
    CAPTURE(row.first);
    CHECK(std::ranges::any_of(mount_readers, [&](const auto& other) {
      return other.second == row.second && types.contains(std::string(other.first));
    }));
  }
}
