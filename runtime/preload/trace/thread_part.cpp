#include "preload/trace/thread_part.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include "host/diagnostics.h"
#include "host/run_isolated.h"
#include "iosig/trace/clock_pair.h"
#include "iosig/trace/pack.h"
#include "iosig/trace/part_bytes.h"
#include "preload/files/open_file.h"
#include "preload/trace/mappings.h"
#include "preload/trace/names.h"
#include "preload/trace/part_file.h"
#include "preload/trace/process_facts.h"

namespace iosig::preload::trace {

using namespace iosig::trace;  // NOLINT(google-build-using-namespace): the format that this file writes

namespace {

/// Where this_part leads before a thread's first call.
constinit ThreadPart no_part{};
/// That of a thread for which no part could be made.
constinit ThreadPart failed_part{};
/// That of a thread in Undisturbed.
constinit ThreadPart busy_part{};
/// Calls of this thread that were made meanwhile.
constinit thread_local std::uint32_t calls_meanwhile __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

constinit thread_local ThreadPart* this_part __attribute__((tls_model("initial-exec"))) = &no_part;
constinit thread_local bool hides_handlers_stack __attribute__((tls_model("initial-exec"))) = false;
constinit Use uses[call_limit]{};
constinit bool is_tracing = false;
constinit bool has_tsc_clock = false;

namespace {

constexpr std::size_t mapped_bytes = chunks_offset;
constexpr std::uint64_t id_span = 1u << 31;  ///< ids of calls that are packed together differ by less

/// What a thread needs beside its mapped pages; private and zero at first.
struct PartMemory {
  NameCache names;
  ChainCache chains;
  PlaceCache places;
  std::array<char, PATH_MAX> path;  ///< of the part's file
};

/// Of a ThreadPart and its memory.
constexpr std::size_t part_memory_bytes = page_bytes + sizeof(PartMemory);

/// Private memory that a thread uses only while it packs. Threads pass it on, so that a process has as many as it has
/// threads that pack at the same time.
struct Packing {
  PackMemory memory;
  std::array<Slot, max_slots> whole;  ///< the slots that are packed, if some are not
  std::array<std::byte, max_packed_bytes> packed;
};

/// Of this process. In a page that fork() empties: a child that finds it so begins a process of its own.
struct ProcessState {
  std::atomic<std::int32_t> pid, parent_pid;  ///< of the process whose memory this is; 0: not known yet
  std::atomic<std::uint64_t> process;         ///< its random number; 0: not begun yet
  std::atomic<bool> is_begun;                 ///< a thread is about to choose the number
  std::atomic<std::uint32_t> files, paths, parts;
  std::atomic<ThreadPart*> all;
  std::atomic<ThreadPart*> free;  ///< that threads have left
  std::array<std::atomic<Packing*>, 64> free_packings;
  std::atomic<bool> has_facts;        ///< a part has what is known of the process
  std::atomic<bool> is_failure_told;  ///< a thread has no part
  std::atomic<bool> is_ending;        ///< what comes now is the C library's flush of its streams
};
ProcessState* state = nullptr;
/// For the first part, behind the state: a short process needs one mapping less. Null: used. A child does not get it
/// again, because calls that it inherited on its stack may lead there.
std::atomic<std::byte*> first_memory{nullptr};

std::string_view trace_directory;  ///< ended by NUL
std::atomic<Unrecorded*> unrecorded{nullptr};
bool keeps_microseconds = false;
pthread_key_t thread_end;

PartMemory& memory_of(ThreadPart& part) { return *reinterpret_cast<PartMemory*>(part.memory); }

ClockPair read_clocks() { return clock_pair(now); }

/// Memory for packing, for as long as the object lives; false: there is none. Waits for no other thread: that one may
/// have a lower real-time priority.
class UsedPacking {
 public:
  UsedPacking() {
    for (auto& free : state->free_packings)
      if (free.load(std::memory_order_relaxed) != nullptr && (used_ = free.exchange(nullptr)) != nullptr) return;
    used_ = static_cast<Packing*>(map_emptied_at_fork(sizeof(Packing)));
  }
  UsedPacking(const UsedPacking&) = delete;
  UsedPacking& operator=(const UsedPacking&) = delete;
  ~UsedPacking() {
    if (used_ == nullptr) return;
    for (auto& free : state->free_packings)
      if (Packing* none = nullptr; free.compare_exchange_strong(none, used_)) return;
    ::munmap(used_, sizeof(Packing));
  }
  explicit operator bool() const { return used_ != nullptr; }
  Packing* operator->() const { return used_; }

 private:
  Packing* used_ = nullptr;
};

/// Writes the path of the part's file to its memory. The stack may be a signal handler's, and tiny.
const char* path_of(ThreadPart& part) {
  auto& text = memory_of(part).path;
  std::size_t length = 0;
  const auto put = [&](std::string_view added) {
    added = added.substr(0, std::min(added.size(), text.size() - 1 - length));
    std::copy(added.begin(), added.end(), text.data() + length);
    length += added.size();
  };
  const auto put_number = [&](std::uint64_t value, unsigned base) {
    char digits[24];
    std::size_t count = 0;
    do digits[sizeof digits - ++count] = "0123456789abcdef"[value % base];
    while ((value /= base) > 0);
    put({digits + sizeof digits - count, count});
  };
  put(trace_directory);
  put("/");
  put(host_name());
  put(".");
  put_number(part.pid, 10);
  put(".");
  put_number(state->process, 16);
  put(".");
  put_number(part.number, 10);
  put(".part");
  text[length] = '\0';
  return text.data();
}

/// Grows the part from its first slots to all. false: the directory is full.
bool grow(ThreadPart& part) {
  const UsedFile file(part, path_of(part));
  if (file.fd() < 0 || !fill_file(file.fd(), slots_offset + first_slots * sizeof(Slot), chunks_offset)) return false;
  part.header->slot_capacity = max_slots;
  part.limit = max_slots;
  return true;
}

std::byte* pending_of(const ThreadPart& part) { return reinterpret_cast<std::byte*>(part.header) + pending_offset; }

/// false: the directory is full.
bool append_chunks(ThreadPart& part, const std::byte* chunks, std::size_t bytes) {
  if (!put_in_file(part, path_of(part), chunks, bytes, part.chunks_end)) return false;
  part.header->chunks_end = part.chunks_end += bytes;
  return true;
}

/// Appends the pending chunks to the file.
void append_pending(ThreadPart& part) {
  if (part.pending == 0) return;
  if (!append_chunks(part, pending_of(part), part.pending))
    part.header->lost_names += chunks_in({pending_of(part), part.pending});
  std::memset(pending_of(part), 0, sizeof(ChunkHeader));
  part.pending = 0;
}

/// How many ticks a microsecond has, by the part's clock since its start; 0: not known yet.
std::uint64_t ticks_in_microsecond(const ThreadPart& part, const ClockPair& clock) {
  if (!has_tsc_clock) return 1000;
  const ClockPair& first = part.header->first;
  return clock.monotonic_ns < first.monotonic_ns + 1000
             ? 0
             : (clock.ticks - first.ticks) * 1000 / (clock.monotonic_ns - first.monotonic_ns);
}

struct Slots {
  Slot *begin, *end;
  [[nodiscard]] std::ptrdiff_t count() const { return end - begin; }
};

/// Returns the most slots of the part without an open call: before, between or behind those of `open`, which are in
/// order.
Slots most_free_slots(const ThreadPart& part, std::span<OpenCall* const> open) {
  Slots most{part.slots, open.empty() ? part.slots + part.limit : open.front()->slot};
  for (std::size_t n = 0; n < open.size(); ++n) {
    const Slots free{open[n]->slot + 1, n + 1 < open.size() ? open[n + 1]->slot : part.slots + part.limit};
    if (free.count() > most.count()) most = free;
  }
  return most;
}

/// Empties all slots but those of open calls, which move to the front.
///
/// A signal handler that packs may have interrupted a call while it wrote to its slot, and the call goes on to write
/// there. No other call gets this slot until no call is open: where the most slots are free between open calls, those
/// before them stay, those behind them move to the front, and others get only slots in between.
void keep_open_calls(ThreadPart& part, std::uint32_t used, std::uint32_t kept) {
  const std::uint32_t capacity = part.header->slot_capacity;
  std::array<OpenCall*, std::tuple_size_v<decltype(part.open)>> calls;
  for (std::uint32_t n = 0; n < kept; ++n) calls[n] = &part.open[n];
  const std::span open(calls.data(), kept);
  std::ranges::sort(open, {}, &OpenCall::slot);
  Slots free{part.slots, part.slots + capacity};
  if (part.step != 0)
    if (const Slots most = most_free_slots(part, open); most.count() > capacity / 4) free = most;
  std::array<bool, max_slots> is_kept{};
  const auto kept_at = [&](const Slot* slot) -> bool& { return is_kept[static_cast<std::size_t>(slot - part.slots)]; };
  for (const OpenCall* call : open) kept_at(call->slot) = call->slot < free.begin;
  Slot* end = free.begin;
  for (OpenCall* call : open) {
    if (call->slot < free.begin) continue;
    Slot* const place = part.slots + (std::ranges::find(is_kept, false) - is_kept.begin());
    if (place != call->slot) *place = *call->slot;
    call->slot = place;
    kept_at(place) = true;
    end = std::max(end, place + 1);
  }
  for (std::uint32_t n = 0; n < used; ++n)
    if (!is_kept[n]) part.slots[n].start = part.slots[n].end = 0;
  part.used = static_cast<std::uint32_t>(end - part.slots);
  part.limit = static_cast<std::uint32_t>(free.end - part.slots);
}

bool has_ended(const Slot& slot) { return slot.start != 0 && slot.end != 0; }

/// Packs and appends those of the slots whose calls have ended, `ended` of them and at least one. false: the directory
/// is full, or there is no memory.
bool append_ended(ThreadPart& part, std::span<const Slot> slots, std::size_t ended, const ClockPair& clock) {
  const UsedPacking packing;
  if (!packing) return false;
  if (ended < slots.size()) {
    std::ranges::copy_if(slots, packing->whole.begin(), has_ended);
    slots = std::span(packing->whole).first(ended);
  }
  const PackOptions options{.quantum_ticks = keeps_microseconds ? ticks_in_microsecond(part, clock) : 0,
                            .has_sums = true};
  const std::size_t bytes = pack(slots, part.header->tid, part.last_id > id_span ? part.last_id - id_span : 0, clock,
                                 options, packing->memory, packing->packed);
  return append_chunks(part, packing->packed.data(), bytes);
}

/// Packs and appends the slots of calls that have ended, and empties them.
void pack_slots(ThreadPart& part) {
  append_pending(part);
  const std::uint32_t used = std::min(part.used, part.limit);
  // A call that a signal handler interrupts in its end() is open: it stores its end again.
  const std::uint32_t kept = std::min<std::uint32_t>(part.depth, static_cast<std::uint32_t>(part.open.size()));
  for (std::uint32_t n = 0; n < kept; ++n) part.open[n].slot->end = 0;
  const std::span<const Slot> slots(part.slots, used);
  const auto ended = static_cast<std::size_t>(std::ranges::count_if(slots, has_ended));
  if (ended < slots.size()) {
    // Every other call that has begun is open; else its end is lost.
    const auto is_open = [](const Slot& slot) { return slot.start != 0 && slot.end == 0; };
    part.header->lost_calls += static_cast<std::uint64_t>(
        std::ranges::count_if(slots, is_open) -
        std::ranges::count_if(std::span(part.open).first(kept), is_open, [](auto& call) { return *call.slot; }));
  }
  const ClockPair clock = read_clocks();
  if (ended > 0 && !append_ended(part, slots, ended, clock)) part.header->lost_calls += ended;
  part.header->latest = clock;
  keep_open_calls(part, used, kept);
}

void know_process() {
  state->parent_pid = ::getppid();
  state->pid = ::getpid();
}

/// Begins a process of its own, also in a child. One thread does it, and others wait: they would forget what it knows
/// of the descriptors by then.
void begin_process() {
  if (state->process != 0 || (state->is_begun.exchange(true) && is_soon([] { return state->process != 0; }))) return;
  std::uint64_t random = 0;
  while (random == 0)
    if (::syscall(SYS_getrandom, &random, sizeof random, GRND_NONBLOCK) != sizeof random)
      random = now() ^ static_cast<std::uint64_t>(::getpid()) << 40;
  forget_descriptions();
  forget_mappings();
  working_directory_changed();
  if (state->pid == 0) know_process();
  std::uint64_t none = 0;
  state->process.compare_exchange_strong(none, random);
}

/// That this thread could not use for a part; 0: none.
constinit thread_local std::uint32_t unused_number __attribute__((tls_model("initial-exec"))) = 0;

bool make_file(ThreadPart& part) {
  part.number = unused_number != 0 ? std::exchange(unused_number, 0) : state->parts.fetch_add(1) + 1;
  part.pid = static_cast<std::uint32_t>(state->pid.load());
  const long fd = create_file(part, path_of(part));
  if (fd < 0) {
    const runtime::ErrnoKept kept;
    if (errno == EBUSY) ::syscall(SYS_unlinkat, AT_FDCWD, path_of(part), 0);
    if (errno != EEXIST) unused_number = part.number;
    return false;
  }
  void* mapped = MAP_FAILED;
  if (fill_file(fd, 0, slots_offset + first_slots * sizeof(Slot)))
    mapped = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  if (mapped == MAP_FAILED) {
    const runtime::ErrnoKept kept;
    close_file(fd);
    unused_number = part.number;
    ::syscall(SYS_unlinkat, AT_FDCWD, path_of(part), 0);
    return false;
  }
  (void)::madvise(mapped, mapped_bytes, MADV_DONTFORK);
  auto* const header = static_cast<PartHeader*>(mapped);
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  *header = part_header({.host = host_name(),
                         .process = state->process,
                         .pid = state->pid,
                         .parent_pid = state->parent_pid,
                         .clock = has_tsc_clock ? ClockKind::tsc : ClockKind::nanoseconds,
                         .first = read_clocks(),
                         .realtime_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                                        static_cast<std::uint64_t>(time.tv_nsec),
                         .boot = boot_number()});
  header->slot_capacity = first_slots;
  part.header = header;
  part.slots = reinterpret_cast<Slot*>(static_cast<std::byte*>(mapped) + slots_offset);
  part.chunks_end = chunks_offset;
  keep_file(part, fd);
  return true;
}

/// Takes a part that an ended thread has left; null: there is none. Waits for no other thread, either.
ThreadPart* take_free_part() {
  ThreadPart* const taken = state->free.exchange(nullptr);
  ThreadPart* const rest = taken == nullptr ? nullptr : taken->next_free;
  if (rest == nullptr) return taken;
  ThreadPart* newer = nullptr;
  if (state->free.compare_exchange_strong(newer, rest)) return taken;
  ThreadPart* last = rest;  // threads have left others meanwhile
  while (last->next_free != nullptr) last = last->next_free;
  do last->next_free = newer;
  while (!state->free.compare_exchange_weak(newer, rest));
  return taken;
}

void leave_part(ThreadPart& part) {
  part.next_free = state->free.load();
  while (!state->free.compare_exchange_weak(part.next_free, &part)) {
  }
}

ThreadPart* make_part() {
  if (ThreadPart* const left = take_free_part(); left != nullptr) return left;
  void* memory = first_memory.exchange(nullptr);
  if (memory == nullptr) memory = map_emptied_at_fork(part_memory_bytes);
  if (memory == nullptr) return nullptr;
  auto* const part = new (memory) ThreadPart{};
  part->memory = static_cast<std::byte*>(memory) + page_bytes;
  if (!make_file(*part)) {
    ::munmap(memory, part_memory_bytes);
    return nullptr;
  }
  part->next = state->all.load();
  while (!state->all.compare_exchange_weak(part->next, part)) {
  }
  if (!state->has_facts.exchange(true)) write_process_facts(*part);
  return part;
}

/// Maps the trace's count of what has no part; null: it has none.
Unrecorded* map_unrecorded() {
  const long directory = ::syscall(SYS_openat, AT_FDCWD, trace_directory.data(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  const long fd = ::syscall(SYS_openat, directory, unrecorded_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  struct stat status {};
  void* mapped = MAP_FAILED;
  if (fd >= 0 && ::fstat(static_cast<int>(fd), &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_size == static_cast<off_t>(sizeof(Unrecorded)))
    mapped = ::mmap(nullptr, sizeof(Unrecorded), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  if (fd >= 0) ::syscall(SYS_close, fd);
  if (directory >= 0) ::syscall(SYS_close, directory);
  return mapped == MAP_FAILED ? nullptr : static_cast<Unrecorded*>(mapped);
}

/// Counts a call of a thread without a part.
void count_unrecorded() {
  if (Unrecorded* const all = unrecorded.load(std::memory_order_relaxed); all != nullptr)
    __atomic_fetch_add(&all->calls, 1, __ATOMIC_RELAXED);
}

void say_that_process_is_not_traced(int failure) {
  if (Unrecorded* const all = unrecorded; all != nullptr) __atomic_fetch_add(&all->processes, 1, __ATOMIC_RELAXED);
  if (!is_first_to_say("no-part")) return;
  (void)runtime::run_isolated([&] {
    runtime::say(fmt::format("tracing fails in this process: cannot make a file in '{}': {}; the program goes on",
                             trace_directory, std::strerror(failure)));  // NOLINT(concurrency-mt-unsafe)
  });
}

void say_that_no_part_was_made(int failure) {
  if (!state->is_failure_told.exchange(true)) say_that_process_is_not_traced(failure);
}

/// Whether a thread without a part tries to make one: at its calls 1, 2, 4, ... 1024, and then at every 1024th.
bool is_time_to_try() {
  static constinit thread_local std::uint32_t calls __attribute__((tls_model("initial-exec"))) = 0;
  constexpr std::uint32_t rarest = 1024;
  return ++calls % rarest == 0 || (calls < rarest && std::has_single_bit(calls));
}

/// Ends a call that never returns: longjmp(3) or the cancellation of its thread has left it.
void abandon(const OpenCall& call) {
  call.slot->flags = checked_flags(*call.slot, call.slot->start, call.slot->flags | abandoned);
  call.slot->end = call.slot->start;
}

/// So many calls during a claim, and no handler of a signal makes them: it has left the claim by longjmp(3), and what
/// follows lies deeper in the stack.
constexpr std::uint32_t most_lost_in_claim = 2 * max_slots;

/// Forgets the newest calls that have taken no slot: longjmp(3) or the end of the thread has left them before that.
void forget_unbegun_calls(ThreadPart& part) {
  const auto has_begun = [](const OpenCall& call) {
    return call.slot != nullptr && call.slot->id == call.id && call.slot->start != 0 && call.slot->end == 0;
  };
  part.depth = std::min(part.depth, static_cast<std::uint32_t>(part.open.size()));
  while (part.depth > 0 && !has_begun(part.open[part.depth - 1])) --part.depth;
}

/// At the end of a thread: its part is packed and left to a thread to come.
void end_thread(void* ended) {
  auto& part = *static_cast<ThreadPart*>(ended);
  if (this_part != &part || part.limit == 0) return;
  const runtime::ErrnoKept kept;
  this_part = &no_part;
  const Undisturbed undisturbed;
  forget_unbegun_calls(part);
  for (std::uint32_t n = 0; n < part.depth; ++n) abandon(part.open[n]);
  part.depth = 0;
  part.step = 0;
  pack_slots(part);
  part.header->is_closed = 1;
  leave_part(part);
}

/// The id of this thread. In a child of vfork(2) that of its parent's thread, which gets the part.
std::int32_t thread_id() {
  if (!is_in_memory_of_parent()) return static_cast<std::int32_t>(::syscall(SYS_gettid));
  pthread_mutex_t taken = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;  // the C library notes in it who has it
  (void)::pthread_mutex_lock(&taken);
  const std::int32_t owner = taken.__data.__owner;
  (void)::pthread_mutex_unlock(&taken);
  return owner;
}

/// make_room() on a stack that is large enough.
bool make_room_here(ThreadPart*& part) {
  const runtime::ErrnoKept kept;
  Undisturbed undisturbed;
  part = undisturbed.part();
  if (step_in(part->step) == Step::claiming) {  // a signal handler that has interrupted a claim
    if (part->header != nullptr) ++part->header->lost_calls;
    if (++part->lost_in_claim < most_lost_in_claim) return false;
    forget_unbegun_calls(*part);
    part->step = 0;
    return false;
  }
  part->lost_in_claim = 0;
  if (part->limit != 0) {
    if (part->used < part->limit) return true;
    part->used = part->limit;
    if (part->header->slot_capacity == first_slots && grow(*part)) return true;
    pack_slots(*part);
    return part->used < part->limit;
  }
  begin_process();
  ThreadPart* const made = make_part();
  if (made == nullptr) {
    const int failure = errno;
    undisturbed.set_part(part = &failed_part);
    say_that_no_part_was_made(failure);
    count_unrecorded();
    return false;
  }
  made->header->tid = thread_id();
  made->header->is_closed = state->is_ending ? 1 : 0;
  made->limit = made->header->slot_capacity;
  undisturbed.set_part(part = made);
  if (made->header->tid != made->header->pid) (void)::pthread_setspecific(thread_end, made);
  return true;
}

}  // namespace

bool is_on_handlers_stack() {
  stack_t other{};
  if (::sigaltstack(nullptr, &other) != 0) return false;
  return (other.ss_flags & SS_ONSTACK) != 0 || (hides_handlers_stack && (other.ss_flags & SS_DISABLE) != 0);
}

bool make_room(ThreadPart*& part) {
  part = this_part;
  if (part == &busy_part) ++calls_meanwhile;
  if (part == &busy_part) return false;
  if (state == nullptr) return false;
  if (part == &failed_part && !is_time_to_try()) {
    count_unrecorded();
    return false;
  }
  if (!is_on_handlers_stack()) return make_room_here(part);
  bool is_made = false;  // packing takes more than a signal handler's stack may have
  return runtime::run_isolated([&] { is_made = make_room_here(part); }) && is_made;
}

Undisturbed::Undisturbed() : part_(std::exchange(this_part, &busy_part)) {}
Undisturbed::~Undisturbed() {
  this_part = part_;
  const std::uint32_t lost = std::exchange(calls_meanwhile, 0);
  if (lost != 0 && part_->header != nullptr) part_->header->lost_calls += lost;
}

void drop_left_calls(ThreadPart& part, std::uint32_t& call) {
  if (is_on_handlers_stack()) return;
  const SignalsLater later;
  const OpenCall newest = part.open[call];
  while (call > 0 && part.open[call - 1].stack <= newest.stack) abandon(part.open[--call]);
  part.open[call] = newest;
  part.depth = call + 1;
}

StepOfCall interrupted_step(ThreadPart& part, const void* stack) {
  const StepOfCall step = part.step;
  if (is_on_handlers_stack()) return step;
  if (step > reinterpret_cast<std::uintptr_t>(stack)) return step;
  const SignalsLater later;
  forget_unbegun_calls(part);
  return part.step = 0;
}

void end_moved(ThreadPart& part, std::uint32_t depth, std::uint32_t id, std::uint64_t end) {
  const OpenCall& call = part.open[depth];
  const bool is_packed = call.id != id || call.slot->id != id || call.slot->start == 0;
  if (!is_packed && call.slot->end == 0) call.slot->end = end;
}

bool is_first_to_say(std::string_view what) {
  std::array<char, 32> name{};
  std::ranges::copy(std::string_view(".said."), name.begin());
  std::ranges::copy(what.substr(0, name.size() - 7), name.begin() + 6);
  const runtime::ErrnoKept kept;
  const long directory = ::syscall(SYS_openat, AT_FDCWD, trace_directory.data(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  const long fd =
      ::syscall(SYS_openat, directory, name.data(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool is_said = fd < 0 && errno == EEXIST;
  if (fd >= 0) ::syscall(SYS_close, fd);
  if (directory >= 0) ::syscall(SYS_close, directory);
  return !is_said;
}

NameCache& names_of(ThreadPart& part) { return memory_of(part).names; }
ChainCache& chains_of(ThreadPart& part) { return memory_of(part).chains; }
PlaceCache& places_of(ThreadPart& part) { return memory_of(part).places; }

void* map_emptied_at_fork(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (::madvise(mapped, bytes, MADV_WIPEONFORK) == 0) return mapped;
  ::munmap(mapped, bytes);
  return nullptr;
}

std::uint32_t next_file_id() { return state->files.fetch_add(1, std::memory_order_relaxed) + 1; }
std::uint32_t next_path_id() { return state->paths.fetch_add(1, std::memory_order_relaxed) + 1; }

void add_chunk(ThreadPart& part, ChunkKind kind, const void* head, std::size_t head_bytes, const void* rest,
               std::size_t rest_bytes) {
  const std::size_t whole = chunk_bytes(head_bytes + rest_bytes);
  const auto put = [&](std::byte* at) {
    put_chunk(kind, {static_cast<const std::byte*>(head), head_bytes}, {static_cast<const char*>(rest), rest_bytes},
              at);
  };
  constexpr std::size_t room = page_bytes - pending_offset;
  if (part.pending + whole > room) append_pending(part);
  if (whole > room) {
    const UsedPacking packing;
    if (packing && whole <= packing->packed.size()) {
      put(packing->packed.data());
      if (append_chunks(part, packing->packed.data(), whole)) return;
    }
    ++part.header->lost_names;
    return;
  }
  std::byte* const at = pending_of(part) + part.pending;
  if (part.pending + whole + sizeof(ChunkHeader) <= room) std::memset(at + whole, 0, sizeof(ChunkHeader));
  put(at);
  part.pending += static_cast<std::uint32_t>(whole);
}

bool start_parts(std::string_view directory, bool in_microseconds) {
  trace_directory = directory;
  keeps_microseconds = in_microseconds;
  unrecorded = map_unrecorded();  // later there may be no descriptor for it
  void* const memory = map_emptied_at_fork(page_bytes + part_memory_bytes);
  if (memory == nullptr || ::pthread_key_create(&thread_end, end_thread) != 0) {
    say_that_process_is_not_traced(memory == nullptr ? ENOMEM : EAGAIN);
    return false;
  }
  first_memory = static_cast<std::byte*>(memory) + page_bytes;
  state = new (memory) ProcessState{};
  know_process();
  return true;
}

bool is_in_memory_of_parent() {
  if (state == nullptr || !is_stray_child()) return false;
  const std::int32_t owner = state->pid;
  return owner != 0 && owner != ::getpid();
}

void begin_after_fork() {
  if (state != nullptr) know_process();
  unused_number = 0;
  if (this_part == &failed_part) this_part = &no_part;
}

[[gnu::hot]] void mark_parts(bool are_closed) {
  if (state == nullptr) return;
  if (is_in_memory_of_parent()) return;  // which goes on
  state->is_ending = are_closed;
  if (state->process == 0) return;
  const ClockPair clock = read_clocks();
  for (ThreadPart* part = state->all; part != nullptr; part = part->next) {
    part->header->is_closed = are_closed ? 1 : 0;
    part->header->latest = clock;
  }
}

}  // namespace iosig::preload::trace
