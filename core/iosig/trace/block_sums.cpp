#include "iosig/trace/block_sums.h"

#include <algorithm>
#include <limits>

namespace iosig::trace {
namespace {

constexpr unsigned parents_flag = 1, order_flag = 2;

class Summing {
 public:
  Summing(std::span<const Slot> slots, const BlockFields& fields, const BlockTraits& traits, BlockSums& sums)
      : slots_(slots), fields_(fields), sums_(sums) {
    sums_.has_parents =
        std::ranges::any_of(std::span(fields.parent, fields.count), [](auto each) { return each != 0; });
    sums_.is_ordered = traits.is_ordered;
    sums_.kinds = sums_.streams = 0;
  }

  /// Adds the calls from `first` to before `last`, which are of one kind (SlotKind).
  bool add(std::uint32_t first, std::uint32_t last) {
    Target* const target = target_of(slots_[first]);
    if (target == nullptr) return false;
    CallSums& calls = *target->calls;
    calls.calls += last - first;
    if (target->have_ended)
      add_ended(first, last, calls, target->moves);
    else
      calls.unfinished += last - first;
    return target->moves == Moves::nothing || !sums_.is_ordered || add_to_stream(first, last, *target);
  }

 private:
  /// The sums that calls of one kind are added to.
  struct Target {
    SlotKind kind{};
    CallSums* calls = nullptr;
    StreamSums* stream = nullptr;  ///< null until an access is added
    Moves moves = Moves::nothing;
    bool have_ended = false;
  };

  /// Of the slot's kind; null: there are too many kinds, or the call is not known. A block with few kinds has them in
  /// turns.
  Target* target_of(const Slot& slot) {
    const SlotKind kind = SlotKind::of(slot);
    for (Target& each : targets_)
      if (each.calls != nullptr && each.kind == kind) return &each;
    CallSums* const calls = sums_of(slot);
    if (calls == nullptr) return nullptr;
    Target& target = targets_[next_target_++ % std::size(targets_)];
    target = {.kind = kind, .calls = calls, .moves = moves_of(slot.call), .have_ended = (slot.flags & abandoned) == 0};
    return &target;
  }

  /// Of the slot's call, file and path.
  CallSums* sums_of(const Slot& slot) {
    const std::span known(sums_.of_calls.data(), sums_.kinds);
    const auto found = std::ranges::find_if(known, [&](const CallSums& kind) {
      return kind.call == slot.call && kind.file == slot.file && kind.path == slot.path;
    });
    if (found != known.end()) return &*found;
    if (sums_.kinds == BlockSums::max_kinds || name_of(slot.call).empty()) return nullptr;
    CallSums& kind = sums_.of_calls[sums_.kinds++];
    kind = {};
    kind.call = slot.call;
    kind.file = slot.file;
    kind.path = slot.path;
    kind.least = UINT64_MAX;
    return &kind;
  }

  void add_ended(std::uint32_t first, std::uint32_t last, CallSums& kind, Moves moves) {
    std::uint64_t ticks = 0, least = kind.least, greatest = kind.greatest;
    for (std::uint32_t n = first; n < last; ++n) {
      const std::uint64_t duration = fields_.end[n] - fields_.start[n];
      ticks += duration;
      least = std::min(least, duration);
      greatest = std::max(greatest, duration);
      ++kind.bins[duration_bin(duration)];
    }
    kind.ticks += ticks;
    kind.least = least;
    kind.greatest = greatest;
    std::uint64_t bytes = 0;
    std::uint32_t failed = 0;
    for (std::uint32_t n = first; n < last; ++n) {
      const auto result = static_cast<std::int64_t>(fields_.result[n]);
      failed += result < 0 ? 1 : 0;
      bytes += result < 0 ? 0 : fields_.result[n];
    }
    kind.failed += failed;
    if (moves != Moves::nothing) kind.bytes += bytes;
  }

  /// Of the slot's file, and of its call's layer and direction; nullptr: there are too many.
  StreamSums* stream_of(const Slot& slot) {
    const Moves moves = moves_of(slot.call);
    const Layer layer = layer_of(slot.call);
    const std::span known(sums_.of_streams.data(), sums_.streams);
    const auto found = std::ranges::find_if(known, [&](const StreamSums& stream) {
      return stream.file == slot.file && stream.moves == moves && stream.layer == layer;
    });
    if (found != known.end()) return &*found;
    if (sums_.streams == BlockSums::max_kinds) return nullptr;
    StreamSums& stream = sums_.of_streams[sums_.streams++];
    stream = {};
    stream.layer = layer;
    stream.moves = moves;
    stream.file = slot.file;
    return &stream;
  }

  bool add_to_stream(std::uint32_t first, std::uint32_t last, Target& target) {
    const auto has_failed = [&](std::uint32_t n) {
      return target.have_ended && static_cast<std::int64_t>(fields_.result[n]) < 0;
    };
    while (first < last && has_failed(first)) ++first;
    if (first == last) return true;
    if (target.stream == nullptr && slots_[first].path == 0) target.stream = stream_of(slots_[first]);
    StreamSums* const stream = target.stream;
    if (stream == nullptr) return false;
    std::uint32_t consecutive = 0, backward = 0, known = 0;
    std::uint64_t last_end = stream->last_end;
    for (std::uint32_t n = first; n < last; ++n) {
      if (has_failed(n)) continue;
      const std::uint64_t offset = fields_.offset[n];
      if (static_cast<std::int64_t>(offset) < 0) {
        ++stream->unknown;
        continue;
      }
      if (!stream->has_offsets) {
        stream->has_offsets = true;
        stream->first_offset = offset;
      } else {
        ++known;
        consecutive += offset == last_end ? 1 : 0;
        backward += offset < last_end ? 1 : 0;
      }
      last_end = offset + (target.have_ended ? fields_.result[n] : 0);
    }
    stream->consecutive += consecutive;
    stream->backward += backward;
    stream->forward += known - consecutive - backward;
    stream->last_end = last_end;
    return true;
  }

  std::span<const Slot> slots_;
  const BlockFields& fields_;
  BlockSums& sums_;
  Target targets_[BlockSums::max_kinds];  ///< the latest ones
  std::uint32_t next_target_ = 0;
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

bool sum_calls(std::span<const Slot> slots, const BlockFields& fields, const BlockTraits& traits,
               BlockSums& sums) noexcept {
  if (!traits.has_durations) return false;
  Summing summing(slots, fields, traits, sums);
  if (traits.is_of_one_kind) return summing.add(0, fields.count);
  for (std::uint32_t first = 0, last = 0; first < fields.count; first = last) {
    const SlotKind kind = SlotKind::of(slots[first]);
    for (last = first + 1; last < fields.count && SlotKind::of(slots[last]) == kind;) ++last;
    if (!summing.add(first, last)) return false;
  }
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
