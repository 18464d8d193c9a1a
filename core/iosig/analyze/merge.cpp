#include "iosig/analyze/merge.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/merge_batch.h"
#include "iosig/analyze/merge_order.h"
#include "iosig/analyze/nest_folder.h"
#include "iosig/analyze/split.h"
#include "iosig/base/parallel.h"

namespace iosig {
namespace {

constexpr DetectOptions merged_detection{.columns = merged_columns, .unsigned_columns = 2};  // offset, length

constexpr std::uint64_t max_compared = 1 << 24;  ///< pairs of footprints
constexpr std::int64_t max_turns = 1024;         ///< of a loop to be taken apart
constexpr int max_rounds = 2;                    ///< of taking loops apart
constexpr std::int64_t max_parts = 1 << 17;      ///< nodes created per round

class Merger {
 public:
  Merger(std::span<const LocalPattern> locals, const MergeOptions& options)
      : input_(locals.begin(), locals.end()), threads_(options.threads), max_expanded_(options.max_expanded) {
    std::ranges::stable_sort(input_, {}, &LocalPattern::id);
  }

  Result<MergedPattern> merge() {
    std::vector<std::size_t> all(input_.size());
    std::iota(all.begin(), all.end(), 0U);
    locals_.resize(input_.size());
    split_.resize(input_.size());
    for (int round = 0; !all.empty(); ++round) {
      if (auto done = prepare(all); !done) return pass_on(std::move(done.error()));
      all = round < max_rounds ? take_apart() : std::vector<std::size_t>{};
    }
    groups_ = groups_of(constraints_);
    if (auto done = check_effort(); !done) return pass_on(std::move(done.error()));
    if (auto done = interleave(); !done) return pass_on(std::move(done.error()));
    return folded();
  }

 private:
  struct Ref {
    std::uint32_t local = 0, batch = 0;
  };

  [[nodiscard]] const LocalBatches& local(const Ref& ref) const { return *locals_[ref.local]; }
  [[nodiscard]] const Batch& batch(const Ref& ref) const { return local(ref).batches()[ref.batch]; }

  /// Makes the batches of the locals `which` and finds the order constraints of all batches.
  Result<void> prepare(const std::vector<std::size_t>& which) {
    auto prepared = try_each_in_parallel(which.size(), threads_, [&](std::size_t n) -> Result<void> {
      auto made = LocalBatches::of(input_[which[n]]);
      if (!made) return pass_on(std::move(made.error()));
      locals_[which[n]] = std::move(*made);
      return {};
    });
    if (!prepared) return prepared;
    refs_.clear();
    level_.clear();
    constraints_ = {};
    for (std::uint32_t n = 0; n < locals_.size(); ++n)
      for (std::uint32_t m = 0; m < locals_[n]->batches().size(); ++m) {
        const Ref ref{n, m};
        const bool goes_on = !refs_.empty() && local(refs_.back()).id() == local(ref).id();
        if (goes_on && batch(ref).low < batch(refs_.back()).low)
          return fail(ErrorKind::bad_input, "{}: the parts are not in order of time", local(ref).name());
        level_.push_back(goes_on ? level_.back() + 1 : 0);
        refs_.push_back(ref);
        constraints_.processes.push_back(local(ref).id());
      }
    constrain();
    return {};
  }

  /// Finds which batches of different processes must precede which.
  void constrain() {
    const auto says_when = [&](const Ref& ref) {
      return batch(ref).low != std::numeric_limits<std::int64_t>::min() ||
             batch(ref).high != std::numeric_limits<std::int64_t>::max();
    };
    if (std::ranges::none_of(refs_, says_when)) return;
    std::vector<Footprint> footprints;
    std::uint32_t first = 0;
    for (const auto& local : locals_) {
      for (Footprint footprint : local->footprints()) {
        footprint.owner += first;
        footprints.push_back(footprint);
      }
      first += static_cast<std::uint32_t>(local->batches().size());
    }
    const bool is_complete = for_each_overlap(footprints, max_compared, [&](std::size_t a, std::size_t b) {
      std::uint32_t one = footprints[a].owner, other = footprints[b].owner;
      if (batch(refs_[other]).low < batch(refs_[one]).low) std::swap(one, other);
      if (batch(refs_[one]).high < batch(refs_[other]).low)
        constraints_.before.emplace_back(one, other);
      else if (local(refs_[one]).has_sequence() && local(refs_[other]).has_sequence())
        constraints_.mixed.emplace_back(one, other);
    });
    if (is_complete) return;
    // Too many pairs to compare: order all written bytes access by access.
    constraints_.before.clear();
    constraints_.mixed.clear();
    for (const Footprint& footprint : footprints) constraints_.mixed.emplace_back(footprints[0].owner, footprint.owner);
  }

  /// Takes apart the outermost loops of nests that are mixed with each other although their turns may not be, as for
  /// nests that span several phases. Returns the locals that changed.
  std::vector<std::size_t> take_apart() {
    std::vector<bool> is_mixed(refs_.size());
    for (const auto& [one, other] : constraints_.mixed) is_mixed[one] = is_mixed[other] = true;
    std::vector<std::vector<std::uint32_t>> terms(input_.size());
    std::int64_t parts = 0;
    for (std::size_t n = 0; n < refs_.size(); ++n) {
      const Ref& ref = refs_[n];
      const Pattern& pattern = *input_[ref.local].pattern;
      const std::uint32_t term = batch(ref).term;
      if (!is_mixed[n] || !can_take_apart(pattern, term, max_turns)) continue;
      const Node& root = pattern.nodes[pattern.terms[term].at];
      parts += pattern.numbers[root.numbers] * static_cast<std::int64_t>(root.end - pattern.terms[term].at);
      if (parts > max_parts) break;  // the remaining ones are ordered access by access
      terms[ref.local].push_back(term);
    }
    std::vector<std::size_t> changed;
    for (std::size_t n = 0; n < terms.size(); ++n) {
      if (terms[n].empty()) continue;
      changed.push_back(n);
      split_[n] = std::make_unique<Pattern>(turns_apart(*input_[n].pattern, terms[n]));
      input_[n].pattern = split_[n].get();
    }
    return changed;
  }

  /// Fails if more accesses must be expanded than allowed.
  [[nodiscard]] Result<void> check_effort() const {
    std::uint64_t expanded = 0;
    for (const auto& members : groups_.members)
      for (const std::uint32_t member : members) {
        const Batch& it = batch(refs_[member]);
        const bool is_expanded = members.size() > 1 || (it.nodes == 0 && !it.is_literals);
        if (is_expanded && (it.count > max_expanded_ || (expanded += it.count) > max_expanded_))
          return fail(ErrorKind::infeasible, "more than {} accesses would have to be put in order one by one",
                      max_expanded_);
      }
    return {};
  }

  /// Orders the accesses of each group that has several batches.
  Result<void> interleave() {
    interleaved_.resize(groups_.members.size());
    std::vector<std::uint32_t> many;
    for (std::uint32_t group = 0; group < groups_.members.size(); ++group)
      if (groups_.members[group].size() > 1) many.push_back(group);
    return try_each_in_parallel(many.size(), threads_, [&](std::size_t n) -> Result<void> {
      auto made = interleaved(groups_.members[many[n]]);
      if (!made) return pass_on(std::move(made.error()));
      interleaved_[many[n]] = std::move(*made);
      return {};
    });
  }

  /// The accesses of one process in a group: those of its batches, in order.
  struct Source {
    std::size_t member, end;  ///< the present batch and the end of the batches, within the group's members
    std::uint64_t left;       ///< accesses of the present batch
    LocalBatches::Cursor cursor;
    std::array<std::int64_t, merged_columns> access{};
    std::int64_t key = 0;  ///< of the access: its sequence number
  };

  /// Orders the accesses of one group by their sequence numbers: a merge of as many sorted lists as processes, with a
  /// heap. Of equal numbers, that of the process that comes first in `members` is first.
  Result<Pattern> interleaved(const std::vector<std::uint32_t>& members) const {
    std::vector<Source> sources = sources_of(members);
    const auto is_later = [&](std::uint32_t a, std::uint32_t b) {
      return sources[a].key != sources[b].key ? sources[a].key > sources[b].key : a > b;
    };
    std::vector<std::uint32_t> heap(sources.size());
    std::iota(heap.begin(), heap.end(), 0U);
    std::ranges::make_heap(heap, is_later);
    Detector detector(merged_detection);
    while (!heap.empty()) {
      Source& source = sources[heap.front()];
      detector.push(source.access);
      const std::int64_t key = source.key;
      const bool has_more = advance(source, members);
      if (has_more && source.key < key)
        return fail(ErrorKind::bad_input, "{}: the sequence numbers fall from {} to {}",
                    local(refs_[members[source.member]]).name(), key, source.key);
      std::ranges::pop_heap(heap, is_later);
      if (has_more)
        std::ranges::push_heap(heap, is_later);
      else
        heap.pop_back();
    }
    return detector.finish();
  }

  /// Returns one source for each process, at its first access. The members of one process are neighbours.
  std::vector<Source> sources_of(const std::vector<std::uint32_t>& members) const {
    std::vector<Source> sources;
    for (std::size_t n = 0; n < members.size(); ++n) {
      const Ref& ref = refs_[members[n]];
      if (n > 0 && local(refs_[members[n - 1]]).id() == local(ref).id())
        sources.back().end = n + 1;
      else
        sources.push_back({n, n + 1, batch(ref).count, {local(ref), batch(ref).first}});
    }
    for (Source& source : sources) load(source, members);
    return sources;
  }

  void load(Source& source, const std::vector<std::uint32_t>& members) const {
    source.key = batch(refs_[members[source.member]]).low;
    source.cursor.next(source.access, source.key);
  }

  /// Goes to the next access of the process; false if there is none.
  bool advance(Source& source, const std::vector<std::uint32_t>& members) const {
    if (--source.left == 0 && ++source.member < source.end) {
      const Ref& ref = refs_[members[source.member]];
      source.cursor = {local(ref), batch(ref).first};
      source.left = batch(ref).count;
    }
    if (source.left == 0) return false;
    load(source, members);
    return true;
  }

  /// Folds the groups in two orders, process by process and round-robin over the processes, and returns the smaller
  /// result.
  MergedPattern folded() const {
    std::array<Pattern, 2> found;
    for_each_in_parallel(found.size(), threads_, [&](std::size_t way) {
      std::vector<std::uint64_t> priorities(groups_.members.size());
      for (std::size_t group = 0; group < priorities.size(); ++group) {
        const std::uint32_t first = groups_.members[group][0];
        priorities[group] = way == 0 ? first : level_[first] << 32 | first;
      }
      NestFolder folder(merged_columns);
      for (const std::uint32_t group : ordered(groups_, priorities)) push(group, folder);
      found[way] = folder.finish();
    });
    const auto size = [](const Pattern& pattern) {
      return 2 * pattern.numbers.size() + pattern.nodes.size() + pattern.literals.size();
    };
    MergedPattern merged{std::move(found[size(found[1]) < size(found[0]) ? 1 : 0])};
    merged.pattern.kinds = {Column::logical, Column::length, Column::physical, Column::id};
    for (const Pattern& pattern : interleaved_) merged.interleaved += pattern.count();
    return merged;
  }

  void push(std::uint32_t group, NestFolder& folder) const {
    if (groups_.members[group].size() > 1) return folder.push_pattern(interleaved_[group]);
    const Ref& ref = refs_[groups_.members[group][0]];
    const LocalBatches& from = local(ref);
    const Batch& it = batch(ref);
    std::array<std::int64_t, merged_columns> access{};
    std::int64_t sequence = 0;
    if (it.nodes > 0) {
      folder.push_nest(from.nodes(it), from.numbers(it), it.count);
      for (std::uint32_t n = it.exception; n < it.exception + it.exceptions; ++n) {
        const std::uint64_t position = from.pattern().exception_positions[n];
        from.access(position, access);
        folder.push_exception(position - it.first, access.data());
      }
      return;
    }
    LocalBatches::Cursor cursor(from, it.first);
    if (it.is_literals) {
      std::vector<std::int64_t> accesses;
      for (std::uint64_t n = 0; n < it.count; ++n) {
        cursor.next(access, sequence);
        accesses.insert(accesses.end(), access.begin(), access.end());
      }
      return folder.push_vectors(accesses);
    }
    Detector detector(merged_detection);
    for (std::uint64_t n = 0; n < it.count; ++n) {
      cursor.next(access, sequence);
      detector.push(access);
    }
    folder.push_pattern(detector.finish());
  }

  std::vector<LocalPattern> input_;              ///< process by process
  std::vector<std::unique_ptr<Pattern>> split_;  ///< the patterns that replaced those in input_
  unsigned threads_;
  std::uint64_t max_expanded_;
  std::vector<std::optional<LocalBatches>> locals_;
  std::vector<Ref> refs_;             ///< all batches, process by process
  std::vector<std::uint64_t> level_;  ///< by batch: the number of earlier batches of the same process
  OrderConstraints constraints_;
  OrderGroups groups_;
  std::vector<Pattern> interleaved_;  ///< by group; empty for groups of one member
};

}  // namespace

Result<MergedPattern> merge_patterns(std::span<const LocalPattern> locals, const MergeOptions& options) {
  return Merger(locals, options).merge();
}

}  // namespace iosig
