// Fuzzes the merging of patterns: up to four processes' nests and exceptions, number by number, with sequence numbers
// or times from the bytes too. Nothing may be lost, nor what overlaps come in the wrong order.
#include <algorithm>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/merge.h"
#include "iosig/model/pattern_cursor.h"
#include "nest_maker.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

struct Access {
  std::array<std::int64_t, 4> vector{};  ///< logical, length, physical, id
  std::int64_t low = 0, high = 0;        ///< when
};

bool is_sound(const Access& access) {
  const auto [offset, length, physical, id] = access.vector;
  return length >= 0 && (length == 0 || (offset >= 0 && offset <= INT64_MAX - length));
}

bool overlap(const Access& a, const Access& b) {
  return a.vector[1] > 0 && b.vector[1] > 0 && a.vector[0] < b.vector[0] + b.vector[1] &&
         b.vector[0] < a.vector[0] + a.vector[1];
}

/// The same accesses with a column of numbers that never fall.
Pattern with_sequence(const std::vector<std::int64_t>& vectors, std::string_view steps) {
  Detector detector({.columns = 4});
  std::int64_t sequence = 0;
  for (std::size_t n = 0; 3 * n < vectors.size(); ++n) {
    if (!steps.empty()) sequence += steps[n % steps.size()] & 3;
    detector.push(std::array{vectors[3 * n], vectors[3 * n + 1], vectors[3 * n + 2], sequence});
  }
  return detector.finish();
}

}  // namespace

void try_one(std::string_view text) {
  if (text.size() < 2) return;
  const auto kind = static_cast<std::uint8_t>(text.front());
  text.remove_prefix(1);
  const std::size_t processes = 1 + (kind & 3);
  const bool has_sequence = (kind & 4) != 0, has_times = (kind & 8) != 0;
  std::vector<Pattern> patterns(processes);
  std::vector<LocalPattern> locals;
  std::vector<std::vector<Access>> accesses(processes);
  bool are_sound = true;
  for (std::size_t n = 0; n < processes; ++n) {
    std::string_view part = text.substr(n * text.size() / processes, text.size() / processes);
    if (part.empty()) continue;
    const std::int64_t opened = has_times ? part.front() & 7 : INT64_MIN, closed = has_times ? opened + 2 : INT64_MAX;
    std::string bytes(part);
    bytes[0] = static_cast<char>(bytes[0] & ~1);  // three columns
    patterns[n] = fuzz::NestMaker(bytes).make();
    if (!checked(patterns[n])) return;
    const auto vectors = *expanded(patterns[n]);
    if (has_sequence) patterns[n] = with_sequence(vectors, part.substr(0, 5));
    const auto id = static_cast<std::int64_t>(n);
    locals.push_back({.pattern = &patterns[n], .id = id, .opened = opened, .closed = closed});
    std::int64_t sequence = 0;
    for (std::size_t at = 0; at < vectors.size(); at += 3) {
      if (has_sequence) sequence += part[at / 3 % std::min<std::size_t>(part.size(), 5)] & 3;
      accesses[n].push_back({{vectors[at], vectors[at + 1], vectors[at + 2], id},
                             has_sequence ? sequence : opened,
                             has_sequence ? sequence : closed});
      are_sound = are_sound && is_sound(accesses[n].back());
    }
  }
  const auto merged = merge_patterns(locals, {.threads = 1});
  if (!merged) {
    hold(!are_sound || merged.error().kind == ErrorKind::infeasible, "what can be a file is not refused",
         merged.error().message);
    return;
  }
  hold(checked(merged->pattern).has_value(), "what comes out is sound");
  const auto vectors = *expanded(merged->pattern);
  std::vector<std::size_t> next(processes);
  std::vector<Access> found;
  for (std::size_t at = 0; at < vectors.size(); at += 4) {
    const auto id = static_cast<std::size_t>(vectors[at + 3]);
    hold(id < processes && next[id] < accesses[id].size(), "nothing is made up");
    found.push_back(accesses[id][next[id]++]);
    hold(std::equal(found.back().vector.begin(), found.back().vector.end(), vectors.begin() + static_cast<long>(at)),
         "each process keeps its accesses, in order");
  }
  for (std::size_t n = 0; n < processes; ++n) hold(next[n] == accesses[n].size(), "nothing is lost");
  if (!are_sound) return;  // of no bytes, or not looked at
  for (std::size_t a = 0; a < found.size(); ++a)
    for (std::size_t b = a + 1; b < found.size(); ++b)
      if (found[a].vector[3] != found[b].vector[3] && found[b].high < found[a].low)
        hold(!overlap(found[a], found[b]), "what overlaps is in order");
}
