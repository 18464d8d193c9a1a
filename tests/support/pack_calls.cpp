// Packs slots (64 bytes each, on stdin) as chunks of up to 576 calls, for tests/cli/test_trace_format.py. Fails with
// status 1 if packing allocates memory, also at first.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "iosig/trace/pack.h"

using namespace iosig::trace;

namespace {
std::size_t allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes); memory != nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main() {
  const auto memory = std::make_unique<PackMemory>();
  std::vector<std::byte> packed(max_packed_bytes);
  std::vector<Slot> slots(max_slots);
  const std::size_t before = allocations;
  for (std::size_t count = 0; (count = std::fread(slots.data(), sizeof(Slot), max_slots, stdin)) > 0;)
    std::fwrite(packed.data(), 1, pack({slots.data(), count}, 77, 0, {2000, 5000}, {.has_sums = true}, *memory, packed),
                stdout);
  return allocations == before ? 0 : 1;
}
