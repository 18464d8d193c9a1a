// Reads one writer of a container: its index, tail and data dropping, and the record of its close, compared with each
// other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/dropping_reader.h"

namespace iosig {

/// What was found of one writer.
struct FoundWriter {
  std::optional<WriterContent> writer;
  std::vector<ContainerProblem> problems;
  std::vector<LostWrites> lost_writes;
  ContainerStatus status;         ///< without the size
  bool had_tail = false;          ///< there was a tail when it was read
  std::int64_t index_bytes = -1;  ///< size of the index when it was read; -1: none
  std::optional<Error> failure;   ///< transient: the writer was not read, and may be sound
  bool has_write_in_progress = false;

  void add(ContainerProblem::Kind kind, std::int64_t id, std::string message, std::int64_t bytes = 0) {
    problems.push_back({kind, id, std::move(message), bytes});
  }
  /// Records writes whose offsets are lost.
  void lose(LostWrites writes, std::int64_t bytes = 0);
  /// Records that a dropping of writer `id` is there and could not be read.
  void fail_to_read(std::int64_t id, Error error);
};

/// Const functions may run in any number of threads at the same time.
class WriterReader {
 public:
  WriterReader(const ContainerDirectory& directory, const ClosedWriters& closed, ContentSource source)
      : droppings_(directory), closed_(closed), source_(source) {}

  /// Must be called with the ids of all writers that the other functions are called for.
  void open_directories(const std::vector<std::int64_t>& ids) { droppings_.open_directories(ids); }

  /// Reads a writer that the listing of the container names, with a tail or without. A writer that is opened or closed
  /// meanwhile may seem to have lost writes; therefore droppings with lost writes are read again if they have changed.
  [[nodiscard]] FoundWriter read(std::int64_t id, bool has_tail) const;
  /// Reads a writer of which the listing names a tail only. A writer makes its tail last.
  [[nodiscard]] FoundWriter read_tail_alone(std::int64_t id) const;
  /// Reads a writer that had synced, and of which the listing names neither index nor data.
  [[nodiscard]] FoundWriter read_gone(const SyncedWriter& synced) const;

 private:
  [[nodiscard]] FoundWriter read_once(std::int64_t id, bool has_tail) const;
  [[nodiscard]] const ClosedWriter* trusted(std::int64_t id, bool has_tail) const;
  std::optional<std::string> read_tail(std::int64_t id, FoundWriter& found) const;
  std::optional<std::string> read_index_dropping(WriterContent& writer, FoundWriter& found) const;
  void take_time_of_marks(std::int64_t id, FoundWriter& found) const;
  [[nodiscard]] std::int64_t data_bytes(std::int64_t id, FoundWriter& found) const;
  bool take_index(WriterContent& writer, std::span<const std::uint8_t> index, FoundWriter& found) const;
  void note_foreign(const WriterContent& writer, const IndexHead& head, FoundWriter& found) const;
  void add_tail(WriterContent& writer, std::string_view tail, std::span<const std::uint8_t> index,
                FoundWriter& found) const;
  void compare_with_data(const WriterContent& writer, FoundWriter& found) const;
  void compare_with_sync_record(const WriterContent& writer, FoundWriter& found) const;
  std::optional<bool> is_active(std::int64_t id, FoundWriter& found) const;
  [[nodiscard]] std::string shown(Dropping kind, std::int64_t id) const {
    return droppings_.directory().shown(kind, id);
  }

  DroppingReader droppings_;
  const ClosedWriters& closed_;
  ContentSource source_;
};

}  // namespace iosig
