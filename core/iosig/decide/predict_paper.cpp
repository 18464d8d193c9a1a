// The paper's predictor: Algorithm 1 over the recent reads, and again over the patterns that it found.
//
// Source: docs/references.md#pattern section 4.2 and Fig. 18. The paper leaves open how a tree continues. Here a level
// describes its input as units (an equidistant run, a turn of a loop, or a single element); the next level's input is
// where each unit begins and which of the shapes seen so far it has. The last unit may be unfinished: if it is the
// beginning of the unit that the level above expects, the rest of that one follows, then what the level above expects
// next. Otherwise the last unit is expected to go on.
#include <algorithm>
#include <map>

#include "iosig/analyze/detect_paper.h"
#include "iosig/decide/predictors.h"
#include "iosig/decide/queued_predictor.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr int max_levels = 4;

/// Elements of two numbers: an offset, and what it has (a length, or the number of a shape).
using Elements = std::vector<FileRead>;

Pattern described(const Elements& elements) {
  std::vector<std::int64_t> vectors;
  for (const FileRead& each : elements) vectors.insert(vectors.end(), {each.offset, each.length});
  return detect_paper(vectors, {.columns = 2});
}

/// Whether `shape` begins with `start`.
bool begins_with(const Elements& shape, const Elements& start) {
  return start.size() <= shape.size() && std::equal(start.begin(), start.end(), shape.begin());
}

/// The last unit's continuation, as the paper's example has it.
Elements going_on(const Pattern& pattern, std::size_t wanted) {
  Elements made;
  const std::vector<std::int64_t> numbers = predicted(pattern, wanted);
  for (std::size_t n = 0; n + 1 < numbers.size(); n += 2) made.push_back({numbers[n], numbers[n + 1]});
  return made;
}

/// Returns the elements that are expected to follow, at most about `wanted`.
Elements following(const Elements& elements, std::size_t wanted, int level) {
  const Pattern pattern = described(elements);
  if (level == max_levels || elements.size() < 4) return going_on(pattern, wanted);
  std::map<std::vector<std::int64_t>, std::int64_t> numbers;  // of shapes
  std::vector<Elements> shapes;
  Elements units;
  Elements last;
  const auto add_unit = [&](std::uint64_t first, std::uint64_t count) {
    Elements shape;
    std::vector<std::int64_t> key;
    for (std::uint64_t n = first; n < first + count; ++n) {
      const FileRead relative{elements[n].offset - elements[first].offset, elements[n].length};
      shape.push_back(relative);
      key.insert(key.end(), {relative.offset, relative.length});
    }
    const auto [at, is_new] = numbers.try_emplace(std::move(key), std::ssize(shapes));
    if (is_new) shapes.push_back(shape);
    units.push_back({elements[first].offset, at->second});
    last = std::move(shape);
  };
  for (const Term& term : pattern.terms) {
    const std::uint64_t body = term.is_nest ? pattern.nodes[term.at].end - term.at - 1 : 1;
    const bool is_run = term.is_nest && body == 1;  // a unit of one difference: all of it is a child
    const std::uint64_t count = is_run ? term.count : body;
    for (std::uint64_t n = term.first; n < term.first + term.count; n += count)
      add_unit(n, std::min(count, term.first + term.count - n));
  }
  if (units.size() == elements.size()) return going_on(pattern, wanted);  // nothing repeats: no level above
  const std::int64_t begin = units.back().offset;
  units.pop_back();
  Elements made;
  bool has_begun = false;
  for (const FileRead& unit : following(units, wanted, level + 1)) {
    if (unit.length < 0 || unit.length >= std::ssize(shapes)) break;
    const Elements& shape = shapes[static_cast<std::size_t>(unit.length)];
    std::size_t known = 0;
    if (!has_begun) {  // the last unit
      if (unit.offset != begin || !begins_with(shape, last)) break;
      known = last.size();
      has_begun = true;
    }
    for (std::size_t n = known; n < shape.size(); ++n) {
      FileRead next{0, shape[n].length};
      if (__builtin_add_overflow(unit.offset, shape[n].offset, &next.offset)) return made;
      made.push_back(next);
    }
    if (made.size() >= wanted) break;
  }
  return made.empty() ? going_on(pattern, wanted) : made;
}

class PaperPredictor final : public QueuedPredictor {
 public:
  explicit PaperPredictor(const PaperPredictorOptions& options) : options_(options) {}
  [[nodiscard]] std::size_t model_bytes() const override {
    const Pattern pattern = described({history_.begin(), history_.end()});
    return pattern.numbers.size() * sizeof(std::int64_t) + pattern.nodes.size() * sizeof(Node) +
           pattern.literals.size();
  }

 private:
  void learn(FileRead read) override {
    history_.push_back(read);
    if (history_.size() > options_.history) history_.pop_front();
    ++learned_;
  }
  void extend(Queue& expected, std::size_t wanted) override {
    if (learned_ < options_.period || history_.size() < 4) return;
    learned_ = 0;
    const Elements next =
        following({history_.begin(), history_.end()}, std::max<std::size_t>(wanted, 2 * options_.period), 0);
    for (std::size_t n = expected.size(); n < next.size(); ++n) expected.push_back(next[n]);
  }

  PaperPredictorOptions options_;
  std::deque<FileRead> history_;
  std::size_t learned_ = 0;  ///< reads since patterns were sought
};

}  // namespace

std::unique_ptr<ReadPredictor> paper_predictor(const PaperPredictorOptions& options) {
  return std::make_unique<PaperPredictor>(options);
}

}  // namespace iosig
