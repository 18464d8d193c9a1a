// The recorder: what a traced call does more than an untraced one. The entries of the intercepted calls (entries.inc,
// made from hooks/calls.txt) call record().
//
// Each thread has a part (core/iosig/trace/part_layout.h), a file of which the first pages are mapped. A call takes a
// slot, stores what it is about to do, makes the real call, and stores the result. So the kernel has every call that
// returned, and those that began, even if the process is killed. When the slots are full, they are packed and
// appended to the file (thread_part.cpp).
//
// No lock, allocation or system call here, except on the way out to the cold functions at the end. Signal handlers may
// record calls between any two instructions, and may leave by longjmp(3).
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <type_traits>

#include "iosig/trace/clock_pair.h"
#include "iosig/trace/part_layout.h"
#include "preload/trace/descriptions.h"
#include "preload/trace/sources.h"

namespace iosig::preload::trace {

using iosig::trace::Call;
using iosig::trace::Slot;

/// What happens at a call of a kind. `follow`: it is not recorded, but the recorder must know of it, because it opens,
/// closes or moves a descriptor.
/// `pass`: the call concerns prefetching alone (prefetch/reads.h).
enum class Use : std::uint8_t { none, record, follow, pass };

/// By the call's number. All `none` while nothing is traced: this is the only overhead then.
extern constinit Use uses[iosig::trace::call_limit];
/// Whether any is not.
extern constinit bool is_tracing;
/// Whether the kernel forgets this thread's stack for signal handlers while one runs on it, and so cannot tell.
extern constinit thread_local bool hides_handlers_stack __attribute__((tls_model("initial-exec")));
/// Whether this is a signal handler on a stack of its own. Such a stack may be small, and has no place in the order of
/// the thread's stack.
[[nodiscard]] bool is_on_handlers_stack();
/// Whether the time stamp counter is the clock; else CLOCK_MONOTONIC.
extern constinit bool has_tsc_clock;

/// Whether a call that is used concerns the recorder.
[[nodiscard]] inline bool is_traced(Call call) { return uses[static_cast<std::uint16_t>(call)] != Use::pass; }
[[nodiscard]] inline bool is_used(Call call) { return uses[static_cast<std::uint16_t>(call)] != Use::none; }

[[nodiscard]] inline std::uint64_t now() {
#if defined(__x86_64__)
  if (has_tsc_clock) [[likely]]
    return iosig::trace::read_tsc();
#endif
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// A call of this thread that has begun and not ended.
struct OpenCall {
  Slot* slot;
  const void* stack;  ///< an address in the call's stack frame
  std::uint32_t id;
  Call call;
  bool is_selected;  ///< by `--source`; calls below it go with it
};

/// The state of this thread's access to slots.
enum class Step : std::uint8_t {
  idle,
  writing,   ///< it writes to its slot: the slot is not given to others
  claiming,  ///< it gets its slot: others cannot be packed
};

/// A step, and an address in the stack frame of the call that has it: longjmp(3) may leave a call in the middle of it.
/// One word, so that a signal handler finds both. 0: idle.
using StepOfCall = std::uintptr_t;
[[nodiscard]] inline StepOfCall step_of_call(Step step, const void* stack) {
  return reinterpret_cast<std::uintptr_t>(stack) | static_cast<std::uintptr_t>(step);
}
[[nodiscard]] inline Step step_in(StepOfCall step) { return static_cast<Step>(step & 3); }

/// The state of a thread's recording, in a page of its own that fork() empties (MADV_WIPEONFORK): the child's first
/// call finds no slots and makes a part of its own, also after a bare clone(2).
struct ThreadPart {
  std::uint32_t used;   ///< slots in use
  std::uint32_t limit;  ///< slots that there are; 0: there is no part yet
  StepOfCall step;      ///< of the outermost call that a signal handler has interrupted, or of the newest one
  std::uint32_t depth;  ///< open calls
  std::uint64_t last_id;
  Slot* slots;
  std::array<OpenCall, 24> open;  ///< outermost first

  // For thread_part.cpp alone.
  iosig::trace::PartHeader* header;
  std::byte* memory;            ///< for packing
  std::uint64_t chunks_end;     ///< bytes of the file
  std::uint32_t pending;        ///< bytes of pending chunks
  std::uint32_t lost_in_claim;  ///< calls since the latest claim that was interrupted
  std::uint32_t pid, number;    ///< number of the part in its process: its file's name has both
  std::uint64_t device, inode;
  int fd = -1;       ///< of the part's file, if the part keeps it open
  ThreadPart* next;  ///< of all parts of the process
  ThreadPart* next_free;
};

extern constinit thread_local ThreadPart* this_part __attribute__((tls_model("initial-exec")));

/// Makes room for at least one slot: makes the part, or packs what it has. false: the call cannot be recorded.
[[nodiscard]] bool make_room(ThreadPart*& part);
/// Forgets open calls below `call`, the newest one, that longjmp(3) has left, and marks their slots.
void drop_left_calls(ThreadPart& part, std::uint32_t& call);
/// Returns the step of the call that is interrupted by the one with `stack` in its stack frame. If longjmp(3) has left
/// that call, there is none, and what it had begun is forgotten.
[[nodiscard]] StepOfCall interrupted_step(ThreadPart& part, const void* stack);
/// Ends a call that a signal handler's calls, which packed the slots at its last instruction, took for an open one.
void end_moved(ThreadPart& part, std::uint32_t depth, std::uint32_t id, std::uint64_t end);

/// What a call is about, as its row in calls.txt says.
struct Subject {
  int fd = -1;
  std::int64_t offset = iosig::trace::no_offset;
  std::int64_t length = iosig::trace::no_length;
  std::uint32_t file = 0;
  std::uint32_t path = 0;
  Description* description = nullptr;
  bool is_left_out = false;
};

/// Returns the recorded call of this thread that has begun last; Call::none if none is open.
[[nodiscard]] inline Call innermost_call() {
  const ThreadPart& part = *this_part;
  return part.depth == 0 || part.depth > part.open.size() ? Call::none : part.open[part.depth - 1].call;
}
/// Whether that is one of the lowest layer. Not if longjmp(3) has left it: it does not lie above `frame`, the caller's.
[[nodiscard]] inline bool is_in_posix_call(const void* frame) {
  const Call call = innermost_call();
  return call != Call::none && this_part->open[this_part->depth - 1].stack > frame &&
         iosig::trace::layer_of(call) == iosig::trace::Layer::posix;
}

/// Whether that is one of MPI.
[[nodiscard]] inline bool is_in_mpi_call() {
  const Call call = innermost_call();
  return call != Call::none && iosig::trace::layer_of(call) == iosig::trace::Layer::mpi_io;
}

/// Whether `--source` selects a call that this thread makes now.
[[nodiscard]] inline bool is_selected() {
  if (!has_sources) [[likely]]
    return true;
  const ThreadPart* const part = this_part;
  const void* const stack = &part;  // what longjmp(3) has left lies below it
  const bool is_below =
      part->depth > 0 && part->depth <= part->open.size() && part->open[part->depth - 1].stack > stack;
  return is_below ? part->open[part->depth - 1].is_selected : is_called_from_sources();
}

/// Increments as one instruction, so that a signal handler of the same thread gets another number.
template <class Number>
[[nodiscard]] Number take_number(Number& next) {
  Number taken = 1;
#if defined(__x86_64__)
  __asm__ volatile("xadd %0, %1" : "+r"(taken), "+m"(next) : : "cc", "memory");
#else
  taken = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
#endif
  return taken;
}

/// A call that is being recorded, from its begin until end() or cancel() is called. It has no destructor: when the
/// thread is cancelled in the call, the C library unwinds the stack by an unwinder that is not the one this library
/// has.
class Recording {
 public:
  /// Records nothing if `--source` does not select the call.
  Recording(Call call, const Subject& subject) {
    if (is_selected()) begin(call, subject, true);
  }
  /// Records the call also if it is not selected: it names a file.
  Recording(Call call, const Subject& subject, bool is_selected) { begin(call, subject, is_selected); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// Whether the call is recorded, and has not ended. Not in a child made by fork() during the call.
  [[nodiscard]] bool is_open() const {
    return part_ != nullptr && part_->depth > depth_ && part_->open[depth_].id == id_;
  }

  /// Calls change(slot), unless the call is recorded nowhere.
  template <class Change>
  void change(const Change& change) const {
    if (!is_open()) [[unlikely]]
      return;
    const StepOfCall before = keep_slot();
    change(*part_->open[depth_].slot);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    part_->step = before;
  }

  void end(std::int64_t result) { end(result, now); }
  /// Ends the call when it began.
  void end_at_once(std::int64_t result) {
    end(result, [start = is_open() ? part_->open[depth_].slot->start : 0] { return start; });
  }

  /// Removes the call from the trace: it turned out to concern a file that is left out.
  void cancel() {
    change([&](Slot& slot) {
      slot.start = 0;
      part_->depth = depth_;
    });
    part_ = nullptr;
  }

 private:
  /// Keeps the slot for the call until the returned step is restored.
  [[nodiscard]] StepOfCall keep_slot() const {
    const StepOfCall before = part_->step;
    part_->step = before != 0 ? before : step_of_call(Step::writing, this);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return before;
  }

  template <class Time>
  void end(std::int64_t result, const Time& time) {
    if (is_open()) [[likely]] {
      const StepOfCall before = keep_slot();
      Slot* ended = part_->open[depth_].slot;
      std::uint64_t end = 0;
      for (;;) {
        ended->result = result;
        end = time();
        ended->flags = iosig::trace::checked_flags(*ended, end, ended->flags);
        std::atomic_signal_fence(std::memory_order_release);
        ended->end = end;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        Slot* const moved = part_->open[depth_].slot;
        if (moved == ended && ended->end != 0) [[likely]]
          break;
        ended->end = 0;  // a signal handler's calls have packed the slots in between
        ended = moved;
      }
      part_->depth = depth_;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (ended->end == 0) [[unlikely]]
        end_moved(*part_, depth_, id_, end);
      part_->step = before;
    }
    part_ = nullptr;
  }

  void begin(Call call, const Subject& subject, bool is_selected) {
    ThreadPart* part = this_part;
    StepOfCall before = part->step;  // a signal handler's call does not end what it interrupts
    if (before != 0) [[unlikely]]
      before = interrupted_step(*part, this);
    const bool interrupts_claim = step_in(before) == Step::claiming;
    std::uint32_t index = 0;
    std::uint32_t file = subject.file;
    for (;;) {
      if (part->used >= part->limit) [[unlikely]] {
        const bool is_first = part->limit == 0;
        if (!make_room(part)) return;
        if (is_first && subject.description != nullptr) file = file_behind(subject.fd, *subject.description);
      }
      part->step = step_of_call(Step::claiming, this);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      index = take_number(part->used);
      if (index < part->limit) [[likely]]
        break;
      part->step = before;  // a signal handler has taken the last slot
    }
    Slot& slot = part->slots[index];
    depth_ = take_number(part->depth);
    if (depth_ >= part->open.size()) [[unlikely]] {
      part->depth = depth_;
      part->step = before;
      ++part->header->lost_calls;
      return;
    }
    const auto id = static_cast<std::uint32_t>(take_number(part->last_id) + 1);
    part->open[depth_] = {.slot = &slot, .stack = this, .id = id, .call = call, .is_selected = is_selected};
    std::atomic_signal_fence(std::memory_order_seq_cst);
    part->step = before != 0 ? before : step_of_call(Step::writing, this);
    // Where a signal handler's call interrupts a claim, the call before it may not be in its place yet.
    const OpenCall* const outer = depth_ == 0 || interrupts_claim ? nullptr : &part->open[depth_ - 1];
    if (outer != nullptr) [[unlikely]]
      if (outer->stack <= this) drop_left_calls(*part, depth_);
    part_ = part;
    id_ = id;
    slot.offset = subject.offset;
    slot.length = subject.length;
    slot.id = id;
    slot.parent = depth_ == 0 || interrupts_claim ? 0 : part->open[depth_ - 1].id;
    slot.file = file;
    slot.fd = subject.fd;
    slot.path = subject.path;
    slot.call = call;
    slot.flags = 0;
    slot.result = 0;
    slot.end = 0;
    std::atomic_signal_fence(std::memory_order_release);
    const std::uint64_t start = slot.start = now();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A signal handler's calls may have packed the slots since this one was claimed, and emptied it.
    if (Slot* const moved = part->open[depth_].slot; moved != &slot) [[unlikely]] {
      *moved = slot;
      moved->start = start;
      slot.start = 0;
    }
    part->step = before;
  }
  ThreadPart* part_ = nullptr;
  std::uint32_t depth_ = 0, id_ = 0;
};

/// Converts a call's result for the trace: negative numbers and null pointers become -errno.
template <class Result>
[[nodiscard]] std::int64_t as_result(Result result) {
  if constexpr (std::is_pointer_v<Result>) {
    const auto address = reinterpret_cast<std::intptr_t>(result);
    return address == 0 || address == -1 ? -errno : 0;
  } else {
    return result < 0 ? -errno : static_cast<std::int64_t>(result);
  }
}

[[nodiscard]] constexpr bool moves_offset(Call call) {
  return iosig::trace::call_manner_of(call) == iosig::trace::CallManner::at_file_offset;
}

/// Makes the call, `make`, and records it. Keeps errno.
template <Call call, class Make>
[[nodiscard]] auto record(const Subject& subject, const Make& make) {
  if (subject.is_left_out) return make();
  if (uses[static_cast<std::uint16_t>(call)] == Use::follow) [[unlikely]] {
    const auto result = make();
    if constexpr (moves_offset(call))
      if (subject.description != nullptr) (void)subject.description->moved_by(subject.fd, result);
    if constexpr (call == Call::lseek)
      if (subject.description != nullptr && result >= 0) subject.description->position = result;
    return result;
  }
  Recording recording(call, subject);
  const auto result = make();
  const std::int64_t recorded = as_result(result);
  if constexpr (moves_offset(call)) {
    if (subject.description != nullptr) [[likely]] {
      const std::int64_t offset = subject.description->moved_by(subject.fd, recorded);
      recording.change([&](Slot& slot) {
        slot.offset = offset;
        slot.flags = iosig::trace::derived_offset;
      });
    }
  }
  if constexpr (call == Call::lseek)
    if (subject.description != nullptr && recorded >= 0) subject.description->position = recorded;
  recording.end(recorded);
  return result;
}

}  // namespace iosig::preload::trace
