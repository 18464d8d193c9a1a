#include "iosig/container/read/follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace iosig {
namespace {

constexpr std::size_t batch = 32;             ///< records that are read at once
constexpr std::int64_t max_writes = 1 << 14;  ///< that are added at once; reading the view again is faster for more

/// Reads records of a tail from number `from` on. Returns how many there are.
std::size_t read_records(const Fd& tail, std::size_t from, std::span<TailRecord> records) {
  const auto at = static_cast<off_t>((from + 1) * sizeof(TailRecord));  // behind the head
  const ssize_t got = ::pread(tail.get(), records.data(), records.size_bytes(), at);
  return got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(TailRecord);
}

}  // namespace

void Follower::start(const ContainerView& view, SlotStates slots) {
  if (const std::size_t closed = close_fds(); closed > 0) keeper_.closed(closed);
  writers_.clear();
  known_ = std::move(slots);
  for (const WriterContent& writer : view.content().writers) writers_[writer.id].end = writer.physical_end();
}

std::size_t Follower::close_fds() {
  std::size_t closed = 0;
  for (auto& [id, writer] : writers_)
    if (writer.tail) {
      writer.tail = Fd();
      ++closed;
    }
  return closed;
}

bool Follower::follow(ContainerView& view, const SequencerWatch& watch) {
  if (known_.slots.empty() || view.has_lost_writes()) return false;
  const auto has_followed = [&](std::size_t slot) {
    const std::int64_t id = known_.slots[slot].writer;
    return id >= 0 && follow(view, id, writers_[id]);
  };
  if (watch.update(known_, changed_) && std::ranges::all_of(changed_, has_followed)) return true;
  known_.slots.clear();  // it counts changes that the view does not show: nothing can be followed before start()
  return false;
}

/// The records of a tail lie one behind the other, in the file and in the data dropping, from the first one on. When a
/// writer has moved them to its index, it begins again with the first one. Records of before may follow the new ones;
/// their data do not follow. The first record is read twice: if it is the same, none of the others was replaced in
/// between.
bool Follower::follow(ContainerView& view, std::int64_t id, Writer& writer) {
  Fd temporary;
  const Fd* tail = &writer.tail;
  if (!writer.tail) {
    Fd opened = view.directory().open_dropping(Dropping::tail, id, O_RDONLY);
    if (!opened || !is_tail_of(opened, tail_identity(view.directory().manifest().id, id))) return false;
    Fd& place = keeper_.may_keep(1) ? writer.tail : temporary;
    place = std::move(opened);
    tail = &place;
  }
  TailRecord first;
  const auto is_unchanged = [&] {
    TailRecord again;
    return read_records(*tail, 0, {&again, 1}) == 1 && again.physical == first.physical && again.check == first.check;
  };
  if (read_records(*tail, 0, {&first, 1}) != 1 || !first.is_valid()) return false;
  if (first.physical != writer.first) {
    if (first.physical > writer.end) return false;
    writer.first = first.physical;
    writer.position = 0;
  }
  std::array<TailRecord, batch> records;
  for (std::int64_t end = -1;;) {  // of the record before
    const std::size_t begin = writer.position, count = read_records(*tail, begin, records);
    if (count == 0) return false;
    for (std::size_t n = 0; n < count; ++n) {
      // `count_again` counts the writes that have ended. The writer may change it, and `count`, between two reads.
      TailRecord& record = records[n];
      record.count = record.count_again;
      const bool is_valid = record.is_valid();
      if (end < 0 && !is_valid) return false;
      if (!is_valid || (end >= 0 && record.physical != end)) return is_unchanged();
      if (!add(view, id, writer, record)) return false;
      end = record.physical + static_cast<std::int64_t>(record.count) * record.length;
      writer.position = begin + n;  // more writes may be added to this record
    }
    // The last one is read again, as the first of the next batch.
    if (count < batch) return is_unchanged();
    end = -1;
  }
}

bool Follower::add(ContainerView& view, std::int64_t id, Writer& writer, const TailRecord& record) {
  if (record.physical > writer.end) return false;
  const auto count = static_cast<std::int64_t>(record.count);
  const std::int64_t known = std::min(count, (writer.end - record.physical) / record.length);
  if (count - known > max_writes && record.stride != record.length) return false;
  for (std::int64_t n = known; n < count;) {
    const std::int64_t writes = record.stride == record.length ? count - n : 1;
    const std::int64_t physical = record.physical + n * record.length;
    if (!view.add_write(record.logical + n * record.stride, writes * record.length, id, physical, record.sequence))
      return false;
    n += writes;
    writer.end = physical + writes * record.length;
  }
  return true;
}

}  // namespace iosig
