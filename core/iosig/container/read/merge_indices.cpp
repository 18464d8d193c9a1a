#include "iosig/container/read/merge_indices.h"

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <vector>

#include "iosig/analyze/merge.h"
#include "iosig/container/read/irregular_index.h"
#include "iosig/model/literals.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::size_t many_locals = 512;  ///< with fewer, starting threads costs more than it saves
constexpr std::uint64_t max_pieces = 1u << 28;
constexpr std::size_t few_literal_bytes = 256;  ///< limit for with_single_literals()

/// Returns the bytes that a mark turns into a hole, as a write of hole_id.
IndexEntry hole_of(const IndexMark& mark) {
  const std::int64_t length = mark.kind == IndexMark::Kind::punch    ? mark.length
                              : mark.kind == IndexMark::Kind::extend ? 0
                                                                     : INT64_MAX - mark.offset;
  return {mark.offset, length, 0, mark.sequence, 0, 0, hole_id};
}

Pattern pattern_of(const IndexEntry& entry) {
  PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
  builder.add_literal(std::array{entry.logical, entry.length, entry.physical, entry.sequence}.data());
  return builder.finish();
}

/// Returns the same pattern with each literal as a term of its own. A block of literals is merged as one batch, from
/// its first to its last number and from its first to its last byte. That range may contain nests of other writers
/// although they overlap none of the literals.
Pattern with_single_literals(const Pattern& pattern) {
  PatternBuilder builder(pattern.columns, pattern.follows);
  std::vector<std::int64_t> block;
  for (std::size_t n = 0; n < pattern.terms.size(); ++n) {
    const Term& term = pattern.terms[n];
    if (!term.is_nest) {
      if (!read_block(std::span(pattern.literals).subspan(term.at), pattern.columns, block)) return pattern;
      for (std::size_t at = 0; at < block.size(); at += pattern.columns) {
        builder.add_literal(block.data() + at);
        builder.end_block();
      }
      continue;
    }
    const std::uint32_t end = pattern.nodes[term.at].end, number = pattern.nodes[term.at].numbers;
    std::vector<Node> nodes(pattern.nodes.begin() + static_cast<std::ptrdiff_t>(term.at), pattern.nodes.begin() + end);
    for (Node& node : nodes) {
      node.end -= static_cast<std::uint32_t>(term.at);
      node.numbers -= number;
    }
    const std::size_t number_end = end < pattern.nodes.size() ? pattern.nodes[end].numbers : pattern.numbers.size();
    builder.add_nest(nodes, std::span(pattern.numbers).subspan(number, number_end - number), term.count);
  }
  for (std::size_t n = 0; n < pattern.exception_positions.size(); ++n)
    builder.add_exception(pattern.exception_positions[n], pattern.exception_values.data() + n * pattern.columns);
  return builder.finish();
}

}  // namespace

std::vector<IndexEntry> holes_of(const ContainerContent& content) {
  std::vector<IndexEntry> holes;
  for (const WriterContent& writer : content.writers)
    for (const IndexMark& mark : writer.marks)
      if (const IndexEntry hole = hole_of(mark); hole.length > 0) holes.push_back(hole);
  std::ranges::sort(holes, {}, &IndexEntry::sequence);
  return holes;
}

Result<Pattern> merge_indices(const ContainerContent& content) {
  std::deque<Pattern> made;  // a deque: pointers into it stay valid
  std::vector<LocalPattern> locals;
  for (const IndexEntry& hole : holes_of(content))
    locals.push_back({&made.emplace_back(pattern_of(hole)), hole_id, hole.sequence, hole.sequence});
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& writes : writer.writes) {
      if (!writes.entries.empty())
        return fail(ErrorKind::bad_input, "writer {} has a traditional index in a container of patterns", writer.id);
      const std::size_t literal_bytes = writes.pattern.literals.size();
      const Pattern& pattern = literal_bytes > 0 && literal_bytes <= few_literal_bytes
                                   ? made.emplace_back(with_single_literals(writes.pattern))
                                   : writes.pattern;
      locals.push_back({&pattern, writer.id, writes.opened, writes.closed});
    }
  auto merged = merge_patterns(locals, {.threads = locals.size() < many_locals ? 1u : 0u});
  if (!merged) return pass_on(std::move(merged.error()));
  return std::move(merged->pattern);
}

Result<IndexSnapshot> merged_index(const ContainerDirectory& directory, const ContainerContent& content,
                                   MergedForm form) {
  IndexSnapshot merged{directory.manifest().id, 0, content.status, {}};
  merged.status.size = content.size();
  if (form == MergedForm::pattern_or_table && is_irregular(content)) merged.table = piece_table_of(content);
  if (merged.table) return merged;
  auto pattern = merge_indices(content);
  if (!pattern) return pass_on(std::move(pattern.error()));
  merged.pattern = *std::move(pattern);
  return merged;
}

Result<PieceMap> piece_map_of(const ContainerContent& content) {
  std::vector<IndexEntry> entries = holes_of(content);
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& writes : writer.writes) {
      if (writes.count() > max_pieces - entries.size())
        return fail(ErrorKind::infeasible,
                    "more than {} writes, which a traditional index would have to hold one by one", max_pieces);
      for (const IndexEntry& entry : writes.entries) {
        entries.push_back(entry);
        entries.back().id = writer.id;
      }
      std::array<std::int64_t, max_columns> v{};
      for (PatternCursor cursor(writes.pattern); cursor.next(v);)
        entries.push_back({v[logical_offset], v[write_length], v[physical_offset], v[write_sequence], 0, 0, writer.id});
    }
  std::ranges::stable_sort(entries, {}, &IndexEntry::sequence);
  PieceMap pieces;
  for (const IndexEntry& entry : entries)
    if (entry.length > 0 && entry.logical >= 0 && entry.length <= INT64_MAX - entry.logical)
      pieces.put(entry.logical, entry.length, entry.id, entry.physical);
  return pieces;
}

}  // namespace iosig
