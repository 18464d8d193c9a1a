#include "iosig/trace/block_sums.h"

#include <algorithm>
#include <limits>

namespace iosig::trace {
namespace {

constexpr unsigned parents_flag = 1, order_flag = 2;

class Summing {
 public:
  explicit Summing(BlockSums& sums) : sums_(sums) {
    sums_.has_parents = false;
    sums_.is_ordered = true;
    sums_.kinds = sums_.streams = 0;
  }

  bool add(const Slot& slot, std::uint64_t start, std::uint64_t end) {
    if (end < start) return false;
    if (start < latest_start_) sums_.is_ordered = false;
    latest_start_ = start;
    if (slot.parent != 0) sums_.has_parents = true;
    CallSums* const kind = kind_of(slot);
    if (kind == nullptr) return false;
    ++kind->calls;
    const bool has_ended = (slot.flags & abandoned) == 0;
    std::uint64_t bytes = 0;
    if (has_ended) {
      const std::uint64_t ticks = end - start;
      kind->ticks += ticks;
      kind->least = std::min(kind->least, ticks);
      kind->greatest = std::max(kind->greatest, ticks);
      ++kind->bins[duration_bin(ticks)];
      if (slot.result < 0) ++kind->failed;
      if (slot.result > 0 && moves_ != Moves::nothing) bytes = static_cast<std::uint64_t>(slot.result);
      kind->bytes += bytes;
    } else {
      ++kind->unfinished;
    }
    if (moves_ == Moves::nothing || !sums_.is_ordered || (has_ended && slot.result < 0)) return true;
    return add_to_stream(slot, bytes);
  }

 private:
  /// Of the slot's call, file and path; nullptr: there are too many kinds, or the call is not known.
  CallSums* kind_of(const Slot& slot) {
    const auto is_of = [&](const CallSums& kind) {
      return kind.call == slot.call && kind.file == slot.file && kind.path == slot.path;
    };
    if (kind_ < sums_.kinds && is_of(sums_.of_calls[kind_])) return &sums_.of_calls[kind_];
    for (kind_ = 0; kind_ < sums_.kinds; ++kind_)
      if (is_of(sums_.of_calls[kind_])) break;
    if (kind_ < sums_.kinds) {
      moves_ = moves_of(slot.call);
      layer_ = layer_of(slot.call);
      return &sums_.of_calls[kind_];
    }
    if (sums_.kinds == BlockSums::max_kinds || name_of(slot.call).empty()) return nullptr;
    moves_ = moves_of(slot.call);
    layer_ = layer_of(slot.call);
    CallSums& kind = sums_.of_calls[sums_.kinds++];
    kind = {};
    kind.call = slot.call;
    kind.file = slot.file;
    kind.path = slot.path;
    kind.least = UINT64_MAX;
    return &kind;
  }

  bool add_to_stream(const Slot& slot, std::uint64_t bytes) {
    if (slot.path != 0) return false;
    const auto is_of = [&](const StreamSums& stream) {
      return stream.file == slot.file && stream.moves == moves_ && stream.layer == layer_;
    };
    if (stream_ >= sums_.streams || !is_of(sums_.of_streams[stream_])) {
      for (stream_ = 0; stream_ < sums_.streams; ++stream_)
        if (is_of(sums_.of_streams[stream_])) break;
      if (stream_ == BlockSums::max_kinds) return false;
      if (stream_ == sums_.streams) {
        sums_.of_streams[sums_.streams++] = {};
        sums_.of_streams[stream_].layer = layer_;
        sums_.of_streams[stream_].moves = moves_;
        sums_.of_streams[stream_].file = slot.file;
      }
    }
    StreamSums& stream = sums_.of_streams[stream_];
    if (slot.offset < 0) {
      ++stream.unknown;
      return true;
    }
    const auto offset = static_cast<std::uint64_t>(slot.offset);
    if (!stream.has_offsets) {
      stream.has_offsets = true;
      stream.first_offset = offset;
    } else if (offset == stream.last_end) {
      ++stream.consecutive;
    } else {
      ++(offset > stream.last_end ? stream.forward : stream.backward);
    }
    stream.last_end = offset + bytes;
    return true;
  }

  BlockSums& sums_;
  std::uint64_t latest_start_ = 0;
  std::uint32_t kind_ = 0, stream_ = 0;  ///< of the call before
  Moves moves_ = Moves::nothing;
  Layer layer_ = Layer::posix;
};

void write_kind(const CallSums& kind, ByteWriter& out) {
  out.number(static_cast<std::uint16_t>(kind.call));
  for (const std::uint64_t field : {std::uint64_t{kind.file}, std::uint64_t{kind.path}, std::uint64_t{kind.calls},
                                    std::uint64_t{kind.unfinished}, std::uint64_t{kind.failed}, kind.bytes})
    out.number(field);
  if (kind.finished() == 0) return;
  out.number(kind.ticks);
  out.number(kind.least);
  out.number(kind.greatest - kind.least);
  unsigned before = duration_bin(kind.least);
  const unsigned last = duration_bin(kind.greatest);
  for (unsigned bin = before; bin <= last; ++bin) {
    if (kind.bins[bin] == 0) continue;
    out.number(bin - before);
    out.number(kind.bins[bin]);
    before = bin;
  }
}

class SumsReader {
 public:
  SumsReader(std::span<const std::byte> payload, BlockSums& sums) : in_{payload}, sums_(sums) {}

  bool read() {
    const std::uint64_t flags = in_.number(), kinds = in_.number();
    if (flags > (parents_flag | order_flag) || kinds == 0 || kinds > BlockSums::max_kinds) return false;
    sums_.has_parents = (flags & parents_flag) != 0;
    sums_.is_ordered = (flags & order_flag) != 0;
    sums_.kinds = static_cast<std::uint32_t>(kinds);
    for (CallSums& kind : std::span(sums_.of_calls).first(kinds))
      if (!read_kind(kind)) return false;
    const std::uint64_t streams = in_.number();
    if (streams > BlockSums::max_kinds) return false;
    sums_.streams = static_cast<std::uint32_t>(streams);
    for (StreamSums& stream : std::span(sums_.of_streams).first(streams))
      if (!read_stream(stream)) return false;
    return in_.sound && in_.bytes.empty();
  }

 private:
  template <class Number>
  Number number() {
    const std::uint64_t value = in_.number();
    if (value > std::numeric_limits<Number>::max()) in_.sound = false;
    return static_cast<Number>(value);
  }

  bool read_kind(CallSums& kind) {
    kind = {};
    kind.call = static_cast<Call>(number<std::uint16_t>());
    kind.file = number<std::uint32_t>();
    kind.path = number<std::uint32_t>();
    kind.calls = number<std::uint32_t>();
    kind.unfinished = number<std::uint32_t>();
    kind.failed = number<std::uint32_t>();
    kind.bytes = in_.number();
    if (!in_.sound || name_of(kind.call).empty() || kind.calls > max_slots || kind.unfinished > kind.calls)
      return false;
    if (kind.finished() == 0) return true;
    kind.ticks = in_.number();
    kind.least = in_.number();
    kind.greatest = kind.least + in_.number();
    std::uint64_t bin = duration_bin(kind.least), counted = 0;
    while (in_.sound && counted < kind.finished()) {
      bin += in_.number();
      const std::uint64_t count = in_.number();
      if (bin >= duration_bins || count == 0 || count > kind.finished() - counted) return false;
      kind.bins[bin] = static_cast<std::uint16_t>(count);
      counted += count;
    }
    return in_.sound && kind.greatest >= kind.least && bin == duration_bin(kind.greatest);
  }

  bool read_stream(StreamSums& stream) {
    const std::uint64_t which = in_.number();
    if (which >= 2 * std::size(layer_names)) return false;
    stream = {};
    stream.layer = static_cast<Layer>(which / 2);
    stream.moves = which % 2 == 0 ? Moves::reads : Moves::writes;
    stream.file = number<std::uint32_t>();
    stream.unknown = number<std::uint32_t>();
    const std::uint64_t has_offsets = in_.number();
    stream.has_offsets = has_offsets == 1;
    if (!stream.has_offsets) return has_offsets == 0;
    stream.consecutive = number<std::uint32_t>();
    stream.forward = number<std::uint32_t>();
    stream.backward = number<std::uint32_t>();
    stream.first_offset = in_.number();
    stream.last_end = in_.number();
    return in_.sound;
  }

  ByteReader in_;
  BlockSums& sums_;
};

}  // namespace

bool sum_calls(std::span<const Slot> slots, const Rounder& times, BlockSums& sums) noexcept {
  Summing summing(sums);
  if (!std::ranges::all_of(slots,
                           [&](const Slot& slot) { return summing.add(slot, times.start(slot), times.end(slot)); }))
    return false;
  if (!sums.is_ordered) sums.streams = 0;
  return true;
}

void write_sums(const BlockSums& sums, ByteWriter& out) noexcept {
  out.number((sums.has_parents ? parents_flag : 0) | (sums.is_ordered ? order_flag : 0));
  out.number(sums.kinds);
  for (const CallSums& kind : std::span(sums.of_calls).first(sums.kinds)) write_kind(kind, out);
  out.number(sums.streams);
  for (const StreamSums& stream : std::span(sums.of_streams).first(sums.streams)) {
    out.number(static_cast<unsigned>(stream.layer) * 2 + (stream.moves == Moves::writes ? 1 : 0));
    out.number(stream.file);
    out.number(stream.unknown);
    out.number(stream.has_offsets ? 1 : 0);
    if (!stream.has_offsets) continue;
    out.number(stream.consecutive);
    out.number(stream.forward);
    out.number(stream.backward);
    out.number(stream.first_offset);
    out.number(stream.last_end);
  }
}

bool read_sums(std::span<const std::byte> payload, BlockSums& sums) { return SumsReader(payload, sums).read(); }

}  // namespace iosig::trace
