// Reads and checks the droppings of a container.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include "iosig/base/crc32c.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/parallel.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/read/content.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

constexpr std::size_t min_writers_for_threads = 128;  ///< with fewer, starting threads costs more than it saves
constexpr int max_read_tries = 4;
constexpr std::size_t compared_bytes = 1 << 20;  ///< bytes of two droppings that are compared at once
constexpr int plain_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
constexpr std::int64_t min_trips = 3;  ///< shorter loops are written as literals
constexpr std::array<std::int8_t, max_columns> physical_follows = {-1, -1, write_length, -1, -1, -1, -1, -1};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Reads all of an open regular file.
Result<std::string> read_whole(const Fd& fd, const std::string& shown, struct stat& status) {
  if (::fstat(fd.get(), &status) != 0) return system_failure("inspect", shown);
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::system, "'{}' is not a regular file", printable(shown));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", shown);
    if (got == 0) text.resize(done);
    done += static_cast<std::size_t>(got);
  }
  return text;
}

/// Returns the writes of `records` from byte `known` of the data dropping on. If the counts of a record do not agree,
/// because it was being updated or is damaged, returns its writes up to the end of the data.
IndexedWrites writes_in_tail(const std::vector<TailRecord>& records, std::int64_t known, std::int64_t data_bytes) {
  IndexedWrites writes;
  PatternBuilder builder(index_columns, physical_follows);
  std::int64_t end = known;
  for (const TailRecord& record : records) {
    const auto total = static_cast<std::int64_t>(record.count);
    const std::int64_t skipped =
        end <= record.physical ? 0 : std::min(total, (end - record.physical - 1) / record.length + 1);
    const std::int64_t there = record.has_sure_count()
                                   ? total
                                   : std::clamp<std::int64_t>((data_bytes - record.physical) / record.length, 0, total);
    if (there <= skipped) continue;
    const std::int64_t logical = record.logical + skipped * record.stride, count = there - skipped;
    const std::int64_t physical = record.physical + skipped * record.length;
    if (builder.count() == 0) {
      writes.opened = record.sequence;
      writes.physical = physical;
    }
    // The first physical offset of a pattern is stored explicitly, so the first write cannot be part of a nest.
    const std::int64_t alone = count <= min_trips ? count : 1;
    for (std::int64_t n = 0; n < alone; ++n)
      builder.add_literal(
          std::array{logical + n * record.stride, record.length, builder.count() == 0 ? physical : 0, record.sequence}
              .data());
    if (count > alone) {
      builder.end_block();
      const Node nodes[] = {{true, 2, 0}, {false, 2, 1}};
      const std::int64_t numbers[] = {
          count - alone, logical + alone * record.stride, record.stride, record.length, 0, 0, 0, record.sequence, 0};
      builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(count - alone));
    }
    const std::int64_t last = logical + (count - 1) * record.stride;
    writes.logical_end = std::max({writes.logical_end, logical + record.length, last + record.length});
    writes.opened = std::min(writes.opened, record.sequence);
    writes.closed = std::max(writes.closed, record.sequence);
    end = writes.physical_end = physical + count * record.length;
  }
  writes.pattern = builder.finish();
  return writes;
}

/// The result for one writer. Filled by one thread.
struct Found {
  std::optional<WriterContent> writer;
  std::vector<ContainerProblem> problems;
  std::vector<LostWrites> lost_writes;
  ContainerStatus status;         ///< without the size
  bool had_tail = false;          ///< there was a tail when it was read
  std::int64_t index_bytes = -1;  ///< size of the index when it was read; -1: none
  std::optional<Error> failure;   ///< transient: the writer was not read, and may be sound
  bool has_write_in_progress = false;

  /// Records writes whose offsets are lost.
  void lose(LostWrites writes, std::int64_t bytes = 0) {
    add(ContainerProblem::Kind::lost, writes.id, writes.message, bytes);
    lost_writes.push_back(std::move(writes));
  }
  /// Records that a dropping of writer `id` is there and could not be read.
  void fail_to_read(std::int64_t id, Error error) {
    if (is_transient(error.system_errno))
      failure = std::move(error);
    else
      lose({.id = id, .message = std::move(error.message)});
  }
  void add(ContainerProblem::Kind kind, std::int64_t id, std::string message, std::int64_t bytes = 0) {
    problems.push_back({kind, id, std::move(message), bytes});
  }
  /// A data dropping bears the times of writes and reads. An index bears the time of its last mark, as st_mtime; its
  /// other times also change when the writer closes it.
  void take_times(const struct stat& of, bool is_data) {
    if (is_data) status.accessed_unix_ns = std::max(status.accessed_unix_ns, unix_ns(of.st_atim));
    status.modified_unix_ns = std::max(status.modified_unix_ns, unix_ns(of.st_mtim));
    status.changed_unix_ns = std::max(status.changed_unix_ns, unix_ns(is_data ? of.st_ctim : of.st_mtim));
  }
};

class ContentReader {
 public:
  explicit ContentReader(const ContainerDirectory& directory) : directory_(directory) {}

  /// Reads again if droppings seem missing or changed: another process may have deleted or repaired them meanwhile.
  Result<ContainerContent> read() {
    for (int tries = 1;; ++tries) {
      const ContainerDirectory::Listing listing = directory_.list();
      auto closed = ClosedWriters::read(directory_, listing.closed_writers);
      if (!closed) return pass_on(std::move(closed.error()));
      closed_ = *std::move(closed);
      subdirectories_.clear();
      auto content = read_listed(listing);
      if (!content || tries == max_read_tries || !is_in_doubt(*content) || is_unchanged(listing)) {
        if (content) name_short_data(*content);
        return content;
      }
    }
  }

 private:
  /// Whether droppings are not as others say that they should be.
  static bool is_in_doubt(const ContainerContent& content) {
    return std::ranges::any_of(content.writers, &is_short) ||
           std::ranges::any_of(content.problems, [](const ContainerProblem& problem) {
             return problem.kind == ContainerProblem::Kind::damaged;
           });
  }
  static bool is_short(const WriterContent& writer) {
    return std::max<std::int64_t>(0, writer.data_bytes) < writer.physical_end();
  }

  [[nodiscard]] bool is_unchanged(const ContainerDirectory::Listing& listing) const {
    const ContainerDirectory::Listing now = directory_.list();
    const auto closed = ClosedWriters::read(directory_, now.closed_writers);
    return closed && closed->state() == closed_.state() && now.index == listing.index && now.data == listing.data &&
           now.tail == listing.tail;
  }

  Result<ContainerContent> read_listed(const ContainerDirectory::Listing& listing) {
    ContainerContent content;
    content.last_recorded_id = closed_.last_id();
    Found whole;
    for (const Error& error : listing.unreadable)
      if (is_transient(error.system_errno)) return pass_on(error);
    for (const Error& error : listing.unreadable) whole.add(ContainerProblem::Kind::lost, -1, error.message);
    if (listing.misses_indices) whole.lost_writes.push_back({.id = -1, .message = listing.unreadable.front().message});
    for (const std::string& name : listing.foreign_names)
      whole.add(ContainerProblem::Kind::foreign, -1,
                fmt::format("'{}/{}' is not part of the container", printable(directory_.path()), printable(name)));
    for (const ContainerDirectory::Quarantined& quarantine : listing.quarantined)
      whole.add(ContainerProblem::Kind::lost, quarantine.id,
                fmt::format("'{}': {} bytes that repair quarantined, which are not in the file", quarantine.shown,
                            quarantine.bytes),
                quarantine.bytes);
    for (const std::string& name : closed_.damaged())
      whole.add(ContainerProblem::Kind::damaged, -1,
                fmt::format("'{}/{}' was cut or changed: the record of closed writers is not complete",
                            printable(directory_.path()), name));
    take(std::move(whole), content);

    std::vector<std::int64_t> ids;
    std::ranges::set_union(listing.index, listing.data, std::back_inserter(ids));
    const std::vector<std::int64_t> closed = closed_.ids();
    open_subdirectories(ids);
    open_subdirectories(closed);
    std::vector<Found> found(ids.size());
    // At least 8 threads, because they mostly wait for the storage.
    const unsigned threads =
        ids.size() < min_writers_for_threads ? 1 : std::max(8U, std::thread::hardware_concurrency());
    for_each_in_parallel(ids.size(), threads, [&](std::size_t n) {
      found[n] = read_settled(ids[n], std::ranges::binary_search(listing.tail, ids[n]));
    });
    for (Found& each : found) {
      if (each.failure) return pass_on(*std::move(each.failure));
      take(std::move(each), content);
    }
    std::vector<std::int64_t> tails;  // without other droppings
    std::ranges::set_difference(listing.tail, ids, std::back_inserter(tails));
    open_subdirectories(tails);
    for (const std::int64_t id : tails) {
      Found alone = read_tail_alone(id);
      if (alone.failure) return pass_on(*std::move(alone.failure));
      take(std::move(alone), content);
    }
    std::vector<std::int64_t> gone;
    std::ranges::set_difference(closed, ids, std::back_inserter(gone));
    if (auto read = read_gone(gone, content); !read) return pass_on(std::move(read.error()));
    return content;
  }

  /// Reads the tail of a writer whose other droppings are missing. A writer makes its tail last.
  [[nodiscard]] Found read_tail_alone(std::int64_t id) const {
    Found found;
    const auto tail = read_dropping(Dropping::tail, id, found);
    if (!tail || found.failure) return found;
    const auto synced = synced_bytes(bytes_of(*tail));
    if (read_tail(bytes_of(*tail)).empty() && !synced) return found;
    if (is_foreign_tail(bytes_of(*tail), tail_identity(directory_.manifest().id, id), 0, 0)) return found;
    if (is_active(id, found).value_or(true)) return found;
    found.lose({.id = id,
                .message = fmt::format("'{}': the index and the data of its writer are missing",
                                       directory_.shown(Dropping::tail, id))},
               synced ? synced->data : 0);
    return found;
  }

  /// Reads the writers that were closed and have no droppings any more. A truncation to 0 deletes the droppings of
  /// writers with smaller ids; all others are missing.
  Result<void> read_gone(const std::vector<std::int64_t>& ids, ContainerContent& content) {
    std::int64_t first_id = 0;  // all with smaller ids were truncated
    const auto look_for_truncations = [&](const WriterContent& writer) {
      for (const IndexMark& mark : writer.marks)
        if (mark.kind == IndexMark::Kind::truncate && mark.offset == 0) first_id = std::max(first_id, writer.id);
    };
    std::ranges::for_each(content.writers, look_for_truncations);
    for (auto id = ids.rbegin(); id != ids.rend() && *id >= first_id; ++id) {
      Found found = read_writer(*id, false);
      if (found.failure) return pass_on(*std::move(found.failure));
      if (found.writer) look_for_truncations(*found.writer);
      take(std::move(found), content);
    }
    std::ranges::sort(content.writers, {}, &WriterContent::id);
    return {};
  }

  static void take(Found found, ContainerContent& content) {
    if (found.writer) content.writers.push_back(*std::move(found.writer));
    std::ranges::move(found.problems, std::back_inserter(content.problems));
    std::ranges::move(found.lost_writes, std::back_inserter(content.lost_writes));
    content.has_write_in_progress |= found.has_write_in_progress;
    content.status.blocks += found.status.blocks;
    content.status.modified_unix_ns = std::max(content.status.modified_unix_ns, found.status.modified_unix_ns);
    content.status.accessed_unix_ns = std::max(content.status.accessed_unix_ns, found.status.accessed_unix_ns);
    content.status.changed_unix_ns = std::max(content.status.changed_unix_ns, found.status.changed_unix_ns);
  }

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> place_of(Dropping kind, std::int64_t id) const {
    return {kind == Dropping::data ? directory_.target_of(id) : -1,
            id % static_cast<std::int64_t>(directory_.manifest().subdirectories)};
  }

  /// Opens the directories of all droppings, each once.
  void open_subdirectories(const std::vector<std::int64_t>& ids) {
    for (const std::int64_t id : ids)
      for (const Dropping kind : {Dropping::data, Dropping::index}) {
        if (subdirectories_.contains(place_of(kind, id))) continue;
        subdirectories_.emplace(place_of(kind, id), directory_.open_subdirectory(kind, id));
      }
  }
  /// Returns the directory of the dropping, which is not open if it does not exist. Records a problem if it cannot be
  /// opened. A target that is missing is a problem of the listing.
  const Fd& subdirectory_of(Dropping kind, std::int64_t id, Found& found) const {
    static const Fd none;
    const Result<Fd>& opened = subdirectories_.find(place_of(kind, id))->second;
    if (opened) return *opened;
    const int failure = opened.error().system_errno;
    if (failure != 0 && failure != ENOENT) found.fail_to_read(id, opened.error());
    return none;
  }

  /// Returns the whole dropping, or nothing if it does not exist. Records a problem if it cannot be read.
  std::optional<std::string> read_dropping(Dropping kind, std::int64_t id, Found& found) const {
    const Fd& subdirectory = subdirectory_of(kind, id, found);
    if (!subdirectory) return {};
    const Fd fd = open_file_at(subdirectory.get(), dropping_name(kind, id).c_str(), plain_flags);
    if (!fd && errno == ENOENT) return {};
    struct stat status {};
    auto text =
        fd ? read_whole(fd, directory_.shown(kind, id), status) : system_failure("open", directory_.shown(kind, id));
    if (text && kind == Dropping::index) found.take_times(status, false);
    if (text) return *std::move(text);
    found.fail_to_read(id, std::move(text.error()));
    return {};
  }

  /// Reads an index. If it is not what its writer had when it was closed, takes that from the record of the close.
  std::optional<std::string> read_index_dropping(WriterContent& writer, Found& found) const {
    Found reading;
    auto index = read_dropping(Dropping::index, writer.id, reading);
    const ClosedWriter* const closed = closed_.find(writer.id);
    const bool is_known = closed != nullptr && !closed->is_given_up && !reading.failure;
    if (is_known &&
        (!index || std::ssize(*index) != closed->index_bytes || crc32c(bytes_of(*index)) != closed->index_checksum)) {
      const std::string shown = directory_.shown(Dropping::index, writer.id);
      std::string message =
          fmt::format("'{}' {}", shown, index ? "was changed after its writer was closed" : "is missing");
      if (!closed->index.empty()) {
        found.add(ContainerProblem::Kind::damaged, writer.id, message + ": the record of closed writers has it");
        writer.is_restored = true;
        found.status = reading.status;
        return std::string(closed->index.begin(), closed->index.end());
      }
      found.lose({.id = writer.id, .message = std::move(message)});
    }
    found.status = reading.status;
    found.failure = std::move(reading.failure);
    std::ranges::move(reading.problems, std::back_inserter(found.problems));
    std::ranges::move(reading.lost_writes, std::back_inserter(found.lost_writes));
    return index;
  }

  /// Returns the status of the dropping, or nothing if it does not exist. Records a problem if it cannot be inspected.
  std::optional<struct stat> status_of(Dropping kind, std::int64_t id, Found& found) const {
    const Fd& subdirectory = subdirectory_of(kind, id, found);
    struct stat status {};
    if (!subdirectory) return {};
    if (::fstatat(subdirectory.get(), dropping_name(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      return status;
    if (errno != ENOENT) found.fail_to_read(id, system_failure("inspect", directory_.shown(kind, id)).value());
    return {};
  }

  /// Returns the size of the data dropping; -1 if it does not exist or is not a regular file.
  [[nodiscard]] std::int64_t data_bytes(std::int64_t id, Found& found) const {
    const auto status = status_of(Dropping::data, id, found);
    if (!status || !S_ISREG(status->st_mode)) return -1;
    found.take_times(*status, true);
    found.status.blocks += status->st_blocks;
    return status->st_size;
  }

  /// Reads the droppings of a writer. A writer that is opened or closed meanwhile may seem to have lost writes;
  /// therefore droppings with lost writes are read again if they have changed.
  [[nodiscard]] Found read_settled(std::int64_t id, bool has_tail) const {
    Found found = read_writer(id, has_tail);
    for (int tries = 1; tries < max_read_tries && !found.lost_writes.empty(); ++tries) {
      const bool has_tail_now = status_of(Dropping::tail, id, found).has_value();
      const auto index = status_of(Dropping::index, id, found);
      if (has_tail_now == found.had_tail && (index ? index->st_size : -1) == found.index_bytes) break;
      found = read_writer(id, has_tail_now);
    }
    return found;
  }

  [[nodiscard]] Found read_writer(std::int64_t id, bool has_tail) const {
    Found found;
    WriterContent writer;
    writer.id = id;
    // The tail first: writes that the writer moves from the tail to the index meanwhile are found in at least one of
    // them. Writes that are found in both are recognised by their physical offsets.
    const auto tail = has_tail ? read_dropping(Dropping::tail, id, found) : std::nullopt;
    const auto index = read_index_dropping(writer, found);
    writer.data_bytes = data_bytes(id, found);
    writer.has_tail = found.had_tail = tail.has_value();
    const std::int64_t at_stake = std::max<std::int64_t>(0, writer.data_bytes);
    if (!index) {
      // A writer makes its index before its data, so the index was lost; truncations by this writer are unknown, too.
      if (writer.data_bytes >= 0)
        found.lose({.id = id,
                    .message = fmt::format("'{}': {} bytes of data, but their index is missing",
                                           directory_.shown(Dropping::data, id), at_stake)},
                   at_stake);
      return found;
    }
    writer.index_bytes = found.index_bytes = static_cast<std::int64_t>(index->size());
    const std::string shown = directory_.shown(Dropping::index, id);
    auto read = read_index(bytes_of(*index), printable(shown));
    if (!read) {
      // A writer makes the head of the index before the data. If there are no data, it died before its first write.
      if (writer.data_bytes >= 0)
        found.lose({.id = id, .message = read.error().message}, at_stake);
      else
        found.add(ContainerProblem::Kind::unsynced, id, read.error().message);
      return found;
    }
    if (read->head.container != directory_.manifest().id || read->head.id != id) {
      const bool is_copy = read->head.container == directory_.manifest().id;
      std::string message =
          is_copy ? fmt::format("'{}' is the index of writer {}: a copy, or renamed", shown, read->head.id)
                  : fmt::format("'{}' is the index of another container", shown);
      // The data may be a copy, too. If they are not, the index of these data has been replaced.
      if (writer.data_bytes >= 0 && !(is_copy && have_same_data(id, read->head.id)))
        found.lost_writes.push_back({.id = id, .message = message});
      found.add(ContainerProblem::Kind::foreign, id, std::move(message), at_stake);
      return found;
    }
    static_cast<IndexContent&>(writer) = *std::move(read);
    for (const IndexDamage& damage : writer.damage) {
      std::string message = fmt::format("'{}': byte {}: {}, {} bytes", shown, damage.at, damage.what, damage.bytes);
      // The tail describes the last writes of a writer that died. A writer that closed its file has no tail.
      if (damage.is_cut && writer.has_tail)
        found.add(ContainerProblem::Kind::unsynced, id, std::move(message));
      else
        found.lose({id, damage.next_sequence, std::move(message)});
    }
    if (tail) add_tail(writer, *tail, *index, found);
    compare(writer, found);
    found.writer = std::move(writer);
    return found;
  }

  [[nodiscard]] bool have_same_data(std::int64_t one, std::int64_t other) const {
    const auto open = [&](std::int64_t id) { return directory_.open_dropping(Dropping::data, id, O_RDONLY); };
    const Fd fds[] = {open(one), open(other)};
    std::array<std::vector<char>, 2> parts;
    for (off_t at = 0;; at += static_cast<off_t>(parts[0].size())) {
      for (std::size_t n = 0; n < 2; ++n) {
        parts[n].resize(compared_bytes);
        const ssize_t got = fds[n] ? ::pread(fds[n].get(), parts[n].data(), parts[n].size(), at) : -1;
        if (got < 0) return false;
        parts[n].resize(static_cast<std::size_t>(got));
      }
      if (parts[0] != parts[1]) return false;
      if (parts[0].empty()) return true;
    }
  }

  /// Adds the writes in the tail. If the writer is dead, reports what is lost of them, and of what it had synced.
  void add_tail(WriterContent& writer, const std::string& tail, const std::string& index, Found& found) const {
    const std::int64_t known = writer.physical_end();
    const auto bytes = bytes_of(tail);
    const bool is_foreign =
        is_foreign_tail(bytes, tail_identity(directory_.manifest().id, writer.id), known, writer.data_bytes);
    if (!is_foreign) {
      IndexedWrites writes = writes_in_tail(read_tail(bytes), known, std::max<std::int64_t>(writer.data_bytes, 0));
      writer.tail_writes = writes.count();
      if (writer.tail_writes > 0) writer.writes.push_back(std::move(writes));
      writer.synced = synced_bytes(bytes);
    }
    const bool has_lost_tail = is_foreign || has_lost_records(bytes, known, writer.data_bytes) ||
                               (writer.synced && writer.physical_end() < writer.synced->data);
    // Damaged frames have been reported one by one; not a cut one at the end, which seems to be unfinished.
    const bool has_lost_index = writer.synced && found.lost_writes.empty() && !begins_as_synced(index, *writer.synced);
    const bool has_changed_head = !is_foreign && has_changed_synced_bytes(bytes);
    if (!has_lost_tail && !has_lost_index && !has_changed_head) return;
    // An active writer may have been updating the records while they were read; then nothing is lost.
    const auto is_writing = is_active(writer.id, found);
    if (is_writing.value_or(true)) return;
    if (has_lost_tail)
      found.lose({.id = writer.id,
                  .message = fmt::format("'{}': records were cut or changed: what they describe is lost",
                                         directory_.shown(Dropping::tail, writer.id))});
    if (has_changed_head)
      found.add(ContainerProblem::Kind::damaged, writer.id,
                fmt::format("'{}': its head was changed: what its writer had synced cannot be verified",
                            directory_.shown(Dropping::tail, writer.id)));
    if (has_lost_index)
      found.lose({.id = writer.id,
                  .message = fmt::format("'{}' was cut or changed after its writer had synced it: what it described is "
                                         "lost",
                                         directory_.shown(Dropping::index, writer.id))});
  }
  static bool begins_as_synced(const std::string& index, const SyncedBytes& synced) {
    return std::ssize(index) >= synced.index &&
           crc32c(bytes_of(index).first(static_cast<std::size_t>(synced.index))) == synced.index_checksum;
  }

  /// Whether the writer of a tail is alive; nothing if it has none any more, or that cannot be found out.
  std::optional<bool> is_active(std::int64_t id, Found& found) const {
    const Fd& subdirectory = subdirectory_of(Dropping::tail, id, found);
    const Fd fd = open_file_at(subdirectory.get(), dropping_name(Dropping::tail, id).c_str(), plain_flags);
    if (fd) return is_alive(fd);
    if (errno != ENOENT) found.fail_to_read(id, system_failure("open", directory_.shown(Dropping::tail, id)).value());
    return {};
  }

  /// Compares the index with the data dropping.
  void compare(const WriterContent& writer, Found& found) const {
    const std::string shown = directory_.shown(Dropping::data, writer.id);
    for (const IndexLoss& loss : writer.losses)
      found.add(loss.was_unfinished ? ContainerProblem::Kind::unsynced : ContainerProblem::Kind::lost, writer.id,
                fmt::format("'{}': bytes {} to {} were given up by repair: {}", shown, loss.physical,
                            loss.physical + loss.length,
                            loss.was_unfinished ? "from an unfinished write" : "their index is lost"),
                loss.length);
    for (const IndexLoss& part : writer.unindexed()) {
      const std::int64_t end = part.physical + part.length;
      if (part.was_unfinished) {
        found.add(
            ContainerProblem::Kind::unsynced, writer.id,
            fmt::format("'{}': bytes {} to {} have no index: from an unfinished write", shown, part.physical, end),
            part.length);
        found.has_write_in_progress = is_active(writer.id, found).value_or(true);
      } else
        found.lose({.id = writer.id,
                    .message = fmt::format("'{}': bytes {} to {} have lost their index", shown, part.physical, end)},
                   part.length);
    }
  }

  /// Names the data droppings that are missing or were cut. Those of writers that were truncated to 0 are deleted
  /// before their indices.
  void name_short_data(ContainerContent& content) const {
    std::int64_t emptied = -1;  // sequence number of the last truncation to 0
    for (const WriterContent& writer : content.writers)
      for (const IndexMark& mark : writer.marks)
        if (mark.kind == IndexMark::Kind::truncate && mark.offset == 0) emptied = std::max(emptied, mark.sequence);
    for (const WriterContent& writer : content.writers) {
      const bool is_void =
          std::ranges::all_of(writer.writes, [&](const IndexedWrites& writes) { return writes.closed <= emptied; });
      if (is_void || !is_short(writer)) continue;
      const std::string shown = directory_.shown(Dropping::data, writer.id);
      const std::int64_t known = writer.physical_end(), there = std::max<std::int64_t>(0, writer.data_bytes);
      content.problems.push_back({ContainerProblem::Kind::lost, writer.id,
                                  writer.data_bytes < 0
                                      ? fmt::format("'{}' is missing: {} bytes are lost", shown, known)
                                      : fmt::format("'{}' was cut: {} bytes of {} are there", shown, there, known),
                                  known - there});
    }
  }

  const ContainerDirectory& directory_;
  ClosedWriters closed_;
  std::map<std::pair<std::int64_t, std::int64_t>, Result<Fd>> subdirectories_;  ///< key: target and number
};

}  // namespace

Result<ContainerContent> read_content(const ContainerDirectory& directory) { return ContentReader(directory).read(); }

}  // namespace iosig
