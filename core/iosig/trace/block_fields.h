// The fields of a block's calls, an array for each: what its columns are made of, and what they are read into.
//
// A slot is a cache line, and a block's slots are more than a processor's first cache holds: a pass over one field of
// all slots takes longer than packing its column from an array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "iosig/trace/part_layout.h"
#include "iosig/trace/rounder.h"

namespace iosig::trace {

/// Slots with equal ones are of one kind: the same file, descriptor, path, call and flags.
struct SlotKind {
  std::uint64_t first, second;
  bool operator==(const SlotKind&) const = default;

  [[nodiscard]] static SlotKind of(const Slot& slot) {
    static_assert(offsetof(Slot, file) == 48 && offsetof(Slot, path) == 56);
    SlotKind kind;
    std::memcpy(&kind.first, reinterpret_cast<const std::byte*>(&slot) + offsetof(Slot, file), sizeof kind.first);
    std::memcpy(&kind.second, reinterpret_cast<const std::byte*>(&slot) + offsetof(Slot, path), sizeof kind.second);
    kind.second &= ~(std::uint64_t{static_cast<std::uint16_t>(~slot_flag_mask)} << 48);  // without the check
    return kind;
  }
  /// 0 if they are equal.
  [[nodiscard]] std::uint64_t difference(const SlotKind& other) const {
    return (first ^ other.first) | (second ^ other.second);
  }
};

struct BlockFields {
  std::uint32_t count;
  // As in Slot; what is signed there is modulo 2^64.
  std::uint64_t start[max_slots], end[max_slots], offset[max_slots], length[max_slots], result[max_slots];
  std::uint32_t id[max_slots], parent[max_slots];

  /// Whether the ids are consecutive from `first_id`, and no call has a parent.
  [[nodiscard]] bool is_flat(std::uint32_t first_id) const {
    std::uint32_t differing = 0;
    for (std::uint32_t n = 0; n < count; ++n) differing |= (id[n] - (first_id + n)) | parent[n];
    return differing == 0;
  }
};

/// Properties of a block's calls, found while their fields are taken apart.
struct BlockTraits {
  bool is_of_one_kind;  ///< call, flags, file, descriptor and path of all are equal
  bool is_ordered;      ///< none starts before the one before it
  bool has_durations;   ///< none ends before it starts
  std::uint64_t least_start, greatest_end;
};

/// Takes the fields of slots (at least one, at most max_slots), and their rounded times, into arrays.
inline BlockTraits take_apart(std::span<const Slot> slots, const Rounder& times, BlockFields& fields) {
  const auto count = fields.count = static_cast<std::uint32_t>(slots.size());
  const SlotKind first = SlotKind::of(slots[0]);
  std::uint64_t differing = 0, least_start = UINT64_MAX, greatest_end = 0, start_before = 0;
  bool is_unordered = false, is_reversed = false;
  for (std::uint32_t n = 0; n < count; ++n) {
    const Slot& slot = slots[n];
    const std::uint64_t start = times.start(slot), end = times.end(slot);
    fields.start[n] = start;
    fields.end[n] = end;
    fields.offset[n] = static_cast<std::uint64_t>(slot.offset);
    fields.length[n] = static_cast<std::uint64_t>(slot.length);
    fields.result[n] = static_cast<std::uint64_t>(slot.result);
    fields.id[n] = slot.id;
    fields.parent[n] = slot.parent;
    differing |= SlotKind::of(slot).difference(first);
    is_unordered |= start < start_before;
    is_reversed |= end < start;
    start_before = start;
    least_start = std::min(least_start, start);
    greatest_end = std::max(greatest_end, end);
  }
  return {.is_of_one_kind = differing == 0,
          .is_ordered = !is_unordered,
          .has_durations = !is_reversed,
          .least_start = least_start,
          .greatest_end = greatest_end};
}

/// The reverse, for exact times: sets these fields of slots.
inline void put_together(const BlockFields& fields, std::span<Slot> slots) {
  for (std::uint32_t n = 0; n < fields.count; ++n) {
    Slot& slot = slots[n];
    slot.start = fields.start[n];
    slot.end = fields.end[n];
    slot.offset = static_cast<std::int64_t>(fields.offset[n]);
    slot.length = static_cast<std::int64_t>(fields.length[n]);
    slot.result = static_cast<std::int64_t>(fields.result[n]);
    slot.id = fields.id[n];
    slot.parent = fields.parent[n];
  }
}

}  // namespace iosig::trace
