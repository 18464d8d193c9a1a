// Reads the content of a container: lists it, reads its writers, and looks for those that are missing.

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "iosig/base/parallel.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/writer_reader.h"

namespace iosig {
namespace {

constexpr std::size_t min_writers_for_threads = 128;  ///< with fewer, starting threads costs more than it saves
constexpr std::int64_t min_index_bytes_for_threads = 1 << 18;
constexpr std::size_t writers_at_once = 4096;  ///< bounds the memory for what is found
constexpr int max_read_tries = 4;

using Listing = ContainerDirectory::Listing;

bool empties_file(const IndexMark& mark) { return mark.kind == IndexMark::Kind::truncate && mark.offset == 0; }

bool is_short(const WriterContent& writer) {
  return std::max<std::int64_t>(0, writer.data_bytes) < writer.physical_end();
}

/// Whether droppings are not as others say that they should be.
bool is_in_doubt(const ContainerContent& content, const Listing& listing) {
  const auto has_no_index = [&](const LostWrites& lost) {
    return lost.id >= 0 && !std::ranges::binary_search(listing.index, lost.id);
  };
  if (std::ranges::any_of(content.lost_writes, has_no_index)) return true;
  const auto is_damage = [](const ContainerProblem& problem) {
    return problem.kind == ContainerProblem::Kind::damaged;
  };
  return std::ranges::any_of(content.writers, &is_short) || std::ranges::any_of(content.problems, is_damage);
}

/// Reads a container once.
class ContentReader {
 public:
  ContentReader(const ContainerDirectory& directory, const Listing& listing, const ClosedWriters& closed,
                ContentSource source)
      : directory_(directory), listing_(listing), closed_(closed), writers_(directory, closed, source) {}

  Result<ContainerContent> read() {
    content_.last_recorded_id = closed_.last_id();
    std::vector<std::int64_t> ids, tails, gone;  // with an index or data; with a tail only; with a record only
    std::vector<std::int64_t> synced;
    const std::vector<std::int64_t> closed = closed_.ids();
    for (const SyncedWriter& each : closed_.synced()) synced.push_back(each.id);
    std::ranges::set_union(listing_.index, listing_.data, std::back_inserter(ids));
    std::ranges::set_difference(listing_.tail, ids, std::back_inserter(tails));
    std::ranges::set_difference(closed, ids, std::back_inserter(gone));
    for (const auto* each : {&ids, &tails, &gone, &synced}) writers_.open_directories(*each);

    auto done = take_listing();
    if (done) done = read_writers(ids);
    for (auto id = tails.begin(); done && id != tails.end(); ++id) done = take(writers_.read_tail_alone(*id));
    if (done) done = read_gone(gone);
    if (done) done = read_gone_synced(ids);
    if (!done) return pass_on(std::move(done.error()));
    name_short_data();
    name_given_up();
    return std::move(content_);
  }

 private:
  /// Names what the listing found besides droppings.
  Result<void> take_listing() {
    using enum ContainerProblem::Kind;
    FoundWriter whole;
    for (const Error& error : listing_.unreadable)
      if (is_transient(error.system_errno)) return pass_on(error);
    for (const Error& error : listing_.unreadable) whole.add(lost, -1, error.message);
    if (listing_.misses_indices)
      whole.lost_writes.push_back({.id = -1, .message = listing_.unreadable.front().message});
    for (const std::string& name : listing_.foreign_names)
      whole.add(foreign, -1,
                fmt::format("'{}/{}' is not part of the container", printable(directory_.path()), printable(name)));
    for (const ContainerDirectory::Quarantined& quarantine : listing_.quarantined)
      whole.add(lost, quarantine.id,
                fmt::format("'{}': {} bytes that repair quarantined, which are not in the file", quarantine.shown,
                            quarantine.bytes),
                quarantine.bytes);
    for (const std::string& name : closed_.damaged())
      whole.add(damaged, -1,
                fmt::format("'{}/{}' was cut or changed: the record of closed writers is not complete",
                            printable(directory_.path()), name));
    return take(std::move(whole));
  }

  Result<void> read_writers(const std::vector<std::int64_t>& ids) {
    const unsigned threads = threads_for(ids);
    content_.writers.reserve(ids.size());
    for (std::size_t first = 0; first < ids.size(); first += writers_at_once) {
      std::vector<FoundWriter> found(std::min(writers_at_once, ids.size() - first));
      for_each_in_parallel(found.size(), threads, [&](std::size_t n) {
        const std::int64_t id = ids[first + n];
        found[n] = writers_.read(id, std::ranges::binary_search(listing_.tail, id));
      });
      for (FoundWriter& each : found)
        if (auto taken = take(std::move(each)); !taken) return taken;
    }
    return {};
  }

  /// For many writers at least 8, because they mostly wait for the storage.
  [[nodiscard]] unsigned threads_for(const std::vector<std::int64_t>& ids) const {
    if (ids.size() >= min_writers_for_threads) return std::max(8U, std::thread::hardware_concurrency());
    std::int64_t index_bytes = 0;
    for (const std::int64_t id : ids)
      if (const ClosedWriter* const closed = closed_.find(id)) index_bytes += closed->index_bytes;
    return index_bytes < min_index_bytes_for_threads ? 1 : std::thread::hardware_concurrency();
  }

  /// Reads the writers that were closed and have no droppings any more. A truncation to 0 deletes the droppings of
  /// writers with smaller ids, unless they have written since; all others are missing.
  Result<void> read_gone(const std::vector<std::int64_t>& ids) {
    const std::size_t others = content_.writers.size();
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      FoundWriter found = writers_.read(*id, false);
      if (*id < emptied_by_ && !(found.writer && has_written_since(*found.writer))) continue;
      if (auto taken = take(std::move(found)); !taken) return taken;
    }
    if (content_.writers.size() > others) std::ranges::sort(content_.writers, {}, &WriterContent::id);
    return {};
  }

  /// Reads the writers that had synced and have neither index nor data. A truncation to 0 that deletes droppings has
  /// deleted the records before.
  Result<void> read_gone_synced(const std::vector<std::int64_t>& ids) {
    for (const SyncedWriter& synced : closed_.synced()) {
      if (std::ranges::binary_search(ids, synced.id) || is_lost(synced.id)) continue;
      if (auto taken = take(writers_.read_gone(synced)); !taken) return taken;
    }
    return {};
  }

  [[nodiscard]] bool is_lost(std::int64_t id) const {
    return std::ranges::find(content_.lost_writes, id, &LostWrites::id) != content_.lost_writes.end();
  }

  [[nodiscard]] bool is_void(const IndexedWrites& writes) const { return writes.closed <= emptied_at_; }

  [[nodiscard]] bool has_written_since(const WriterContent& writer) const {
    return std::ranges::any_of(writer.writes, [&](const auto& writes) { return !is_void(writes); }) ||
           std::ranges::any_of(writer.marks, [&](const auto& mark) { return mark.sequence > emptied_at_; });
  }

  Result<void> take(FoundWriter found) {
    if (found.failure) return pass_on(*std::move(found.failure));
    if (found.writer) {
      for (const IndexMark& mark : found.writer->marks) {
        if (!empties_file(mark)) continue;
        emptied_by_ = std::max(emptied_by_, found.writer->id);
        emptied_at_ = std::max(emptied_at_, mark.sequence);
      }
      content_.writers.push_back(*std::move(found.writer));
    }
    std::ranges::move(found.problems, std::back_inserter(content_.problems));
    std::ranges::move(found.lost_writes, std::back_inserter(content_.lost_writes));
    content_.has_write_in_progress |= found.has_write_in_progress;
    ContainerStatus& status = content_.status;
    status.blocks += found.status.blocks;
    status.modified_unix_ns = std::max(status.modified_unix_ns, found.status.modified_unix_ns);
    status.accessed_unix_ns = std::max(status.accessed_unix_ns, found.status.accessed_unix_ns);
    status.changed_unix_ns = std::max(status.changed_unix_ns, found.status.changed_unix_ns);
    return {};
  }

  /// Names the data droppings that are missing or were cut. Those of writers that were truncated to 0 are deleted
  /// before their indices.
  void name_short_data() {
    for (const WriterContent& writer : content_.writers) {
      if (!is_short(writer) || std::ranges::all_of(writer.writes, [&](const auto& each) { return is_void(each); }))
        continue;
      const std::string shown = directory_.shown(Dropping::data, writer.id);
      const std::int64_t known = writer.physical_end(), there = std::max<std::int64_t>(0, writer.data_bytes);
      std::string message = writer.data_bytes < 0
                                ? fmt::format("'{}' is missing: {} bytes are lost", shown, known)
                                : fmt::format("'{}' was cut: {} bytes of {} are there", shown, there, known);
      if (writer.has_tail && writer.data_bytes >= writer.synced_data(closed_.find_synced(writer.id)))
        message += "; what is missing was not synced, and repair drops the writes if their writer is dead";
      content_.problems.push_back({ContainerProblem::Kind::lost, writer.id, std::move(message), known - there});
    }
  }

  /// Names what repair has given up without a trace in the quarantine.
  void name_given_up() {
    for (const ClosedWriter& each : closed_.given_up())
      if (each.data_bytes > 0 && each.id >= emptied_by_)
        content_.problems.push_back(
            {ContainerProblem::Kind::lost, each.id,
             fmt::format("writer {}: {} bytes that it had synced were missing, and were given up by repair", each.id,
                         each.data_bytes),
             each.data_bytes});
  }

  const ContainerDirectory& directory_;
  const Listing& listing_;
  const ClosedWriters& closed_;
  WriterReader writers_;
  ContainerContent content_;
  std::int64_t emptied_by_ = 0, emptied_at_ = -1;  ///< last truncation to 0 so far: largest writer, sequence number
};

bool is_unchanged(const ContainerDirectory& directory, const Listing& listing, const ClosedWriters& closed) {
  const Listing now = directory.list();
  const auto closed_now = ClosedWriters::read(directory, now.closed_writers);
  return closed_now && closed_now->state() == closed.state() && now.index == listing.index &&
         now.data == listing.data && now.tail == listing.tail;
}

}  // namespace

/// Reads again if droppings seem missing or changed: another process may have deleted or repaired them meanwhile.
Result<ContainerContent> read_content(const ContainerDirectory& directory, ContentSource source,
                                      std::optional<Listing> made) {
  for (int tries = 1;; ++tries) {
    const Listing listing = made ? *std::exchange(made, std::nullopt) : directory.list();
    const auto closed = ClosedWriters::read(directory, listing.closed_writers);
    if (!closed) return pass_on(closed.error());
    auto content = ContentReader(directory, listing, *closed, source).read();
    if (!content || tries == max_read_tries || !is_in_doubt(*content, listing) ||
        is_unchanged(directory, listing, *closed))
      return content;
  }
}

}  // namespace iosig
