// What a block's columns leave out: the predictions that writer and reader of a block make alike (pack.h, unpack.h;
// docs/formats/trace.md describes them). A column has the differences from them.
//
// Calls with the same call, flags, file, descriptor and path are of one kind. A kind's calls are predicted from the
// latest one of that kind, and its first one from the latest new kind of the same call. Each function below walks over
// the calls of a block in order; it hands the prediction for each to `visit`, which returns the actual value.
//
// Most blocks have one kind of call, without parents. Loops of their own make the same predictions for those, from
// variables that stay in registers: a fifth of what packing takes otherwise.
#pragma once

#include <cstdint>
#include <cstring>

#include "iosig/trace/block_fields.h"
#include "iosig/trace/part_layout.h"

namespace iosig::trace {

inline constexpr std::uint16_t no_kind = 0xffff;

/// What the predictions remember of a block.
struct PredictMemory {
  std::uint16_t kinds = 0;           ///< number of kinds
  std::uint16_t kind_of[max_slots];  ///< of each call
  std::uint16_t first[max_slots];    ///< for each kind: its first call
  std::uint16_t like[max_slots];  ///< for each kind: the latest earlier one whose call has the same remainder; no_kind
  std::uint16_t file_kind[max_slots];   ///< for each kind: stands for its file
  std::uint16_t next[max_slots];        ///< for each kind: the one that followed its latest call
  bool seeks[max_slots];                ///< for each kind: its calls set the file's position to their result
  std::uint16_t by_call[512];           ///< the latest kind, by call % 512
  std::uint16_t by_file[1024];          ///< hash table of file_kind
  std::uint16_t by_id[1024];            ///< the latest call, by id % 1024
  std::uint64_t of_kind[max_slots][2];  ///< what a column's prediction keeps

  void begin_block() {
    kinds = 0;
    std::memset(by_call, 0xff, sizeof by_call);
    std::memset(by_file, 0xff, sizeof by_file);
  }

  /// Call number `at` is the first of a new kind.
  void add_kind(const Slot* slots, std::uint16_t at) {
    const std::uint16_t kind = kinds++;
    first[kind] = at;
    next[kind] = kind;
    seeks[kind] = slots[at].call == Call::lseek;
    std::uint16_t& latest = by_call[static_cast<unsigned>(slots[at].call) % 512];
    like[kind] = latest;
    latest = kind;
    std::uint32_t place = slots[at].file * 2654435769U >> 22;
    while (by_file[place] != no_kind && slots[first[by_file[place]]].file != slots[at].file) place = (place + 1) % 1024;
    if (by_file[place] == no_kind) by_file[place] = kind;
    file_kind[kind] = by_file[place];
  }
};

/// Ids: a kind's calls follow the call before them at the same distance. visit(n, prediction) -> id.
template <class Visit>
void predict_ids(std::uint32_t count, std::uint32_t first_id, PredictMemory& memory, Visit visit) {
  std::uint32_t before = first_id - 1;
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint16_t kind = memory.kind_of[n];
    std::uint64_t& step = memory.of_kind[kind][0];
    if (n == memory.first[kind]) step = memory.like[kind] == no_kind ? 1 : memory.of_kind[memory.like[kind]][0];
    const std::uint32_t id = visit(n, before + static_cast<std::uint32_t>(step));
    step = id - before;
    before = id;
  }
}

/// Parents. mode 0: at the distance from the call that the kind's latest one had; 1: the parent that it had.
/// visit(n, prediction) -> parent.
template <class Visit>
void predict_parents(const BlockFields& fields, unsigned mode, PredictMemory& memory, Visit visit) {
  for (std::uint32_t n = 0; n < fields.count; ++n) {
    const std::uint16_t kind = memory.kind_of[n];
    std::uint64_t(&state)[2] = memory.of_kind[kind];
    if (n == memory.first[kind]) {
      const std::uint16_t like = memory.like[kind];
      state[0] = like == no_kind ? 0 : memory.of_kind[like][0];
      state[1] = like == no_kind ? 0 : memory.of_kind[like][1];
    }
    const auto latest = static_cast<std::uint32_t>(state[0]), distance = static_cast<std::uint32_t>(state[1]);
    const std::uint32_t parent = visit(n, mode == 1 || latest == 0 ? latest : fields.id[n] - distance);
    state[0] = parent;
    state[1] = fields.id[n] - parent;
  }
}

/// What a call's times are predicted from.
struct TimeBase {
  std::uint64_t start;
  bool is_start_below = false;  ///< the call's start is `start` minus, not plus, the first number
  std::uint64_t end;
  enum { from_start, above, below } end_is = from_start;  ///< start or `end` plus, or `end` minus, the second number

  [[nodiscard]] std::uint64_t start_of(std::uint64_t first) const {
    return is_start_below ? start - first : start + first;
  }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t own_start, std::uint64_t second) const {
    return end_is == from_start ? own_start + second : end_is == above ? end + second : end - second;
  }
};
/// Times. Calls may be in the order of begins or of ends. An ordinary call starts after the greatest end so far. One
/// right behind its parent starts after the parent, and ends before it. One behind a call with the same parent starts
/// after that one's end. One whose first child is earlier in the block starts before the child, and ends after the call
/// before it. visit(n, base) -> end.
template <class Visit>
void predict_times(const BlockFields& fields, std::uint64_t least_start, PredictMemory& memory, Visit visit) {
  const std::uint32_t count = fields.count;
  std::uint64_t greatest_end = least_start;
  if (count > 0 && fields.is_flat(fields.id[0])) {
    for (std::uint32_t n = 0; n < count; ++n)
      greatest_end = std::max(greatest_end, visit(n, TimeBase{.start = greatest_end, .end = 0}));
    return;
  }
  std::memset(memory.by_id, 0xff, sizeof memory.by_id);
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t id = fields.id[n], parent = fields.parent[n];
    TimeBase base{.start = greatest_end, .end = 0};
    const std::uint16_t child = memory.by_id[(id + 1) % 1024];
    if (child != no_kind && fields.id[child] == id + 1 && fields.parent[child] == id) {
      base = {
          .start = fields.start[child], .is_start_below = true, .end = fields.end[n - 1], .end_is = TimeBase::above};
    } else if (n > 0 && parent != 0 && fields.id[n - 1] == parent) {
      base = {.start = fields.start[n - 1], .end = fields.end[n - 1], .end_is = TimeBase::below};
    } else if (n > 0 && parent != 0 && fields.parent[n - 1] == parent) {
      base.start = fields.end[n - 1];
    }
    greatest_end = std::max(greatest_end, visit(n, base));
    memory.by_id[id % 1024] = static_cast<std::uint16_t>(n);
  }
}

/// Lengths. mode 0: that of the kind's latest call; 1: 0, or no_length after no_length.
/// visit(n, prediction) -> length.
template <class Visit>
void predict_lengths(std::uint32_t count, unsigned mode, PredictMemory& memory, Visit visit) {
  constexpr auto none = static_cast<std::uint64_t>(no_length);
  if (memory.kinds == 1) {
    std::uint64_t latest = 0;
    for (std::uint32_t n = 0; n < count; ++n) latest = visit(n, mode == 0 || latest == none ? latest : 0);
    return;
  }
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint16_t kind = memory.kind_of[n], like = memory.like[kind];
    std::uint64_t& latest = memory.of_kind[kind][0];
    if (n == memory.first[kind]) latest = like == no_kind ? 0 : memory.of_kind[like][0];
    latest = visit(n, mode == 0 || latest == none ? latest : 0);
  }
}

/// Results: the length if the kind's latest result was its length, else that result. visit(n, prediction) -> result.
template <class Visit>
void predict_results(const BlockFields& fields, PredictMemory& memory, Visit visit) {
  constexpr auto none = static_cast<std::uint64_t>(no_length);
  if (memory.kinds == 1) {
    std::uint64_t latest = 0;
    bool was_length = fields.length[0] != none;
    for (std::uint32_t n = 0; n < fields.count; ++n) {
      const std::uint64_t length = fields.length[n];
      latest = visit(n, was_length ? length : latest);
      was_length = latest == length;
    }
    return;
  }
  for (std::uint32_t n = 0; n < fields.count; ++n) {
    const std::uint16_t kind = memory.kind_of[n], like = memory.like[kind];
    std::uint64_t(&state)[2] = memory.of_kind[kind];  // latest result, whether it was the length
    if (n == memory.first[kind]) {
      state[0] = like == no_kind ? 0 : memory.of_kind[like][0];
      state[1] = like == no_kind ? (fields.length[n] != none ? 1 : 0) : memory.of_kind[like][1];
    }
    const std::uint64_t length = fields.length[n];
    state[0] = visit(n, state[1] != 0 ? length : state[0]);
    state[1] = state[0] == length ? 1 : 0;
  }
}

/// How offsets are predicted.
enum class OffsetMode : std::uint8_t {
  steps = 0,     ///< as far from the kind's latest call as that was from the one before
  none = 1,      ///< 0
  position = 2,  ///< where the file's latest call ended
};

/// Offsets; no_offset after no_offset in every mode. visit(n, prediction) -> offset.
template <OffsetMode mode, class Visit>
void predict_offsets(const BlockFields& fields, PredictMemory& memory, Visit visit) {
  constexpr auto none = static_cast<std::uint64_t>(no_offset);
  if (memory.kinds == 1) {
    std::uint64_t latest = 0, step = 0, position = 0;
    for (std::uint32_t n = 0; n < fields.count; ++n) {
      const std::uint64_t predicted = mode == OffsetMode::steps      ? latest + step
                                      : mode == OffsetMode::position ? position
                                                                     : 0;
      const std::uint64_t offset = visit(n, latest == none ? none : predicted);
      const std::uint64_t result = fields.result[n];
      step = n == 0 ? result : offset - latest;
      if (offset != none) position = memory.seeks[0] ? result : offset + result;
      latest = offset;
    }
    return;
  }
  for (std::uint32_t n = 0; n < fields.count; ++n) {
    const std::uint16_t kind = memory.kind_of[n], like = memory.like[kind];
    std::uint64_t(&state)[2] = memory.of_kind[kind];  // steps: latest offset, step. position: [0] latest offset
    const bool is_first = n == memory.first[kind];
    if (is_first) {
      state[0] = like == no_kind ? 0 : fields.offset[memory.first[like]];
      if (mode != OffsetMode::position) state[1] = 0;
      if (mode == OffsetMode::position && memory.file_kind[kind] == kind) state[1] = 0;  // the file's position
    }
    std::uint64_t prediction = none;
    if (state[0] != none) {
      if constexpr (mode == OffsetMode::steps) prediction = state[0] + state[1];
      if constexpr (mode == OffsetMode::none) prediction = 0;
      if constexpr (mode == OffsetMode::position) prediction = memory.of_kind[memory.file_kind[kind]][1];
    }
    const std::uint64_t offset = visit(n, prediction);
    const std::uint64_t result = fields.result[n];
    if constexpr (mode == OffsetMode::steps) state[1] = is_first ? result : offset - state[0];
    if constexpr (mode == OffsetMode::position)
      if (offset != none) memory.of_kind[memory.file_kind[kind]][1] = memory.seeks[kind] ? result : offset + result;
    state[0] = offset;
  }
}

}  // namespace iosig::trace
