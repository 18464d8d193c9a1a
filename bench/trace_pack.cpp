// How long trace/pack takes a call, and how many bytes; for streams as recorders see them. The CPU time of this thread,
// the median of repetitions.
//
//     bench_trace_pack
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "iosig/trace/pack.h"

using namespace iosig::trace;

namespace {

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

using Random = std::mt19937_64;

std::vector<Slot> stream(double duration_ns, unsigned files, const std::function<std::int64_t(Random&, int)>& offset) {
  Random random(1);
  std::lognormal_distribution<double> spread(0, 0.1);
  std::vector<Slot> slots(max_slots);
  std::uint64_t now = 26'000'000'000'000;
  const auto pass = [&](double ns) { return now += static_cast<std::uint64_t>(ns * spread(random) / 10) * 26; };
  for (std::uint32_t n = 0; n < max_slots; ++n) {
    Slot& slot = slots[n];
    slot.start = pass(50);
    slot.end = pass(duration_ns);
    slot.length = slot.result = 4096;
    slot.offset = offset(random, static_cast<int>(n));
    slot.id = n + 1;
    slot.file = 1 + static_cast<std::uint32_t>(files == 1 ? 0 : random() % files);
    slot.fd = static_cast<std::int32_t>(2 + slot.file);
    slot.call = Call::pread;
  }
  return slots;
}

/// Processor time of a call in nanoseconds, median of many blocks; sets the bytes of a block.
double pack_ns(const std::vector<Slot>& slots, const PackOptions& options, std::size_t& bytes) {
  const auto memory = std::make_unique<PackMemory>();
  std::vector<std::byte> out(max_packed_bytes);
  std::vector<double> each;
  for (int repetition = 0; repetition < 301; ++repetition) {
    const double start = cpu_ns();
    for (int n = 0; n < 10; ++n) bytes = pack(slots, 1, 0, {1, 2}, options, *memory, out);
    each.push_back((cpu_ns() - start) / 10 / static_cast<double>(slots.size()));
  }
  std::nth_element(each.begin(), each.begin() + 150, each.end());
  return each[150];
}

void measure(const char* name, const std::vector<Slot>& slots, std::uint64_t quantum) {
  fmt::print("{:<28}", name);
  for (const bool has_sums : {false, true}) {
    std::size_t bytes = 0;
    const double ns = pack_ns(slots, {.quantum_ticks = quantum, .has_sums = has_sums}, bytes);
    fmt::print("{} {:6.1f} ns {:5.2f} bytes a call", has_sums ? ", with sums" : "", ns,
               static_cast<double>(bytes) / static_cast<double>(slots.size()));
  }
  fmt::print("\n");
}

}  // namespace

int main() {
  const auto regular = [](Random&, int n) { return std::int64_t{n} * 4096; };
  const auto in_64MB = [](Random& random, int) { return static_cast<std::int64_t>(random() % (1 << 14)) * 4096; };
  const auto in_1TB = [](Random& random, int) { return static_cast<std::int64_t>(random() % (1ULL << 40)); };
  measure("regular, cached", stream(300, 1, regular), 0);
  measure("regular, device", stream(80'000, 1, regular), 0);
  measure("random in 64 MB, cached", stream(700, 1, in_64MB), 0);
  measure("random in 1 TB, cached", stream(700, 1, in_1TB), 0);
  measure("8 files in any order", stream(300, 8, regular), 0);
  measure("regular, cached, 1 us", stream(300, 1, regular), 2600);
  measure("regular, device, 1 us", stream(80'000, 1, regular), 2600);
}
