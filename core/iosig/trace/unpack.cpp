#include "iosig/trace/unpack.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "iosig/trace/column.h"
#include "iosig/trace/predict.h"

namespace iosig::trace {
namespace {

class Unpacker {
 public:
  Unpacker(std::span<const std::byte> columns, std::uint32_t count)
      : in_{columns}, count_(count), slots_(count), values_(count), others_(count) {
    memory_->fields.count = count;
  }

  bool read(const BlockHeader& header) {
    if (!read_kinds()) return false;
    PredictMemory& memory = memory_->predict;
    BlockFields& fields = memory_->fields;
    if (read(values_) != 0) return false;
    predict_ids(count_, static_cast<std::uint32_t>(header.first_id), memory,
                [&](std::uint32_t n, std::uint32_t prediction) {
                  return fields.id[n] = prediction + static_cast<std::uint32_t>(values_[n]);
                });
    const unsigned parent_mode = read(values_);
    if (parent_mode > 1) return false;
    predict_parents(fields, parent_mode, memory, [&](std::uint32_t n, std::uint32_t prediction) {
      return fields.parent[n] = prediction + static_cast<std::uint32_t>(values_[n]);
    });
    if (read(values_) != 0 || read(others_) != 0) return false;
    predict_times(fields, header.least_start, memory, [&](std::uint32_t n, const TimeBase& base) {
      fields.start[n] = base.start_of(values_[n]);
      return fields.end[n] = base.end_of(fields.start[n], others_[n]);
    });
    const unsigned length_mode = read(values_);
    if (length_mode > 1) return false;
    predict_lengths(count_, length_mode, memory, [&](std::uint32_t n, std::uint64_t prediction) {
      return fields.length[n] = prediction + values_[n];
    });
    if (read(values_) != 0) return false;
    predict_results(fields, memory, [&](std::uint32_t n, std::uint64_t prediction) {
      return fields.result[n] = prediction + values_[n];
    });
    if (!read_offsets() || !in_.sound || !in_.bytes.empty()) return false;
    put_together(fields, slots_);
    return true;
  }
  std::vector<Slot>& slots() { return slots_; }

 private:
  /// Reads a column; returns its mode, which is above every known one if the column is unsound.
  unsigned read(std::span<std::uint64_t> values) {
    const unsigned mode = read_column(in_, values);
    return in_.sound ? mode : 0xff;
  }

  template <class Set>
  bool read_field(std::vector<Slot>& kinds, Set set) {
    const std::span<std::uint64_t> values(values_.data(), kinds.size());
    if (read(values) != 0) return false;
    std::uint64_t field = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) set(kinds[kind], field += values[kind]);
    return true;
  }

  bool read_kinds() {
    const std::uint64_t number = in_.number();
    if (!in_.sound || number == 0 || number > count_) return false;
    std::vector<Slot> kinds(number);
    if (!read_field(kinds, [](Slot& kind, std::uint64_t value) { kind.call = static_cast<Call>(value & 0xffff); }) ||
        !read_field(kinds, [](Slot& kind, std::uint64_t value) { kind.flags = value & 0xffff; }) ||
        !read_field(kinds, [](Slot& kind, std::uint64_t value) { kind.fd = static_cast<std::int32_t>(value); }) ||
        !read_field(kinds, [](Slot& kind, std::uint64_t value) { kind.file = static_cast<std::uint32_t>(value); }) ||
        !read_field(kinds, [](Slot& kind, std::uint64_t value) { kind.path = static_cast<std::uint32_t>(value); }) ||
        read(values_) != 0)
      return false;
    PredictMemory& memory = memory_->predict;
    memory.begin_block();
    std::uint16_t before = no_kind;
    for (std::uint32_t n = 0; n < count_; ++n) {
      std::uint16_t kind = 0;
      if (values_[n] == (n == 0 ? 0 : 1)) {
        kind = memory.kinds;
        if (kind >= number) return false;
        slots_[n] = kinds[kind];
        memory.add_kind(slots_.data(), static_cast<std::uint16_t>(n));
      } else if (n == 0) {
        return false;
      } else if (values_[n] == 0) {
        kind = memory.next[before];
      } else {
        if (values_[n] - 2 >= memory.kinds) return false;
        kind = static_cast<std::uint16_t>(values_[n] - 2);
      }
      slots_[n] = kinds[kind];
      memory.kind_of[n] = kind;
      if (before != no_kind) memory.next[before] = kind;
      before = kind;
    }
    return memory.kinds == number;
  }

  bool read_offsets() {
    const unsigned mode = read(values_);
    const auto visit = [&](std::uint32_t n, std::uint64_t prediction) {
      return memory_->fields.offset[n] = prediction + values_[n];
    };
    switch (mode) {
      case static_cast<unsigned>(OffsetMode::steps):
        predict_offsets<OffsetMode::steps>(memory_->fields, memory_->predict, visit);
        return true;
      case static_cast<unsigned>(OffsetMode::none):
        predict_offsets<OffsetMode::none>(memory_->fields, memory_->predict, visit);
        return true;
      case static_cast<unsigned>(OffsetMode::position):
        predict_offsets<OffsetMode::position>(memory_->fields, memory_->predict, visit);
        return true;
      default: return false;
    }
  }

  ByteReader in_;
  std::uint32_t count_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> values_, others_;
  struct Memory {
    PredictMemory predict;
    BlockFields fields;
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

/// Whether the header says of the calls what they are.
bool fits(const BlockHeader& header, const std::vector<Slot>& slots) {
  BlockHeader real = header;
  real.first_id = real.least_start = UINT64_MAX;
  real.last_id = real.greatest_end = real.call_set = real.file_set = 0;
  for (const Slot& slot : slots) {
    const std::uint64_t id = full_id(slot.id, header.first_id);
    real.first_id = std::min(real.first_id, id);
    real.last_id = std::max(real.last_id, id);
    real.least_start = std::min(real.least_start, slot.start);
    real.greatest_end = std::max(real.greatest_end, slot.end);
    real.call_set |= std::uint64_t{1} << (static_cast<unsigned>(slot.call) % 64);
    real.file_set |= std::uint64_t{1} << (slot.file % 64);
  }
  return std::memcmp(&real, &header, sizeof header) == 0;
}

}  // namespace

std::optional<BlockHeader> block_header(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(BlockHeader)) return std::nullopt;
  BlockHeader header;
  std::memcpy(&header, payload.data(), sizeof header);
  if (header.calls == 0 || header.calls > max_slots || header.first_id > header.last_id) return std::nullopt;
  return header;
}

std::optional<std::vector<Slot>> unpack(std::span<const std::byte> payload) {
  const auto header = block_header(payload);
  if (!header) return std::nullopt;
  Unpacker unpacker(payload.subspan(sizeof(BlockHeader)), header->calls);
  if (!unpacker.read(*header) || !fits(*header, unpacker.slots())) return std::nullopt;
  return std::move(unpacker.slots());
}

}  // namespace iosig::trace
