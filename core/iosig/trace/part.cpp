#include "iosig/trace/part.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_set>

#include "iosig/base/crc32c.h"
#include "iosig/base/text.h"
#include "iosig/trace/unpack.h"

namespace iosig::trace {
namespace {

/// Larger than any chunk that the recorder makes.
constexpr std::uint32_t max_chunk_bytes = 1u << 20;
/// Ids of one part that are unpacked at the same time differ by less.
constexpr std::uint64_t id_span = std::uint64_t{1} << 31;

Result<Fd> open_part(const Fd& directory, const std::string& name, const std::string& shown) {
  struct stat status {};
  if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return system_failure("open", shown);
  const auto refuse = [&] {
    return fail(ErrorKind::system, "'{}' is not a regular file; expected a part of a trace", printable(shown));
  };
  if (!S_ISREG(status.st_mode)) return refuse();
  Fd file(::openat(directory.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return system_failure("open", shown);
  if (::fstat(file.get(), &status) != 0) return system_failure("inspect", shown);
  if (!S_ISREG(status.st_mode)) return refuse();
  return file;
}

/// Reads up to `count` bytes; fewer at the end of the file.
Result<std::vector<std::byte>> bytes_at(const Fd& file, std::uint64_t offset, std::size_t count,
                                        const std::string& shown) {
  std::vector<std::byte> bytes(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::pread(file.get(), bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", shown);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, before);
}

/// A chunk at the start of `bytes`, which may be followed by others.
struct ChunkView {
  ChunkHeader header{};
  std::span<const std::byte> payload;
  std::size_t whole_bytes = 0;  ///< with header and padding
};
enum class ChunkState { sound, cut, none, damaged };

ChunkState chunk_at(std::span<const std::byte> bytes, ChunkView& chunk) {
  if (bytes.size() < sizeof(ChunkHeader)) return ChunkState::cut;
  std::memcpy(&chunk.header, bytes.data(), sizeof chunk.header);
  if (chunk.header.magic != chunk_magic) return ChunkState::none;
  if (chunk.header.bytes > max_chunk_bytes || chunk.header.zero != 0) return ChunkState::damaged;
  chunk.whole_bytes = sizeof(ChunkHeader) + (std::size_t{chunk.header.bytes} + 7) / 8 * 8;
  if (bytes.size() < chunk.whole_bytes) return ChunkState::cut;
  chunk.payload = bytes.subspan(sizeof(ChunkHeader), chunk.header.bytes);
  const std::uint32_t checksum = checksum_of(chunk.payload, checksum_of(bytes.first(offsetof(ChunkHeader, checksum))));
  return checksum == chunk.header.checksum ? ChunkState::sound : ChunkState::damaged;
}

class PartReader {
 public:
  PartReader(const Fd& file, Part& part, const std::string& shown) : file_(file), part_(part), shown_(shown) {}

  /// false: the recorder has only just made the file.
  Result<bool> read() {
    const auto front = bytes_at(file_, 0, chunks_offset, shown_);
    if (!front) return pass_on(front.error());
    const auto is_part = read_header(*front);
    if (!is_part) return pass_on(is_part.error());
    if (!*is_part) return false;
    if (auto done = read_chunks(); !done) return pass_on(done.error());
    if (front->size() > pending_offset)
      read_pending(std::span(*front).subspan(pending_offset, std::min(front->size(), page_bytes) - pending_offset));
    if (auto done = read_slots(*front); !done) return pass_on(done.error());
    return true;
  }

 private:
  Result<bool> read_header(std::span<const std::byte> front) {
    PartHeader& header = part_.header;
    if (front.size() < sizeof header ||
        std::ranges::all_of(front.first(sizeof header), [](std::byte byte) { return byte == std::byte{0}; })) {
      if (std::ranges::all_of(front, [](std::byte byte) { return byte == std::byte{0}; })) return false;
    }
    const std::size_t known = std::min(front.size(), sizeof header);
    std::memcpy(&header, front.data(), known);
    if (known < sizeof part_magic || std::memcmp(header.magic, part_magic, sizeof part_magic) != 0)
      return fail(ErrorKind::bad_input, "{}: no part of a trace: expected the bytes {} at its start", printable(shown_),
                  std::string_view(part_magic, sizeof part_magic));
    if (known < sizeof header)
      return fail(ErrorKind::bad_input, "{}: cut after {} bytes, within the header; expected {}", printable(shown_),
                  known, sizeof header);
    if (header.version == 0 || header.version > part_version)
      return fail(ErrorKind::bad_input, "{}: version {} of the trace format; this iosig reads versions up to {}",
                  printable(shown_), header.version, part_version);
    if (checksum_of(front.first(offsetof(PartHeader, checksum))) != header.checksum || header.clock > ClockKind::tsc)
      return fail(ErrorKind::bad_input, "{}: the header is damaged (bytes 0 to {})", printable(shown_),
                  offsetof(PartHeader, checksum) + sizeof header.checksum);
    part_.host.assign(header.host, ::strnlen(header.host, sizeof header.host));
    part_.last_clock =
        header.latest.ticks > header.first.ticks && header.latest.monotonic_ns > header.first.monotonic_ns
            ? header.latest
            : header.first;
    return true;
  }

  Result<void> read_chunks() {
    // The file may grow meanwhile: what is appended later is not read.
    const off_t size = ::lseek(file_.get(), 0, SEEK_END);
    if (size < 0) return system_failure("read", shown_);
    const auto end = static_cast<std::uint64_t>(size);
    std::vector<std::byte> piece;
    std::uint64_t piece_start = chunks_offset;
    std::size_t used = 0;
    std::uint64_t at = chunks_offset;
    while (at < end) {
      ChunkView chunk;
      ChunkState state = chunk_at(std::span(piece).subspan(used), chunk);
      if (state == ChunkState::cut && piece_start + piece.size() < end) {  // the next piece
        auto next = bytes_at(file_, at, std::min<std::uint64_t>(end - at, 2 * max_chunk_bytes), shown_);
        if (!next) return pass_on(next.error());
        piece = std::move(*next);
        piece_start = at;
        used = 0;
        state = chunk_at(piece, chunk);
      }
      if (state != ChunkState::sound || !take(chunk, at)) {
        const bool is_cut = state == ChunkState::cut;
        part_.fault = {at, is_cut ? "a chunk that is not complete" : "damaged", is_cut};
        break;
      }
      at += chunk.whole_bytes;
      used += chunk.whole_bytes;
    }
    if (at >= end && part_.header.chunks_end > at)
      part_.fault = {std::min(at, end), fmt::format("{} bytes of blocks are missing", part_.header.chunks_end - at),
                     false};
    return {};
  }

  void read_pending(std::span<const std::byte> bytes) {
    ChunkView chunk;
    while (chunk_at(bytes, chunk) == ChunkState::sound) {
      if (chunk.header.kind != static_cast<std::uint16_t>(ChunkKind::block)) (void)take(chunk, 0);
      bytes = bytes.subspan(chunk.whole_bytes);
    }
  }

  /// false: the chunk's checksum is right, but its content is impossible.
  bool take(const ChunkView& chunk, std::uint64_t at) {
    const std::string_view text(reinterpret_cast<const char*>(chunk.payload.data()), chunk.payload.size());
    switch (static_cast<ChunkKind>(chunk.header.kind)) {
      case ChunkKind::process:
        if (!fact_chunks_.insert(std::string(text)).second) return true;  // written twice
        for (const std::string_view fact : split(text, '\0')) {
          const std::size_t equals = fact.find('=');
          if (equals != std::string_view::npos)
            part_.facts.emplace_back(fact.substr(0, equals), fact.substr(equals + 1));
        }
        return true;
      case ChunkKind::name: {
        NameChunk name{};
        if (chunk.payload.size() < sizeof name) return false;
        std::memcpy(&name, chunk.payload.data(), sizeof name);
        part_.names.emplace_back(name.path, text.substr(sizeof name));
        return true;
      }
      case ChunkKind::block: {
        const auto header = block_header(chunk.payload);
        if (!header) return false;
        part_.blocks.push_back({at + sizeof(ChunkHeader), chunk.header.bytes, header->calls, header->least_start,
                                header->greatest_end, header->last_id, header->call_set, header->tid, 0, 0});
        if (header->clock.ticks > part_.last_clock.ticks && header->clock.monotonic_ns > part_.last_clock.monotonic_ns)
          part_.last_clock = header->clock;
        greatest_id_ = std::max(greatest_id_, header->last_id);
        return true;
      }
      case ChunkKind::sums: {
        if (part_.blocks.empty() || part_.blocks.back().sums_bytes != 0) return false;
        BlockPlace& block = part_.blocks.back();
        block.sums_at = part_.sums.size();
        block.sums_bytes = chunk.header.bytes;
        part_.sums.insert(part_.sums.end(), chunk.payload.begin(), chunk.payload.end());
        return true;
      }
      default: return false;
    }
  }

  /// Whether the recorder can have made the slot.
  [[nodiscard]] bool is_possible(const Slot& slot) const {
    const bool is_whole =
        slot.id != 0 && !name_of(slot.call).empty() && (slot.end == 0 || slot.end >= slot.start) && slot.fd >= -1;
    // What is in flight has no check, nor has what an older trace has.
    const bool has_check = slot.end != 0 && slot.flags > slot_flag_mask;
    return is_whole && (has_check ? slot.flags == checked_flags(slot, slot.end, slot.flags)
                                  : slot.start >= part_.header.first.ticks || is_recorded_later(slot.call));
  }
  /// Calls whose begin may be before their part was made.
  static bool is_recorded_later(Call call) {
    return (call >= Call::aio_read && call <= Call::aio_fsync) ||
           (call >= Call::io_uring_read && call <= Call::io_uring_fallocate);
  }

  /// Reads the slot at byte `at`; nothing: it is empty, or damaged.
  std::optional<Slot> slot_at(std::size_t at, std::span<const std::byte> front) {
    Slot slot;
    std::memcpy(&slot, front.data() + at, sizeof slot);
    // The recorder may have changed it while it was read.
    for (int again = 0; again < 2 && slot.start != 0 && !is_possible(slot); ++again) {
      const auto bytes = bytes_at(file_, at, sizeof slot, shown_);
      if (!bytes || bytes->size() != sizeof slot) break;
      std::memcpy(&slot, bytes->data(), sizeof slot);
    }
    if (slot.start == 0) return {};
    if (!is_possible(slot)) {
      set_fault(at, "a slot with impossible values");
      return {};
    }
    slot.flags &= slot_flag_mask;
    return slot;
  }

  void set_fault(std::uint64_t at, std::string what) {
    if (!part_.fault || part_.fault->is_cut) part_.fault = {at, std::move(what), false};
  }

  Result<void> read_slots(std::span<const std::byte> front) {
    const std::uint32_t capacity = part_.header.slot_capacity;
    if (capacity == 0) return {};  // the recorder has only just made the file
    if (capacity != first_slots && capacity != max_slots) {
      set_fault(offsetof(PartHeader, slot_capacity), "an impossible number of slots");
      return {};
    }
    const std::uint64_t base = greatest_id_ > id_span ? greatest_id_ - id_span : 0;
    for (std::uint32_t n = 0; n < capacity; ++n) {
      const std::size_t at = slots_offset + n * sizeof(Slot);
      if (at + sizeof(Slot) > front.size()) break;
      const auto slot = slot_at(at, front);
      if (!slot) continue;
      const std::uint64_t id = full_id(slot->id, base);
      const std::uint32_t below = slot->id - slot->parent;
      part_.loose.push_back({id, slot->parent == 0 ? 0 : id - below, *slot});
    }
    // A call that was moved to another slot may be in both; the one that has ended counts.
    std::ranges::stable_sort(part_.loose, [](const PartCall& a, const PartCall& b) {
      return a.id != b.id ? a.id < b.id : (a.slot.end != 0) > (b.slot.end != 0);
    });
    const auto is_same_call = [](const PartCall& a, const PartCall& b) { return a.id == b.id; };
    part_.loose.erase(std::unique(part_.loose.begin(), part_.loose.end(), is_same_call), part_.loose.end());
    return drop_packed();
  }

  /// Drops loose calls that are in blocks: the recorder appends a block before it empties the slots, and may have
  /// appended more since the slots were read.
  Result<void> drop_packed() {
    if (part_.loose.empty()) return {};
    std::unordered_set<std::uint64_t> packed;
    for (std::size_t n = part_.blocks.size(); n-- > 0 && part_.blocks[n].last_id >= part_.loose.front().id;) {
      const BlockPlace& block = part_.blocks[n];
      const auto payload = bytes_at(file_, block.offset, block.bytes, shown_);
      if (!payload) return pass_on(payload.error());
      const auto slots = unpack(*payload);
      if (!slots) {
        set_fault(block.offset, "damaged");
        part_.blocks.resize(n);
        continue;
      }
      const std::uint64_t first_id = block_header(*payload)->first_id;
      for (const Slot& slot : *slots) packed.insert(full_id(slot.id, first_id));
    }
    std::erase_if(part_.loose, [&](const PartCall& call) { return packed.contains(call.id); });
    return {};
  }

  const Fd& file_;
  Part& part_;
  const std::string& shown_;
  std::uint64_t greatest_id_ = 0;
  std::unordered_set<std::string> fact_chunks_;  ///< payloads
};

}  // namespace

Result<std::optional<Part>> read_part(const Fd& directory, const std::string& name, const std::string& shown) {
  const auto file = open_part(directory, name, shown);
  if (!file) return pass_on(file.error());
  Part part;
  part.name = name;
  const auto is_part = PartReader(*file, part, shown).read();
  if (!is_part) return pass_on(is_part.error());
  if (!*is_part) return std::nullopt;
  return part;
}

Result<std::vector<PartCall>> read_block(const Fd& directory, const Part& part, const BlockPlace& place,
                                         const std::string& shown) {
  const auto file = open_part(directory, part.name, shown);
  if (!file) return pass_on(file.error());
  const auto payload = bytes_at(*file, place.offset, place.bytes, shown);
  if (!payload) return pass_on(payload.error());
  const auto slots = unpack(*payload);
  if (!slots) return fail(ErrorKind::bad_input, "{}: damaged at byte {}", printable(shown), place.offset);
  const BlockHeader header = *block_header(*payload);
  std::vector<PartCall> calls;
  calls.reserve(slots->size());
  for (const Slot& slot : *slots) {
    // A parent has a lower id than its child, and may lie before the block.
    const std::uint64_t id = full_id(slot.id, header.first_id);
    const std::uint64_t parent = slot.parent == 0 ? 0 : id - static_cast<std::uint32_t>(slot.id - slot.parent);
    calls.push_back({id, parent, slot});
  }
  return calls;
}

}  // namespace iosig::trace
