#include "iosig/trace/pack.h"

#include <algorithm>
#include <cstring>

#include "iosig/base/crc32c.h"
#include "iosig/trace/block_sums.h"
#include "iosig/trace/column.h"
#include "iosig/trace/rounder.h"

namespace iosig::trace {
namespace {

/// Slots with equal keys are of one kind: the same file, descriptor, path, call and flags.
struct Key {
  std::uint64_t first, second;
  bool operator==(const Key&) const = default;
};
static_assert(offsetof(Slot, file) == 48 && offsetof(Slot, path) == 56);

Key key_of(const Slot& slot) {
  Key key;
  std::memcpy(&key.first, reinterpret_cast<const std::byte*>(&slot) + offsetof(Slot, file), sizeof key.first);
  std::memcpy(&key.second, reinterpret_cast<const std::byte*>(&slot) + offsetof(Slot, path), sizeof key.second);
  key.second &= ~(std::uint64_t{static_cast<std::uint16_t>(~slot_flag_mask)} << 48);  // without the check
  return key;
}

class Packer {
 public:
  Packer(std::span<const Slot> slots, PackMemory& memory, std::byte* out)
      : slots_(slots.data()), count_(static_cast<std::uint32_t>(slots.size())), memory_(memory), out_{out} {}

  void write(const BlockHeader& header, const Rounder& times) {
    write_kinds();
    std::uint64_t *const values = memory_.column[0], *const others = memory_.column[1];
    const bool is_flat = write_if_flat(header);
    if (!is_flat) {
      predict_ids(slots_, count_, static_cast<std::uint32_t>(header.first_id), memory_.predict,
                  [&](std::uint32_t n, std::uint32_t prediction) {
                    values[n] = difference(slots_[n].id, prediction);
                    return slots_[n].id;
                  });
      write_column(values);
      write_best([&](unsigned mode, std::uint64_t* to) { fill_parents(mode, to); });
    }
    predict_times(slots_, count_, header.least_start, memory_.predict, [&](std::uint32_t n, const TimeBase& base) {
      const Times actual{times.start(slots_[n]), times.end(slots_[n])};
      values[n] = base.is_start_below ? base.start - actual.start : actual.start - base.start;
      others[n] = base.end_is == TimeBase::below
                      ? base.end - actual.end
                      : actual.end - (base.end_is == TimeBase::above ? base.end : actual.start);
      return actual;
    });
    write_column(values);
    write_column(others);
    write_best([&](unsigned mode, std::uint64_t* to) { fill_lengths(mode, to); });
    predict_results(slots_, count_, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      values[n] = static_cast<std::uint64_t>(slots_[n].result) - prediction;
      return static_cast<std::uint64_t>(slots_[n].result);
    });
    write_column(values);
    write_offsets();
  }
  [[nodiscard]] std::byte* end() const { return out_.at; }

 private:
  /// Writes ids and parents, if the ids are consecutive and no call has a parent: the predictions are right then.
  bool write_if_flat(const BlockHeader& header) {
    if (!trace::is_flat(slots_, count_, static_cast<std::uint32_t>(header.first_id))) return false;
    out_.byte(static_cast<unsigned>(ColumnKind::zeros));
    out_.byte(static_cast<unsigned>(ColumnKind::zeros));
    return true;
  }

  /// The difference of two 32-bit numbers, modulo 2^32, so that it takes no more bits than they.
  static std::uint64_t difference(std::uint32_t one, std::uint32_t other) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(one - other)));
  }

  void write_column(const std::uint64_t* values, unsigned mode = 0) { write_column({values, count_}, mode); }
  void write_column(std::span<const std::uint64_t> values, unsigned mode = 0) {
    trace::write_column(values, plan_column(values), mode, memory_.column[3], out_);
  }
  void write_planned(const std::uint64_t* values, const ColumnPlan& plan, unsigned mode) {
    trace::write_column({values, count_}, plan, mode, memory_.column[3], out_);
  }

  /// Gives each call its kind; writes the kinds' fields and the calls' kinds. 0: the kind that followed last time (of
  /// the first call: a new one); 1: a new one; 2 + n: kind n.
  void write_kinds() {
    PredictMemory& predict = memory_.predict;
    std::uint64_t* const codes = memory_.column[0];
    predict.begin_block();
    std::memset(memory_.by_key, 0xff, sizeof memory_.by_key);
    std::uint16_t before = no_kind;
    Key expected{};
    for (std::uint32_t n = 0; n < count_; ++n) {
      const Key key = key_of(slots_[n]);
      if (before != no_kind) {
        const std::uint16_t next = predict.next[before];
        if (next != before) expected = key_of(slots_[predict.first[next]]);
        if (key == expected) {
          codes[n] = 0;
          predict.kind_of[n] = before = next;
          continue;
        }
      }
      const std::uint16_t kind = find_or_add(key, static_cast<std::uint16_t>(n), codes[n]);
      if (n == 0) codes[n] = 0;
      if (before != no_kind) predict.next[before] = kind;
      predict.kind_of[n] = before = kind;
      expected = key;
    }
    const std::uint16_t kinds = predict.kinds;
    out_.number(kinds);
    write_field(kinds, [](const Slot& slot) { return static_cast<std::uint16_t>(slot.call); });
    write_field(kinds, [](const Slot& slot) { return static_cast<std::uint16_t>(slot.flags & slot_flag_mask); });
    write_field(kinds, [](const Slot& slot) { return static_cast<std::uint32_t>(slot.fd); });
    write_field(kinds, [](const Slot& slot) { return slot.file; });
    write_field(kinds, [](const Slot& slot) { return slot.path; });
    write_column(codes);
  }

  std::uint16_t find_or_add(const Key& key, std::uint16_t at, std::uint64_t& code) {
    std::uint64_t mixed = (key.first ^ key.second * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    for (std::uint64_t place = mixed >> 54;; place = (place + 1) % 1024) {
      const std::uint16_t kind = memory_.by_key[place];
      if (kind == no_kind) {
        memory_.by_key[place] = memory_.predict.kinds;
        memory_.predict.add_kind(slots_, at);
        code = 1;
        return memory_.by_key[place];
      }
      if (key_of(slots_[memory_.predict.first[kind]]) == key) {
        code = std::uint64_t{2} + kind;
        return kind;
      }
    }
  }

  /// A field of the kinds, as differences from the kind before.
  template <class Get>
  void write_field(std::uint16_t kinds, Get get) {
    using Field = decltype(get(slots_[0]));
    std::uint64_t* const values = memory_.column[1];
    Field before = 0;
    for (std::uint16_t kind = 0; kind < kinds; ++kind) {
      const Field field = get(slots_[memory_.predict.first[kind]]);
      values[kind] = static_cast<std::uint64_t>(
          static_cast<std::int64_t>(static_cast<std::make_signed_t<Field>>(static_cast<Field>(field - before))));
      before = field;
    }
    write_column({values, kinds});
  }

  /// Writes the cheaper one of two modes; the second is tried only where the first fails often.
  template <class Fill>
  void write_best(Fill fill) {
    fill(0, memory_.column[0]);
    const ColumnPlan first = plan_of(memory_.column[0]);
    if (first.is_good()) return write_planned(memory_.column[0], first, 0);
    fill(1, memory_.column[1]);
    const ColumnPlan second = plan_of(memory_.column[1]);
    if (second.cost_bits < first.cost_bits) return write_planned(memory_.column[1], second, 1);
    write_planned(memory_.column[0], first, 0);
  }

  [[nodiscard]] ColumnPlan plan_of(const std::uint64_t* values) const { return plan_column({values, count_}); }

  void fill_parents(unsigned mode, std::uint64_t* to) {
    predict_parents(slots_, count_, mode, memory_.predict, [&](std::uint32_t n, std::uint32_t prediction) {
      to[n] = difference(slots_[n].parent, prediction);
      return slots_[n].parent;
    });
  }

  void fill_lengths(unsigned mode, std::uint64_t* to) {
    predict_lengths(count_, mode, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      to[n] = static_cast<std::uint64_t>(slots_[n].length) - prediction;
      return static_cast<std::uint64_t>(slots_[n].length);
    });
  }

  template <OffsetMode mode>
  std::uint64_t* fill_offsets() {
    std::uint64_t* const to = memory_.column[static_cast<unsigned>(mode)];
    predict_offsets<mode>(slots_, count_, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      to[n] = static_cast<std::uint64_t>(slots_[n].offset) - prediction;
      return static_cast<std::uint64_t>(slots_[n].offset);
    });
    return to;
  }

  void write_offsets() {
    const auto write_as = [&](OffsetMode mode, const ColumnPlan& plan) {
      write_planned(memory_.column[static_cast<unsigned>(mode)], plan, static_cast<unsigned>(mode));
    };
    const ColumnPlan steps = plan_of(fill_offsets<OffsetMode::steps>());
    if (steps.is_good()) return write_as(OffsetMode::steps, steps);
    const ColumnPlan position = plan_of(fill_offsets<OffsetMode::position>());
    if (position.is_good()) return write_as(OffsetMode::position, position);
    const ColumnPlan none = plan_of(fill_offsets<OffsetMode::none>());
    if (none.cost_bits <= steps.cost_bits && none.cost_bits <= position.cost_bits)
      return write_as(OffsetMode::none, none);
    if (steps.cost_bits <= position.cost_bits) return write_as(OffsetMode::steps, steps);
    write_as(OffsetMode::position, position);
  }

  const Slot* slots_;
  std::uint32_t count_;
  PackMemory& memory_;
  ByteWriter out_;
};

BlockHeader header_of(std::span<const Slot> slots, std::int32_t tid, std::uint64_t first_id_base, ClockPair now,
                      const Rounder& times) {
  BlockHeader header{};
  header.calls = static_cast<std::uint32_t>(slots.size());
  header.tid = tid;
  header.first_id = header.least_start = UINT64_MAX;
  header.clock = now;
  for (const Slot& slot : slots) {
    const std::uint64_t id =
        first_id_base + static_cast<std::uint32_t>(slot.id - static_cast<std::uint32_t>(first_id_base));
    header.first_id = std::min(header.first_id, id);
    header.last_id = std::max(header.last_id, id);
    header.least_start = std::min(header.least_start, times.start(slot));
    header.greatest_end = std::max(header.greatest_end, times.end(slot));
    header.call_set |= std::uint64_t{1} << (static_cast<unsigned>(slot.call) % 64);
    header.file_set |= std::uint64_t{1} << (slot.file % 64);
  }
  return header;
}

/// Writes header and padding of the chunk at `chunk`, whose payload ends at `end`. Returns the chunk's bytes.
std::size_t close_chunk(ChunkKind kind, std::byte* end, std::byte* chunk) {
  std::byte* const payload = chunk + sizeof(ChunkHeader);
  const auto bytes = static_cast<std::size_t>(end - payload);
  ChunkHeader header{.magic = chunk_magic,
                     .kind = static_cast<std::uint16_t>(kind),
                     .zero = 0,
                     .bytes = static_cast<std::uint32_t>(bytes),
                     .checksum = 0};
  const auto checksum = [](const void* from, std::size_t size, std::uint32_t before) {
    return crc32c({static_cast<const std::uint8_t*>(from), size}, before);
  };
  header.checksum = checksum(payload, bytes, checksum(&header, offsetof(ChunkHeader, checksum), 0));
  std::memcpy(chunk, &header, sizeof header);
  const std::size_t padded = (bytes + 7) / 8 * 8;
  std::memset(end, 0, padded - bytes);
  return sizeof header + padded;
}

}  // namespace

void prepare_to_pack() { (void)crc32c({}); }

std::size_t pack(std::span<const Slot> slots, std::int32_t tid, std::uint64_t first_id_base, ClockPair now,
                 const PackOptions& options, PackMemory& memory, std::span<std::byte> out) noexcept {
  const Rounder times(options.quantum_ticks);
  const BlockHeader header = header_of(slots, tid, first_id_base, now, times);
  std::byte* const payload = out.data() + sizeof(ChunkHeader);
  std::memcpy(payload, &header, sizeof header);
  Packer packer(slots, memory, payload + sizeof header);
  packer.write(header, times);

  const std::size_t block_bytes = close_chunk(ChunkKind::block, packer.end(), out.data());
  if (!options.has_sums || slots.size() < min_summed_calls || !sum_calls(slots, times, memory.sums)) return block_bytes;
  std::byte* const second = out.data() + block_bytes;
  ByteWriter sums{second + sizeof(ChunkHeader)};
  write_sums(memory.sums, sums);
  return block_bytes + close_chunk(ChunkKind::sums, sums.at, second);
}

}  // namespace iosig::trace
