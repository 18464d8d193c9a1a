// Packs slots (64 bytes each, on stdin) as chunks of up to 576 calls, for tests/cli/test_trace_format.py.
#include <cstdio>
#include <memory>
#include <vector>

#include "iosig/trace/pack.h"

using namespace iosig::trace;

int main() {
  const auto memory = std::make_unique<PackMemory>();
  std::vector<std::byte> packed(max_packed_bytes);
  std::vector<Slot> slots(max_slots);
  for (std::size_t count = 0; (count = std::fread(slots.data(), sizeof(Slot), max_slots, stdin)) > 0;)
    std::fwrite(packed.data(), 1, pack({slots.data(), count}, 77, 0, {2000, 5000}, {.has_sums = true}, *memory, packed),
                stdout);
  return 0;
}
