#include "iosig/trace/pack.h"

#include <algorithm>
#include <cstring>

#include "iosig/base/crc32c.h"
#include "iosig/trace/block_sums.h"
#include "iosig/trace/column.h"
#include "iosig/trace/rounder.h"

namespace iosig::trace {
namespace {

class Packer {
 public:
  Packer(std::span<const Slot> slots, PackMemory& memory, std::byte* out)
      : slots_(slots.data()), count_(static_cast<std::uint32_t>(slots.size())), memory_(memory), out_{out} {}

  void write(const BlockHeader& header, bool is_of_one_kind) {
    write_kinds(is_of_one_kind);
    std::uint64_t *const values = memory_.column[0], *const others = memory_.column[1];
    const BlockFields& fields = memory_.fields;
    if (fields.is_flat(static_cast<std::uint32_t>(header.first_id))) {  // the predictions of ids and parents are right
      out_.byte(static_cast<unsigned>(ColumnKind::zeros));
      out_.byte(static_cast<unsigned>(ColumnKind::zeros));
    } else {
      predict_ids(count_, static_cast<std::uint32_t>(header.first_id), memory_.predict,
                  [&](std::uint32_t n, std::uint32_t prediction) {
                    values[n] = difference(fields.id[n], prediction);
                    return fields.id[n];
                  });
      write_column(values);
      write_best([&](unsigned mode, std::uint64_t* to) { fill_parents(mode, to); });
    }
    predict_times(fields, header.least_start, memory_.predict, [&](std::uint32_t n, const TimeBase& base) {
      const std::uint64_t start = fields.start[n], end = fields.end[n];
      values[n] = base.is_start_below ? base.start - start : start - base.start;
      others[n] =
          base.end_is == TimeBase::below ? base.end - end : end - (base.end_is == TimeBase::above ? base.end : start);
      return end;
    });
    write_column(values);
    write_column(others);
    write_best([&](unsigned mode, std::uint64_t* to) { fill_lengths(mode, to); });
    predict_results(fields, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      values[n] = fields.result[n] - prediction;
      return fields.result[n];
    });
    write_column(values);
    write_offsets();
  }
  [[nodiscard]] std::byte* end() const { return out_.at; }

 private:
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
  void write_kinds(bool is_of_one_kind) {
    PredictMemory& predict = memory_.predict;
    std::uint64_t* const codes = memory_.column[0];
    predict.begin_block();
    std::memset(memory_.by_key, 0xff, sizeof memory_.by_key);
    if (is_of_one_kind) {
      predict.add_kind(slots_, 0);
      std::fill_n(predict.kind_of, count_, std::uint16_t{0});
      std::fill_n(codes, count_, std::uint64_t{0});
    } else {
      find_kinds(codes);
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

  void find_kinds(std::uint64_t* codes) {
    PredictMemory& predict = memory_.predict;
    std::uint16_t before = no_kind;
    SlotKind expected{};
    for (std::uint32_t n = 0; n < count_; ++n) {
      const SlotKind key = SlotKind::of(slots_[n]);
      if (before != no_kind) {
        const std::uint16_t next = predict.next[before];
        if (next != before) expected = SlotKind::of(slots_[predict.first[next]]);
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
  }

  std::uint16_t find_or_add(const SlotKind& key, std::uint16_t at, std::uint64_t& code) {
    std::uint64_t mixed = (key.first ^ key.second * 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
    for (std::uint64_t place = mixed >> 54;; place = (place + 1) % 1024) {
      const std::uint16_t kind = memory_.by_key[place];
      if (kind == no_kind) {
        memory_.by_key[place] = memory_.predict.kinds;
        memory_.predict.add_kind(slots_, at);
        code = 1;
        return memory_.by_key[place];
      }
      if (SlotKind::of(slots_[memory_.predict.first[kind]]) == key) {
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
    const BlockFields& fields = memory_.fields;
    predict_parents(fields, mode, memory_.predict, [&](std::uint32_t n, std::uint32_t prediction) {
      to[n] = difference(fields.parent[n], prediction);
      return fields.parent[n];
    });
  }

  void fill_lengths(unsigned mode, std::uint64_t* to) {
    const std::uint64_t* const lengths = memory_.fields.length;
    predict_lengths(count_, mode, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      to[n] = lengths[n] - prediction;
      return lengths[n];
    });
  }

  template <OffsetMode mode>
  std::uint64_t* fill_offsets() {
    std::uint64_t* const to = memory_.column[static_cast<unsigned>(mode)];
    const std::uint64_t* const offsets = memory_.fields.offset;
    predict_offsets<mode>(memory_.fields, memory_.predict, [&](std::uint32_t n, std::uint64_t prediction) {
      to[n] = offsets[n] - prediction;
      return offsets[n];
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

BlockHeader header_of(std::span<const Slot> slots, const BlockFields& fields, const BlockTraits& traits,
                      std::int32_t tid, std::uint64_t first_id_base, ClockPair now) {
  std::uint32_t first = UINT32_MAX, last = 0;  // above the base
  for (std::uint32_t n = 0; n < fields.count; ++n) {
    const std::uint32_t above = fields.id[n] - static_cast<std::uint32_t>(first_id_base);
    first = std::min(first, above);
    last = std::max(last, above);
  }
  BlockHeader header{.calls = fields.count,
                     .tid = tid,
                     .first_id = first_id_base + first,
                     .last_id = first_id_base + last,
                     .least_start = traits.least_start,
                     .greatest_end = traits.greatest_end,
                     .clock = now,
                     .call_set = 0,
                     .file_set = 0};
  for (const Slot& slot : traits.is_of_one_kind ? slots.first(1) : slots) {
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

std::size_t pack(std::span<const Slot> slots, std::int32_t tid, std::uint64_t first_id_base, ClockPair now,
                 const PackOptions& options, PackMemory& memory, std::span<std::byte> out) noexcept {
  const BlockTraits traits = take_apart(slots, Rounder(options.quantum_ticks), memory.fields);
  const BlockHeader header = header_of(slots, memory.fields, traits, tid, first_id_base, now);
  std::byte* const payload = out.data() + sizeof(ChunkHeader);
  std::memcpy(payload, &header, sizeof header);
  Packer packer(slots, memory, payload + sizeof header);
  packer.write(header, traits.is_of_one_kind);

  const std::size_t block_bytes = close_chunk(ChunkKind::block, packer.end(), out.data());
  if (!options.has_sums || slots.size() < min_summed_calls || !sum_calls(slots, memory.fields, traits, memory.sums))
    return block_bytes;
  std::byte* const second = out.data() + block_bytes;
  ByteWriter sums{second + sizeof(ChunkHeader)};
  write_sums(memory.sums, sums);
  return block_bytes + close_chunk(ChunkKind::sums, sums.at, second);
}

}  // namespace iosig::trace
