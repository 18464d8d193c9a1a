#include "iosig/replay/write_map.h"

#include <algorithm>
#include <array>

#include "iosig/base/text.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/model/access_columns.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

DetectOptions options_of_rank() {
  DetectOptions options{.columns = index_columns};
  options.follows[physical_offset] = write_length;
  return options;
}

/// Adds the entries of a traditional index, which are not sorted by sequence number.
Result<void> add_entries(WriteMapBuilder& builder, const ContainerContent& content) {
  std::vector<IndexEntry> entries;
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& writes : writer.writes) {
      for (const IndexEntry& entry : writes.entries) {
        entries.push_back(entry);
        entries.back().id = writer.id;
      }
      std::array<std::int64_t, max_columns> v{};  // a write in the tail
      for (PatternCursor cursor(writes.pattern); cursor.next(v);)
        entries.push_back({v[logical_offset], v[write_length], v[physical_offset], v[write_sequence], 0, 0, writer.id});
    }
  std::ranges::stable_sort(entries, {}, &IndexEntry::sequence);
  for (const IndexEntry& entry : entries)
    if (auto added = builder.add(entry.id, entry.logical, entry.length); !added) return added;
  return {};
}

}  // namespace

WriteMapBuilder::Rank::Rank() : detector(options_of_rank()) {}

Result<void> WriteMapBuilder::add(std::int64_t rank, std::int64_t offset, std::int64_t length) {
  if (rank < 0 || rank >= end_rank_) {
    ++map_.left_out;
    return {};
  }
  if (offset < 0 || length < 0 || offset > INT64_MAX - length)
    return fail(ErrorKind::bad_input, "{} bytes at offset {}; expected bytes below 2^63", length, offset);
  if (length > max_write_bytes)
    return fail(ErrorKind::bad_input, "a write of {} bytes; at most {} are written at once", length, max_write_bytes);
  if (length > INT64_MAX - map_.bytes) return fail(ErrorKind::bad_input, "more than 2^63 - 1 bytes are written in all");
  std::unique_ptr<Rank>& known = ranks_[rank];
  if (!known) {
    if (ranks_.size() > max_mapped_ranks) {
      ranks_.erase(rank);
      return fail(ErrorKind::bad_input, "more than {} ranks; --ranks N takes the first N", max_mapped_ranks);
    }
    known = std::make_unique<Rank>();
  }
  known->detector.push(std::array{offset, length, known->bytes, static_cast<std::int64_t>(map_.writes)});
  known->bytes += length;
  map_.bytes += length;
  ++map_.writes;
  if (length > 0) map_.size = std::max(map_.size, offset + length);
  map_.longest = std::max(map_.longest, length);
  return {};
}

WriteMap WriteMapBuilder::finish() {
  for (auto& [rank, known] : ranks_) map_.ranks.push_back({rank, known->detector.finish()});
  ranks_.clear();
  std::ranges::sort(map_.ranks, {}, &RankWrites::rank);
  return std::exchange(map_, {});
}

Result<void> add_pattern(WriteMapBuilder& builder, const Pattern& pattern, const std::string& source) {
  const std::vector<std::string> names = column_names(pattern);
  AccessColumns columns = access_columns(names);
  if (names.empty()) columns = {0, pattern.columns > 1 ? 1 : -1, 2, pattern.columns > 3 ? 3 : -1};
  if (columns.logical < 0 || columns.length < 0)
    return fail(ErrorKind::bad_input,
                "{}: no column is the {} of the writes; expected logical, length and perhaps id (iosig pattern detect "
                "--columns)",
                source, columns.logical < 0 ? "logical offset" : "length");
  std::array<std::int64_t, max_columns> vector{};
  for (PatternCursor cursor(pattern); cursor.next(vector);) {
    const auto value = [&](int column) { return vector[static_cast<std::size_t>(column)]; };
    const std::int64_t rank = columns.id < 0 ? 0 : value(columns.id);
    if (auto added = builder.add(rank, value(columns.logical), value(columns.length)); !added)
      return fail(added.error().kind, "{}: vector {}: {}", source, cursor.position() - 1, added.error().message);
  }
  return {};
}

Result<void> add_container(WriteMapBuilder& builder, const std::string& path) {
  const auto directory = ContainerDirectory::open(path);
  if (!directory) return pass_on(directory.error());
  const auto read = read_content(**directory);
  if (!read) return pass_on(read.error());
  const ContainerContent& content = *read;
  const std::string source = printable(path);
  if ((*directory)->manifest().index == IndexKind::traditional) {
    auto added = add_entries(builder, content);
    if (!added) return fail(added.error().kind, "{}: {}", source, added.error().message);
    return added;
  }
  auto merged = merge_indices(content);
  if (!merged) return fail(merged.error().kind, "'{}': the index: {}", source, merged.error().message);
  return add_pattern(builder, *merged, source);
}

Result<MergedPattern> merged_writes(const WriteMap& map) {
  std::vector<LocalPattern> locals;
  for (const RankWrites& rank : map.ranks) locals.push_back({.pattern = &rank.writes, .id = rank.rank});
  return merge_patterns(locals);
}

}  // namespace iosig
