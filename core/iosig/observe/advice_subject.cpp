#include "iosig/observe/advice_subject.h"

#include <map>
#include <span>
#include <string>
#include <utility>

#include "iosig/format/container_globs.h"

namespace iosig::observe {

std::vector<Subject> subjects_of(const TracedRun& run, const RunCosts& costs) {
  std::map<std::string_view, const StreamFacts*> facts;
  for (const StreamFacts& each : run.facts) facts.emplace(each.path, &each);
  std::map<std::string_view, const StreamCosts*> left;
  for (const StreamCosts& each : costs.streams) left.emplace(each.path, &each);
  std::vector<Subject> subjects;
  for (InferredStream& stream : infer(std::span(&run, 1))) {
    Subject& made = subjects.emplace_back();
    for (const std::string& path : stream.paths) {
      if (const auto cost = left.find(path); cost != left.end()) {
        made.costs.add(*cost->second);
        left.erase(cost);
      }
      const StreamFacts& each = *facts.at(path);
      made.is_new = made.is_new && (!each.was_there || each.is_emptied);
      made.follows_link = made.follows_link && !each.is_created_exclusively && !each.is_removed && !each.may_remain &&
                          each.renamed_to.empty();
      made.may_refuse_link = made.may_refuse_link || each.is_refused_as_link;
      made.readers += each.transfers()->readers.size(), made.writers += each.transfers()->writers.size();
      made.has_several_writers = made.has_several_writers || each.transfers()->writers.size() > 1;
    }
    made.layer = made.costs.lowest_layer();
    made.stream = std::move(stream);
  }
  for (const auto& [path, cost] : left) {
    Subject& made = subjects.emplace_back();
    made.costs.add(*cost);
    made.stream.glob = escaped_glob(path);
    made.stream.paths.emplace_back(path);
  }
  return subjects;
}

}  // namespace iosig::observe
