#include "iosig/container/read/regular_writers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <span>
#include <system_error>
#include <thread>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/parallel.h"
#include "iosig/container/read/dropping_reader.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

constexpr std::size_t min_regular_writers = 128;
constexpr std::size_t records_buffer_bytes = 1 << 20;   ///< for records that are read at once
constexpr std::size_t min_bytes_for_threads = 1 << 16;  ///< with fewer, starting threads costs more than it saves
constexpr std::size_t stats_at_once = 256;
constexpr std::size_t min_writers_per_run = 8;  ///< on average; with fewer, the general way finds a smaller pattern

/// Write n of the writer, n < count, has `length` bytes at offset + n stride in the file, and at n length in its data.
struct RegularWriter {
  std::int64_t id = 0, recorded_unix_ns = 0;
  std::int64_t offset = 0, stride = 0, length = 0, count = 0;
  std::int64_t opened = 0, closed = 0;  ///< sequence numbers
  std::int64_t logical_end = 0;
};

/// `writers` writers from `first` on, whose ids and offsets grow by constant steps.
struct Run {
  RegularWriter first;
  std::int64_t writers = 1, id_step = 0, offset_step = 0;
};

/// Sets offset, stride, length and count from the pattern of a whole index. false: it is not one write or one loop over
/// one leaf, of one length, from byte 0 of the data on.
bool take_writes(const Pattern& pattern, RegularWriter& writer) {
  constexpr auto none = std::int8_t{-1};
  const bool follows = pattern.follows[physical_offset] == write_length;
  if (pattern.columns != index_columns || pattern.terms.size() != 1 || !pattern.exception_positions.empty() ||
      pattern.follows[logical_offset] != none || pattern.follows[write_length] != none ||
      (!follows && pattern.follows[physical_offset] != none))
    return false;
  std::array<std::int64_t, max_columns> vector{}, step{};
  if (!pattern.terms[0].is_nest) {
    if (pattern.count() != 1) return false;
    PatternIndex(pattern).element(0, vector);
    step[physical_offset] = follows ? 0 : vector[write_length];
  } else {
    // The loop's only number is its turns. The leaf has two numbers for each column: of the first turn, for each turn.
    if (pattern.nodes.size() != 2 || pattern.numbers.size() != 1 + 2 * index_columns) return false;
    for (std::size_t column = 0; column < index_columns; ++column) {
      vector[column] = pattern.numbers[1 + 2 * column];
      step[column] = pattern.numbers[2 + 2 * column];
    }
  }
  writer.count = static_cast<std::int64_t>(pattern.count());
  writer.offset = vector[logical_offset];
  writer.stride = step[logical_offset];
  writer.length = vector[write_length];
  return writer.length > 0 && step[write_length] == 0 && writer.offset >= 0 && vector[physical_offset] == 0 &&
         step[physical_offset] == (follows ? 0 : writer.length);
}

/// Returns a writer from the record of its close; nothing if it is not simple.
std::optional<RegularWriter> writer_of(const ClosedWriter& closed, const std::string& container) {
  if (closed.container != container || closed.is_given_up || closed.index.empty()) return {};
  const auto index = read_only_writes(closed.index);
  if (!index || index->container != container || index->id != closed.id) return {};
  const IndexedWrites& writes = index->writes;
  RegularWriter writer{.id = closed.id,
                       .recorded_unix_ns = closed.recorded_unix_ns,
                       .opened = writes.opened,
                       .closed = writes.closed,
                       .logical_end = writes.logical_end};
  if (!take_writes(writes.pattern, writer)) return {};
  // A sound pattern's values do not overflow. The frame's numbers are a summary of it; the general way reads either.
  const std::int64_t last = writer.offset + (writer.count - 1) * writer.stride, begin = std::max(writer.offset, last);
  const bool fits = last >= 0 && writer.length <= INT64_MAX / writer.count && writes.physical == 0 &&
                    writes.physical_end == writer.count * writer.length && closed.data_bytes == writes.physical_end &&
                    writer.length <= INT64_MAX - begin && writer.logical_end == begin + writer.length;
  return fits ? std::optional(writer) : std::nullopt;
}

/// Frames that are complete, if their lengths are right, in parts for the threads.
struct Frames {
  std::vector<std::span<const std::uint8_t>> parts;
  std::size_t bytes = 0;
};

Frames frames_at_the_beginning_of(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t head = 12, part_bytes = 1 << 15;
  Frames frames;
  std::size_t part = 0;
  while (bytes.size() - frames.bytes >= head) {
    std::size_t payload = 0;
    for (std::size_t n = 0; n < 4; ++n) payload |= std::size_t{bytes[frames.bytes + 4 + n]} << (8 * n);
    if (payload > bytes.size() - frames.bytes - head) break;
    frames.bytes += head + payload;
    if (frames.bytes - part < part_bytes) continue;
    frames.parts.push_back(bytes.subspan(part, frames.bytes - part));
    part = frames.bytes;
  }
  if (frames.bytes > part) frames.parts.push_back(bytes.subspan(part, frames.bytes - part));
  return frames;
}

/// The records of a container, of which only the simple writers' numbers are kept.
class RecordReader {
 public:
  RecordReader(const ContainerDirectory& directory, std::size_t expected) : directory_(directory) {
    writers.reserve(expected);
  }

  /// false: there is something that is not simple, or cannot be read.
  bool read(const std::string& name) {
    const Fd file = open_file_at(directory_.fd().get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    buffer_.resize(records_buffer_bytes);
    std::size_t held = 0;
    for (off_t at = 0;;) {
      const ssize_t got = ::pread(file.get(), buffer_.data() + held, buffer_.size() - held, at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got == 0 && held == 0;
      at += got;
      held += static_cast<std::size_t>(got);
      const Frames frames = frames_at_the_beginning_of(std::span(buffer_).first(held));
      if (!take(frames)) return false;
      std::copy(buffer_.begin() + static_cast<long>(frames.bytes), buffer_.begin() + static_cast<long>(held),
                buffer_.begin());
      held -= frames.bytes;
      if (held == buffer_.size()) return false;  // a record of more than the buffer
    }
  }

  /// Keeps the last record of each writer, sorted by id. false: a writer has synced and has no record of its close.
  bool sort() {
    const auto order = [](const RegularWriter& writer) { return std::pair(writer.id, writer.recorded_unix_ns); };
    if (!std::ranges::is_sorted(writers, {}, order)) std::ranges::stable_sort(writers, {}, order);
    const auto is_same = [](const RegularWriter& one, const RegularWriter& other) { return one.id == other.id; };
    writers.erase(writers.begin(), std::unique(writers.rbegin(), writers.rend(), is_same).base());
    return std::ranges::all_of(
        synced_, [&](std::int64_t id) { return std::ranges::binary_search(writers, id, {}, &RegularWriter::id); });
  }

  std::vector<RegularWriter> writers;

 private:
  struct Part {
    std::vector<RegularWriter> writers;
    std::vector<std::int64_t> synced;
  };

  /// Returns nothing if there is something that is not simple.
  [[nodiscard]] std::optional<Part> read_part(std::span<const std::uint8_t> frames) const {
    const ClosedWriterRecords records = read_closed_writers(frames);
    if (records.damaged_bytes > 0) return {};
    Part part;
    for (const SyncedWriter& synced : records.synced) part.synced.push_back(synced.id);
    part.writers.reserve(records.writers.size());
    for (const ClosedWriter& closed : records.writers) {
      const auto writer = writer_of(closed, directory_.manifest().id);
      if (!writer) return {};
      part.writers.push_back(*writer);
    }
    return part;
  }

  bool take(const Frames& frames) {
    std::vector<std::optional<Part>> parts(frames.parts.size());
    std::atomic<bool> is_simple = true;
    for_each_in_parallel(parts.size(), frames.bytes < min_bytes_for_threads ? 1 : 0, [&](std::size_t n) {
      if (!is_simple) return;
      parts[n] = read_part(frames.parts[n]);
      if (!parts[n]) is_simple = false;
    });
    if (!is_simple) return false;
    for (const auto& part : parts) {
      writers.insert(writers.end(), part->writers.begin(), part->writers.end());
      synced_.insert(synced_.end(), part->synced.begin(), part->synced.end());
    }
    return true;
  }

  const ContainerDirectory& directory_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::int64_t> synced_;
};

/// Data droppings of the ids that were asked for.
struct InspectedData {
  std::vector<std::int64_t> bytes;
  ContainerStatus status;  ///< of all of them, without the size

  void add(const ContainerStatus& other) {
    status.blocks += other.blocks;
    status.modified_unix_ns = std::max(status.modified_unix_ns, other.modified_unix_ns);
    status.accessed_unix_ns = std::max(status.accessed_unix_ns, other.accessed_unix_ns);
    status.changed_unix_ns = std::max(status.changed_unix_ns, other.changed_unix_ns);
  }
};

/// Inspects data droppings. Nothing if one is missing or not a regular file, or if it was stopped.
std::optional<InspectedData> inspect_data(const ContainerDirectory& directory, const std::vector<std::int64_t>& ids,
                                          const std::atomic<bool>& is_stopped) {
  DroppingReader droppings(directory);
  droppings.open_directories(ids);
  const std::size_t parts = (ids.size() + stats_at_once - 1) / stats_at_once;
  std::vector<std::optional<InspectedData>> found(parts);
  // Mostly waits for the storage.
  const unsigned threads = std::max(8U, std::thread::hardware_concurrency());
  for_each_in_parallel(parts, threads, [&](std::size_t part) {
    if (is_stopped) return;
    InspectedData whole;
    whole.bytes.reserve(stats_at_once);
    for (std::size_t n = part * stats_at_once; n < std::min(ids.size(), (part + 1) * stats_at_once); ++n) {
      const auto status = droppings.status(Dropping::data, ids[n]);
      if (!status || !*status || !S_ISREG((*status)->st_mode)) return;
      const struct stat& it = **status;
      whole.bytes.push_back(it.st_size);
      whole.add({0, it.st_blocks, unix_ns(it.st_mtim), unix_ns(it.st_atim), unix_ns(it.st_ctim)});
    }
    found[part] = std::move(whole);
  });
  InspectedData whole;
  for (const auto& part : found) {
    if (!part) return {};
    whole.bytes.insert(whole.bytes.end(), part->bytes.begin(), part->bytes.end());
    whole.add(part->status);
  }
  return whole;
}

/// Inspects data droppings while its owner does something else.
class DataInspection {
 public:
  DataInspection(const ContainerDirectory& directory, const std::vector<std::int64_t>& ids) {
    const auto inspect = [&] { return inspect_data(directory, ids, is_stopped_); };
    try {
      data_ = std::async(std::launch::async, inspect);
    } catch (const std::system_error&) {  // no more threads
      data_ = std::async(std::launch::deferred, inspect);
    }
  }
  DataInspection(const DataInspection&) = delete;
  DataInspection& operator=(const DataInspection&) = delete;
  ~DataInspection() { is_stopped_ = true; }  // data_ then waits for the thread

  std::optional<InspectedData> result() { return data_.get(); }

 private:
  std::atomic<bool> is_stopped_ = false;
  std::future<std::optional<InspectedData>> data_;
};

bool goes_on(const Run& run, const RegularWriter& last, const RegularWriter& next) {
  const RegularWriter& first = run.first;
  return next.stride == first.stride && next.length == first.length && next.count == first.count &&
         (run.writers == 1 || (next.id - last.id == run.id_step && next.offset - last.offset == run.offset_step));
}

std::vector<Run> runs_of(const std::vector<RegularWriter>& writers) {
  std::vector<Run> runs;
  for (std::size_t n = 0; n < writers.size(); ++n) {
    const RegularWriter& writer = writers[n];
    if (runs.empty() || !goes_on(runs.back(), writers[n - 1], writer)) {
      runs.push_back({writer});
      continue;
    }
    Run& run = runs.back();
    run.id_step = writer.id - writers[n - 1].id;
    run.offset_step = writer.offset - writers[n - 1].offset;
    ++run.writers;
  }
  return runs;
}

/// Whether each writer's numbers are greater than those of all writers before it.
bool are_in_order(const std::vector<RegularWriter>& writers) {
  for (std::size_t n = 1; n < writers.size(); ++n)
    if (writers[n].opened <= writers[n - 1].closed) return false;
  return true;
}

/// Whether no writer writes a byte of another: each write of all writers lies between two writes of the first, or each
/// writer lies behind all of the one before.
bool are_apart(const Run& run) {
  const RegularWriter& first = run.first;
  if (first.stride < 0 || run.offset_step < 0) return false;
  const auto product = [](std::int64_t one, std::int64_t other, std::int64_t plus) {
    std::int64_t sum = 0;
    return __builtin_mul_overflow(one, other, &sum) || __builtin_add_overflow(sum, plus, &sum) ? INT64_MAX : sum;
  };
  const std::int64_t of_turn = product(run.writers - 1, run.offset_step, first.length),
                     of_writer = product(first.count - 1, first.stride, first.length);
  const bool is_interleaved =
      run.offset_step >= first.length && (first.count == 1 || (of_turn < INT64_MAX && of_turn <= first.stride));
  return is_interleaved || (of_writer < INT64_MAX && of_writer <= run.offset_step);
}

void append(const Run& run, PatternBuilder& builder) {
  const RegularWriter& first = run.first;
  if (run.writers == 1 && first.count == 1) {
    const std::array<std::int64_t, 4> vector{first.offset, first.length, 0, first.id};
    return builder.add_literal(vector.data());
  }
  std::vector<Node> nodes;
  std::vector<std::int64_t> numbers;
  std::vector<std::array<std::int64_t, 4>> steps;  // by loop, outermost first: of offset, length, physical, id
  const auto add_loop = [&](std::int64_t turns, std::array<std::int64_t, 4> step) {
    if (turns == 1) return;
    nodes.push_back({true, 0, static_cast<std::uint32_t>(numbers.size())});
    numbers.push_back(turns);
    numbers.insert(numbers.end(), steps.size(), 0);
    steps.push_back(step);
  };
  add_loop(run.writers, {run.offset_step, 0, 0, run.id_step});
  add_loop(first.count, {first.stride, 0, first.length, 0});
  nodes.push_back({false, 0, static_cast<std::uint32_t>(numbers.size())});
  for (Node& node : nodes) node.end = static_cast<std::uint32_t>(nodes.size());
  const std::array<std::int64_t, 4> start{first.offset, first.length, 0, first.id};
  for (std::size_t column = 0; column < start.size(); ++column) {
    numbers.push_back(start[column]);
    for (const auto& step : steps) numbers.push_back(step[column]);
  }
  builder.add_nest(nodes, numbers, static_cast<std::uint64_t>(run.writers) * static_cast<std::uint64_t>(first.count));
}

bool holds_nothing_else(const ContainerDirectory::Listing& listing) {
  return listing.tail.empty() && listing.index == listing.data && listing.foreign_names.empty() &&
         listing.unreadable.empty() && listing.quarantined.empty();
}

}  // namespace

std::optional<IndexSnapshot> merge_regular_writers(const ContainerDirectory& directory,
                                                   const ContainerDirectory::Listing& listing) {
  if (directory.manifest().index != IndexKind::pattern || listing.index.size() < min_regular_writers ||
      !holds_nothing_else(listing))
    return {};
  DataInspection inspection(directory, listing.data);
  RecordReader records(directory, listing.index.size());
  for (const std::string& name : listing.closed_writers)
    if (!records.read(name)) return {};
  const std::vector<RegularWriter>& writers = records.writers;
  if (!records.sort() || !std::ranges::equal(writers, listing.index, {}, &RegularWriter::id)) return {};
  const std::vector<Run> runs = runs_of(writers);
  if (runs.size() * min_writers_per_run > writers.size()) return {};
  if (!are_in_order(writers) && !(runs.size() == 1 && are_apart(runs.front()))) return {};
  const auto data = inspection.result();
  const auto data_bytes = [](const RegularWriter& writer) { return writer.count * writer.length; };
  if (!data || !std::ranges::equal(writers, data->bytes, {}, data_bytes)) return {};
  IndexSnapshot merged{directory.manifest().id, 0, data->status, {}};
  for (const RegularWriter& writer : writers) merged.status.size = std::max(merged.status.size, writer.logical_end);
  PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
  for (const Run& run : runs) append(run, builder);
  merged.pattern = builder.finish();
  merged.pattern.kinds = {Column::logical, Column::length, Column::physical, Column::id};
  return checked(merged.pattern) ? std::optional(std::move(merged)) : std::nullopt;
}

}  // namespace iosig
