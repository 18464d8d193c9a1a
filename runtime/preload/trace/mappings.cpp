#include "preload/trace/mappings.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

namespace iosig::preload::trace {
namespace {

/// Addresses from `begin` to before `end` are the file's bytes from `offset` on. Unused: `begin` equals `end`.
struct Mapping {
  std::uintptr_t begin, end;
  std::int64_t offset;
  std::uint32_t file;
};

constinit std::array<Mapping, 256> mappings{};
/// Entries that may be in use come first.
constinit std::size_t used = 0;
constinit std::atomic<bool> is_taken{false};

/// Calls `use` alone; not at all if another thread is at it for long, or this thread, which a signal handler has
/// interrupted.
template <class Use>
void alone(const Use& use) {
  constexpr int quick_tries = 100, tries = 1000;
  for (int n = 0; n < tries; ++n) {
    if (!is_taken.exchange(true, std::memory_order_acquire)) {
      use();
      is_taken.store(false, std::memory_order_release);
      return;
    }
    if (n >= quick_tries) ::sched_yield();  // the thread that has it waits for a processor
  }
}

std::uintptr_t number_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

void put(const Mapping& mapping) {
  auto* const place =
      std::find_if(mappings.begin(), mappings.end(), [](const Mapping& each) { return each.begin == each.end; });
  if (place == mappings.end()) return;
  *place = mapping;
  used = std::max(used, static_cast<std::size_t>(place - mappings.begin()) + 1);
}

/// Takes the addresses out of all mappings. One that is cut in the middle becomes two.
void cut(std::uintptr_t begin, std::uintptr_t end) {
  for (std::size_t n = 0; n < used; ++n) {
    Mapping& each = mappings[n];
    if (each.begin == each.end || end <= each.begin || each.end <= begin) continue;
    const Mapping whole = each;
    each.end = std::max(each.begin, begin);
    if (end < whole.end)
      put({.begin = end,
           .end = whole.end,
           .offset = whole.offset + static_cast<std::int64_t>(end - whole.begin),
           .file = whole.file});
  }
}

/// The kernel maps and unmaps whole pages.
std::uintptr_t end_of(const void* at, std::size_t length) {
  return (number_of(at) + length + iosig::trace::page_bytes - 1) / iosig::trace::page_bytes * iosig::trace::page_bytes;
}

}  // namespace

void mapped(const void* at, std::size_t length, const Subject& subject, std::int64_t offset) {
  if (subject.is_left_out) return unmapped(at, length);
  alone([&] {
    cut(number_of(at), end_of(at, length));
    put({.begin = number_of(at), .end = end_of(at, length), .offset = offset, .file = subject.file});
  });
}

void unmapped(const void* at, std::size_t length) {
  if (used == 0) return;
  alone([&] { cut(number_of(at), end_of(at, length)); });
}

Subject subject_at(const void* at, std::size_t length) {
  Subject found{.is_left_out = true};
  if (used == 0) return found;
  ThreadPart* part = this_part;
  if (part->limit == 0 && !make_room(part)) return found;  // in a child this forgets what its parent has mapped
  alone([&] {
    const Mapping* first = nullptr;
    const std::uintptr_t begin = number_of(at), end = begin + length;
    for (std::size_t n = 0; n < used; ++n) {
      const Mapping& each = mappings[n];
      if (each.begin < each.end && begin < each.end && each.begin < end &&
          (first == nullptr || each.begin < first->begin))
        first = &each;
    }
    if (first == nullptr) return;
    const std::uintptr_t from = std::max(begin, first->begin), to = std::min(end, first->end);
    found = {.offset = first->offset + static_cast<std::int64_t>(from - first->begin),
             .length = static_cast<std::int64_t>(to - from),
             .file = first->file};
  });
  return found;
}

void forget_mappings() {
  std::fill_n(mappings.begin(), std::exchange(used, 0), Mapping{});
  is_taken = false;
}

}  // namespace iosig::preload::trace
