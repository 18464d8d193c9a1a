#include "iosig/store/content.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <thread>

#include "iosig/base/machine.h"
#include "iosig/base/parallel.h"
#include "iosig/base/text.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"
#include "iosig/store/tail.h"

namespace iosig {
namespace {

constexpr std::size_t many_writers = 128;        ///< from here on threads are worth their start
constexpr std::uint64_t most_walked = 1u << 28;  ///< writes; no writer puts more into a frame of several numbers
constexpr std::int64_t least_trips = 3;          ///< a loop of fewer is written as literals
constexpr std::array<std::int8_t, most_columns> physical_follows = {-1, -1, write_length, -1, -1, -1, -1, -1};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// All of an open ordinary file.
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

/// The writes of `records` from `known` bytes of the data dropping on, as far as the data go.
IndexedWrites writes_of(const std::vector<TailRecord>& records, std::int64_t known, std::int64_t data_bytes) {
  IndexedWrites writes;
  PatternBuilder builder(index_columns, physical_follows);
  std::int64_t end = known;
  for (const TailRecord& record : records) {
    const auto total = static_cast<std::int64_t>(record.count);
    const std::int64_t skipped =
        end <= record.physical ? 0 : std::min(total, (end - record.physical - 1) / record.length + 1);
    const std::int64_t there = std::clamp<std::int64_t>((data_bytes - record.physical) / record.length, 0, total);
    if (there <= skipped) continue;
    const std::int64_t logical = record.logical + skipped * record.stride, count = there - skipped;
    const std::int64_t physical = record.physical + skipped * record.length;
    if (builder.count() == 0) {
      writes.opened = record.sequence;
      writes.physical = physical;
    }
    // The first physical offset of a pattern is given; so its write is no part of a nest.
    const std::int64_t alone = count <= least_trips ? count : 1;
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

/// What one writer left: filled by one thread.
struct Found {
  std::optional<WriterContent> writer;
  std::vector<ContainerProblem> problems;
  ContainerStatus status;  ///< without the size

  void add(ContainerProblem::Kind kind, std::int64_t id, std::string message, std::int64_t bytes = 0) {
    problems.push_back({kind, id, std::move(message), bytes});
  }
  void take_times(const struct stat& of) {
    status.modified_unix_ns = std::max(status.modified_unix_ns, unix_ns(of.st_mtim));
    status.accessed_unix_ns = std::max(status.accessed_unix_ns, unix_ns(of.st_atim));
    status.changed_unix_ns = std::max(status.changed_unix_ns, unix_ns(of.st_ctim));
  }
};

class ContentReader {
 public:
  explicit ContentReader(const ContainerFolder& folder) : folder_(folder) {}

  ContainerContent read() {
    const ContainerFolder::Listing listing = folder_.list();
    ContainerContent content;
    Found whole;
    for (const Error& error : listing.unreadable) whole.add(ContainerProblem::Kind::lost, -1, error.message);
    for (const std::string& name : listing.strangers)
      whole.add(ContainerProblem::Kind::foreign, -1,
                fmt::format("'{}/{}' is no part of the container", printable(folder_.path()), printable(name)));
    take(std::move(whole), content);

    std::vector<std::int64_t> ids = listing.index, without_index;
    std::ranges::set_difference(listing.data, listing.index, std::back_inserter(without_index));
    ids.insert(ids.end(), without_index.begin(), without_index.end());
    open_subfolders(ids);
    std::vector<Found> found(ids.size());
    // They wait for the storage more than they compute.
    const unsigned threads = ids.size() < many_writers ? 1 : std::max(8U, std::thread::hardware_concurrency());
    for_each_in_parallel(ids.size(), threads, [&](std::size_t n) {
      if (n < listing.index.size())
        read_writer(ids[n], std::ranges::binary_search(listing.tail, ids[n]), found[n]);
      else
        read_without_index(ids[n], found[n]);
    });
    for (Found& each : found) take(std::move(each), content);
    return content;
  }

 private:
  static void take(Found found, ContainerContent& content) {
    if (found.writer) content.writers.push_back(*std::move(found.writer));
    std::ranges::move(found.problems, std::back_inserter(content.problems));
    content.status.blocks += found.status.blocks;
    content.status.modified_unix_ns = std::max(content.status.modified_unix_ns, found.status.modified_unix_ns);
    content.status.accessed_unix_ns = std::max(content.status.accessed_unix_ns, found.status.accessed_unix_ns);
    content.status.changed_unix_ns = std::max(content.status.changed_unix_ns, found.status.changed_unix_ns);
  }

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> place_of(Dropping kind, std::int64_t id) const {
    return {kind == Dropping::data ? folder_.target_of(id) : -1,
            id % static_cast<std::int64_t>(folder_.manifest().subfolders)};
  }

  /// The folders of all droppings; each is opened once.
  void open_subfolders(const std::vector<std::int64_t>& ids) {
    for (const std::int64_t id : ids)
      for (const Dropping kind : {Dropping::data, Dropping::index}) {
        if (subfolders_.contains(place_of(kind, id))) continue;
        auto opened = folder_.open_subfolder(kind, id);
        subfolders_.emplace(place_of(kind, id), opened ? *std::move(opened) : Fd{});
      }
  }
  [[nodiscard]] const Fd& subfolder_of(Dropping kind, std::int64_t id) const {
    return subfolders_.find(place_of(kind, id))->second;
  }

  /// The whole dropping; nothing when it is not there. One that cannot be read is a problem.
  std::optional<std::string> read_dropping(Dropping kind, std::int64_t id, Found& found) const {
    const Fd& subfolder = subfolder_of(kind, id);
    if (!subfolder) return {};
    const Fd fd(
        ::openat(subfolder.get(), dropping_name(kind, id).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) return {};
    struct stat status {};
    auto text = fd ? read_whole(fd, folder_.shown(kind, id), status) : system_failure("open", folder_.shown(kind, id));
    if (text && kind == Dropping::index) found.take_times(status);
    if (text) return *std::move(text);
    found.add(ContainerProblem::Kind::lost, id, text.error().message);
    return {};
  }

  /// -1: it is not there, or no ordinary file.
  [[nodiscard]] std::int64_t data_bytes(std::int64_t id, Found& found) const {
    const Fd& subfolder = subfolder_of(Dropping::data, id);
    struct stat status {};
    const bool is_there = subfolder && ::fstatat(subfolder.get(), dropping_name(Dropping::data, id).c_str(), &status,
                                                 AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there || !S_ISREG(status.st_mode)) return -1;
    found.take_times(status);
    found.status.blocks += status.st_blocks;
    return status.st_size;
  }

  void read_without_index(std::int64_t id, Found& found) const {
    const std::int64_t bytes = data_bytes(id, found);
    if (bytes > 0)
      found.add(
          ContainerProblem::Kind::lost, id,
          fmt::format("'{}': {} bytes of data, but their index is missing", folder_.shown(Dropping::data, id), bytes),
          bytes);
  }

  void read_writer(std::int64_t id, bool has_tail, Found& found) const {
    WriterContent writer;
    writer.id = id;
    // In this order: what a writer moves from the tail to the index is found in one of them at least, and where it is
    // found in both the physical offsets tell.
    const auto tail = has_tail ? read_dropping(Dropping::tail, id, found) : std::nullopt;
    const auto index = read_dropping(Dropping::index, id, found);
    writer.data_bytes = data_bytes(id, found);
    if (!index) return;
    writer.index_bytes = static_cast<std::int64_t>(index->size());
    writer.has_tail = tail.has_value();
    const std::string shown = folder_.shown(Dropping::index, id);
    auto read = read_index(bytes_of(*index), printable(shown));
    if (!read) {
      // Whoever died while it made its droppings wrote nothing.
      const bool has_data = writer.data_bytes > 0;
      found.add(has_data ? ContainerProblem::Kind::lost : ContainerProblem::Kind::unsynced, id, read.error().message,
                has_data ? writer.data_bytes : 0);
      return;
    }
    if (read->head.container != folder_.manifest().id || read->head.id != id) {
      const bool is_copy = read->head.container == folder_.manifest().id;
      return found.add(ContainerProblem::Kind::foreign, id,
                       is_copy ? fmt::format("'{}' is the index of writer {}: a copy, or renamed", shown, read->head.id)
                               : fmt::format("'{}' is the index of another container", shown));
    }
    writer.head = std::move(read->head);
    writer.writes = std::move(read->writes);
    writer.marks = std::move(read->marks);
    // What a writer was at when it died is in its tail. One that has closed its file has none; bytes of its data that
    // no sound frame speaks of, with damage where the frame should be, had one.
    const bool has_lost_frame = !writer.has_tail && !read->damage.empty() && writer.data_bytes > writer.physical_end();
    for (const IndexDamage& damage : read->damage)
      found.add(damage.is_tail && !has_lost_frame ? ContainerProblem::Kind::unsynced : ContainerProblem::Kind::lost, id,
                fmt::format("'{}': byte {}: {}, {} bytes", shown, damage.at, damage.what, damage.bytes));
    if (tail) add_tail(writer, read_tail(bytes_of(*tail)));
    compare(writer, has_lost_frame, found);
    found.writer = std::move(writer);
  }

  static void add_tail(WriterContent& writer, const std::vector<TailRecord>& records) {
    IndexedWrites writes = writes_of(records, writer.physical_end(), std::max<std::int64_t>(writer.data_bytes, 0));
    writer.tail_writes = writes.count();
    if (writer.tail_writes > 0) writer.writes.push_back(std::move(writes));
  }

  /// What the index says against what is there.
  void compare(const WriterContent& writer, bool has_lost_frame, Found& found) const {
    const std::string shown = folder_.shown(Dropping::data, writer.id);
    std::int64_t at = 0;
    for (const IndexedWrites& writes : writer.writes) {
      if (writes.physical > at)
        found.add(ContainerProblem::Kind::lost, writer.id,
                  fmt::format("'{}': bytes {} to {}: their index is lost", shown, at, writes.physical),
                  writes.physical - at);
      at = std::max(at, writes.physical_end);
    }
    if (writer.data_bytes < 0 && at > 0)
      found.add(ContainerProblem::Kind::lost, writer.id, fmt::format("'{}' is missing: {} bytes are lost", shown, at),
                at);
    else if (std::max<std::int64_t>(0, writer.data_bytes) < at)
      found.add(ContainerProblem::Kind::lost, writer.id,
                fmt::format("'{}' was cut: {} bytes of {} are there", shown, writer.data_bytes, at),
                at - writer.data_bytes);
    else if (writer.data_bytes > at)
      found.add(has_lost_frame ? ContainerProblem::Kind::lost : ContainerProblem::Kind::unsynced, writer.id,
                fmt::format("'{}': bytes {} to {} {}", shown, at, writer.data_bytes,
                            has_lost_frame ? "have lost their index" : "have no index: of a write that did not end"),
                writer.data_bytes - at);
  }

  const ContainerFolder& folder_;
  std::map<std::pair<std::int64_t, std::int64_t>, Fd> subfolders_;  ///< by target and number
};

/// Where the writes with a number above `after` end.
std::int64_t end_after(const IndexedWrites& writes, std::int64_t after) {
  if (writes.closed <= after) return 0;
  if (writes.opened > after || writes.pattern.count() > most_walked) return writes.logical_end;
  std::int64_t end = 0;
  for (const IndexEntry& entry : writes.entries)
    if (entry.sequence > after) end = std::max(end, entry.logical + entry.length);
  std::array<std::int64_t, most_columns> vector{};
  for (PatternCursor cursor(writes.pattern); cursor.next(vector);)
    if (vector[write_sequence] > after && vector[logical_offset] >= 0 && vector[write_length] >= 0 &&
        vector[write_length] <= INT64_MAX - vector[logical_offset])
      end = std::max(end, vector[logical_offset] + vector[write_length]);
  return end;
}

}  // namespace

std::int64_t ContainerContent::size() const {
  std::int64_t size = 0, last_cut = -1;
  for (const WriterContent& writer : writers)
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::truncate && mark.sequence > last_cut) {
        last_cut = mark.sequence;
        size = mark.offset;
      }
  for (const WriterContent& writer : writers) {
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::extend && mark.sequence > last_cut) size = std::max(size, mark.offset);
    for (const IndexedWrites& writes : writer.writes) size = std::max(size, end_after(writes, last_cut));
  }
  return size;
}

std::int64_t ContainerContent::last_sequence() const {
  std::int64_t last = 0;
  for (const WriterContent& writer : writers) {
    for (const IndexMark& mark : writer.marks) last = std::max(last, mark.sequence);
    for (const IndexedWrites& writes : writer.writes) last = std::max(last, writes.closed);
  }
  return last;
}

ContainerContent read_content(const ContainerFolder& folder) { return ContentReader(folder).read(); }

}  // namespace iosig
