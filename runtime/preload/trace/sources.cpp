#include "preload/trace/sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "host/diagnostics.h"
#include "host/run_isolated.h"
#include "host/unseen_process.h"
#include "lines/code_table.h"
#include "preload/trace/process_facts.h"
#include "preload/trace/recorder.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {

constinit bool has_sources = false;

namespace {

using lines::CodeRange;
using lines::CodeTableHeader;

/// The code of the process, as iosig-lines found it. Never freed: other threads may read it.
struct Code {
  const CodeRange* mapped;
  const CodeRange* selected;
  const char* texts;
  CodeTableHeader header;
};

/// In a page that fork() empties: the child's other threads, one of which may have been reading, are gone.
struct Reading {
  std::atomic<bool> is_taken;
  std::uint32_t runs;
};

constexpr std::uint32_t max_runs = 64;  ///< a program that makes ever new code (a JIT) is not asked about for ever
constexpr int max_walked_frames = 1000;
constexpr std::size_t max_table_bytes = std::size_t{1} << 28;
/// Stack that the unwinder needs, with reserve: a signal handler may run on a small one.
constexpr std::uintptr_t walk_bytes = 6144;

std::atomic<const Code*> known_code{nullptr};
Reading* reading = nullptr;
const char* reader_path = nullptr;
const char* source_texts = nullptr;

bool is_in(const CodeRange* ranges, std::uint32_t count, std::uintptr_t address) {
  const CodeRange* const behind = std::upper_bound(
      ranges, ranges + count, address, [](std::uintptr_t at, const CodeRange& range) { return at < range.begin; });
  return behind != ranges && address < behind[-1].end;
}

bool read_all(int fd, void* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const long got = ::syscall(SYS_read, fd, static_cast<char*>(bytes) + done, count - done);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

void* map_memory(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

/// Reads what the reader prints; null: that is no table.
const Code* read_code(int fd) {
  CodeTableHeader header{};
  if (!read_all(fd, &header, sizeof header) || header.magic != lines::table_magic) return nullptr;
  const std::size_t bytes =
      (std::size_t{header.mapped} + header.selected) * sizeof(CodeRange) + header.facts_bytes + header.message_bytes;
  if (bytes > max_table_bytes) return nullptr;
  auto* const memory = static_cast<std::byte*>(map_memory(sizeof(Code) + bytes));
  if (memory == nullptr || !read_all(fd, memory + sizeof(Code), bytes)) return nullptr;
  auto* const ranges = reinterpret_cast<const CodeRange*>(memory + sizeof(Code));
  return new (memory) Code{.mapped = ranges,
                           .selected = ranges + header.mapped,
                           .texts = reinterpret_cast<const char*>(ranges + header.mapped + header.selected),
                           .header = header};
}

/// Runs iosig-lines, unseen by the program.
const Code* run_reader() {
  char pid[16];
  std::size_t digits = 0;
  for (auto rest = static_cast<unsigned>(::getpid()); rest > 0; rest /= 10)
    pid[digits++] = static_cast<char>('0' + rest % 10);
  std::reverse(pid, pid + digits);
  pid[digits] = '\0';
  int ends[2];
  if (::syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return nullptr;
  const char* const words[] = {reader_path, pid, source_texts, nullptr};
  const char* const no_environment[] = {nullptr};
  const runtime::UnseenProcess reader(
      {.words = words, .environment = no_environment, .output = ends[1], .is_awaited = true});
  ::syscall(SYS_close, ends[1]);
  const Code* const code = reader ? read_code(ends[0]) : nullptr;
  ::syscall(SYS_close, ends[0]);
  return code;
}

std::uint64_t fnv_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return hash;
}

/// Returns 16 digits, ended by NUL.
std::array<char, 17> hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  for (std::size_t n = 16; n-- > 0; number >>= 4) text[n] = "0123456789abcdef"[number & 15];
  return text;
}

/// The trace and the user get to know what was found.
void publish(const Code& code, ThreadPart& part, bool is_first) {
  if (code.header.facts_bytes > 0)
    add_chunk(part, iosig::trace::ChunkKind::process, nullptr, 0, code.texts, code.header.facts_bytes);
  if (!is_first || code.header.message_bytes == 0 || !is_first_rank()) return;
  const std::string_view message(code.texts + code.header.facts_bytes, code.header.message_bytes);
  // Of a program that is started a thousand times it is said once.
  if (!is_first_to_say(hexadecimal(fnv_hash(message)).data())) return;
  (void)runtime::run_isolated([&] { runtime::say(message); });
}

/// Asks about the program's code again, unless another thread has done so since `before`.
void learn_code(const Code* before, ThreadPart& part) {
  const Undisturbed undisturbed;
  while (reading->is_taken.exchange(true, std::memory_order_acquire)) {
    const timespec moment{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::syscall(SYS_nanosleep, &moment, nullptr);
  }
  if (known_code.load(std::memory_order_acquire) == before && reading->runs < max_runs) {
    const bool is_first = reading->runs++ == 0;
    if (const Code* const code = run_reader(); code != nullptr) {
      known_code.store(code, std::memory_order_release);
      publish(*code, part, is_first);
    } else {
      reading->runs = max_runs;
      if (is_first_to_say("no-reader"))
        (void)runtime::run_isolated([] {
          runtime::say(
              fmt::format("tracing fails in this process: cannot run '{}', which finds the code of --source; the "
                          "program goes on",
                          reader_path));
        });
    }
  }
  reading->is_taken.store(false, std::memory_order_release);
}

struct Walk {
  const Code* code;
  const std::uintptr_t* place;  ///< of the return address before
  Chain* chain;                 ///< that is noted; null: none
  int frames = 0;
  bool is_selected = false, meets_unknown_code = false;
};

#if defined(__x86_64__)
/// Notes the words by which a frame leads to the next one: its return address, and what the size of its caller's frame
/// may depend on, the frame pointer that it has saved, or its own end (realigned stacks). Their places are not known,
/// but each word near the frame's end that is equal to one may be it.
[[gnu::no_sanitize("address")]] void note_frame(Chain& chain, const std::uintptr_t* last, const std::uintptr_t* place,
                                                std::uintptr_t frame_pointer) {
  constexpr std::ptrdiff_t noted_words = 64;
  const auto end = reinterpret_cast<std::uintptr_t>(place + 1);
  for (const auto* word = std::max(last + 1, place - noted_words); word < place; ++word)
    if (*word == frame_pointer || *word == end) chain.note(word, *word);
  chain.note(place, *place);
}
#endif

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  int is_interrupted = 0;  // the frame that a signal handler has interrupted
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_interrupted);
  if (address == 0 || ++walk.frames > max_walked_frames) return _URC_END_OF_STACK;
#if defined(__x86_64__)
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const place = reinterpret_cast<const std::uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  if (place <= walk.place) return _URC_NO_REASON;  // this file's own
  if (is_interrupted != 0) walk.chain = nullptr;
  constexpr int rbp = 6;
  if (walk.chain != nullptr) note_frame(*walk.chain, walk.place, place, _Unwind_GetGR(context, rbp));
  walk.place = place;
#else
  walk.chain = nullptr;  // return addresses have no known places
#endif
  const std::uintptr_t call = is_interrupted != 0 ? address : address - 1;
  if (walk.code != nullptr && is_in(walk.code->selected, walk.code->header.selected, call)) {
    walk.is_selected = true;
    return _URC_END_OF_STACK;
  }
  if (walk.code == nullptr || !is_in(walk.code->mapped, walk.code->header.mapped, call)) walk.meets_unknown_code = true;
  return _URC_NO_REASON;
}

/// Whether the stack is the one of the chain. It reads innermost words first: they say that the next ones are there.
[[gnu::no_sanitize("address")]] bool is_same(const Chain& chain, const void* frame) {
  if (chain.frame != frame) return false;
  for (std::uint32_t n = 0; n < chain.words; ++n)
    if (*chain.places[n] != chain.values[n]) return false;
  return true;
}

std::size_t set_of(const void* frame) {
  return (reinterpret_cast<std::uintptr_t>(frame) >> 4) * 0x9e3779b97f4a7c15 >> 58 & (ChainCache::sets - 1);
}

/// Whether a signal handler's own stack has no room for a walk.
bool is_on_small_stack(const void* frame) {
  stack_t other{};
  return ::sigaltstack(nullptr, &other) == 0 && (other.ss_flags & SS_ONSTACK) != 0 &&
         reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(other.ss_sp) < walk_bytes;
}

[[gnu::noinline]] bool walk_stack(ThreadPart& part, ChainCache& cache, const void* frame) {
  const runtime::ErrnoKept kept;
  if (is_on_small_stack(frame)) {
    ++part.header->lost_calls;
    return false;
  }
  const bool is_noted = !cache.is_walking;
  if (is_noted) cache.is_walking = true;
  Walk walk{};
  for (bool is_again : {false, true}) {
    if (is_again) {
      if (!walk.meets_unknown_code) break;
      learn_code(walk.code, part);
      if (known_code.load(std::memory_order_acquire) == walk.code) break;
    }
    walk = {.code = known_code.load(std::memory_order_acquire),
            .place = static_cast<const std::uintptr_t*>(frame),
            .chain = is_noted ? &cache.walked : nullptr};
    if (is_noted) {
      cache.walked.words = 0;
      cache.walked.note(walk.place, *walk.place);  // the frame pointer
    }
    (void)_Unwind_Backtrace(visit, &walk);
    if (walk.is_selected) break;
  }
  if (walk.chain != nullptr && walk.chain->words <= walk.chain->places.size()) {
    const std::size_t set = set_of(frame);
    Chain& kept_chain = cache.chains[set][cache.next[set]++ % ChainCache::ways];
    ++cache.changes;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    kept_chain.frame = nullptr;
    kept_chain.words = cache.walked.words;
    kept_chain.is_selected = walk.is_selected;
    std::copy_n(cache.walked.places.begin(), cache.walked.words, kept_chain.places.begin());
    std::copy_n(cache.walked.values.begin(), cache.walked.words, kept_chain.values.begin());
    std::atomic_signal_fence(std::memory_order_seq_cst);
    kept_chain.frame = frame;
  }
  if (is_noted) cache.is_walking = false;
  return walk.is_selected;
}

}  // namespace

[[gnu::hot]] void set_sources(std::string_view reader, std::string_view lines) {
  if (lines.empty()) return;
  has_sources = true;
  reading = static_cast<Reading*>(map_emptied_at_fork(sizeof(Reading)));
  reader_path = reader.data();
  source_texts = lines.data();
  (void)_Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);  // it prepares itself
}

[[gnu::noinline]] bool is_called_from_sources() {
  ThreadPart* part = this_part;
  if (reading == nullptr || (part->limit == 0 && !make_room(part))) return false;
  const void* const frame = __builtin_frame_address(0);
  ChainCache& cache = chains_of(*part);
  const std::uint32_t changes = cache.changes;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (const Chain& each : cache.chains[set_of(frame)]) {
    if (!is_same(each, frame)) continue;
    const bool is_selected = each.is_selected;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (cache.changes == changes) return is_selected;
    break;  // a signal handler has replaced it meanwhile
  }
  return walk_stack(*part, cache, frame);
}

}  // namespace iosig::preload::trace
