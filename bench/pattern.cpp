// What a description costs: time and bytes for each access of made-up workloads, by our detector, the paper's Algorithm
// 1 and zstd over the raw records, as they are and as differences from the record before.
//
//     build/bin/bench_pattern [NAME...]
//
// Times are CPU time, the best of several runs, input in memory; zstd's are those of the command `zstd -3`, started and
// reading included. A record is 4 integers of 8 bytes: logical, length, physical, id.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/model/pattern_cursor.h"

namespace {

using namespace iosig;

constexpr std::uint32_t columns = 4;
constexpr std::int64_t accesses = 1'000'000;

struct Workload {
  std::string name;
  std::vector<std::int64_t> records;

  void add(std::int64_t logical, std::int64_t length) {
    records.insert(records.end(), {logical, length, physical_, 3});
    physical_ += length;
  }
  [[nodiscard]] double count() const { return static_cast<double>(records.size()) / columns; }

 private:
  std::int64_t physical_ = 0;
};

template <class Add>
Workload workload(const char* name, Add add) {
  Workload made;
  made.name = name;
  add(made);
  return made;
}

std::vector<Workload> workloads() {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random() % bound); };
  const auto box = [](Workload& w, std::int64_t fourth, std::int64_t third) {
    for (std::int64_t a = 0; a < fourth; ++a)
      for (std::int64_t z = 0; z < third; ++z)
        for (std::int64_t y = 0; y < 24; ++y)
          for (std::int64_t x = 0; x < 8; ++x)
            w.add(a * 1'000'000'000'000 + z * 99'999'999 + y * 204'800 + x * 1024, 512);
  };
  const auto few = [&](const char* name, std::uint64_t values) {
    return workload(name, [&](Workload& w) {
      for (std::int64_t i = 0; i < accesses; ++i) w.add(65536 * below(values), 4096);
    });
  };
  return {
      workload("strided",
               [&](Workload& w) {
                 for (std::int64_t i = 0; i < accesses; ++i) w.add(32768 * i, 4096);
               }),
      workload("2-d",
               [&](Workload& w) {
                 for (std::int64_t y = 0; y < accesses / 16; ++y)
                   for (std::int64_t x = 0; x < 16; ++x) w.add(524288 * y + 4096 * x, 1024);
               }),
      workload("3-d", [&](Workload& w) { box(w, 1, 5208); }),
      workload("4-d", [&](Workload& w) { box(w, 100, 52); }),
      workload("tree of Fig. 18",
               [&](Workload& w) {
                 for (std::int64_t k = 0; k < accesses / 27; ++k) {
                   for (int i = 0; i < 9; ++i) w.add(1'000'000 * k + 10 * i, 4);
                   for (int i = 0; i < 5; ++i) w.add(1'000'000 * k + 50'000 + 77 * i, 8);
                   for (int i = 0; i < 13; ++i) w.add(1'000'000 * k + 90'000 + 1000 * i, 100);
                 }
               }),
      workload("triangle",
               [&](Workload& w) {
                 for (std::int64_t i = 0; i < 1414; ++i)
                   for (std::int64_t j = 0; j < i; ++j) w.add(1'000'000 * i + 8 * j, 8);
               }),
      workload("rank map",
               [&](Workload& w) {
                 for (std::int64_t m = 0; m < 1000; ++m)
                   for (std::int64_t i = 0; i < 1000; ++i) w.add((i + m) % 1000 * 4096, 4096);
               }),
      workload("1 % noise",
               [&](Workload& w) {
                 for (std::int64_t i = 0; i < accesses; ++i)
                   w.add(below(100) == 0 ? below(1ull << 40) : 32768 * i, 4096);
               }),
      workload("2-d, 1 % noise",
               [&](Workload& w) {
                 for (std::int64_t y = 0; y < accesses / 16; ++y)
                   for (std::int64_t x = 0; x < 16; ++x)
                     w.add(below(100) == 0 ? below(1ull << 40) : 524288 * y + 4096 * x, 1024);
               }),
      few("2 offsets", 2),
      few("8 offsets", 8),
      few("64 offsets", 64),
      workload("4 lengths",
               [&](Workload& w) {
                 for (std::int64_t i = 0, at = 0; i < accesses; ++i) {
                   const std::int64_t length = 512 << below(4);
                   w.add(at, length);
                   at += length;
                 }
               }),
      workload("random",
               [&](Workload& w) {
                 for (std::int64_t i = 0; i < accesses; ++i) w.add(below(1ull << 40), below(1u << 17));
               }),
  };
}

double cpu_s(int who) {
  rusage used{};
  ::getrusage(who, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

struct Cost {
  double s = 1e9, bytes = 0;
};

template <class Describe>
Cost described(const Workload& work, int runs, Describe describe) {
  Cost cost;
  for (int run = 0; run < runs; ++run) {
    const double start = cpu_s(RUSAGE_SELF);
    const Pattern pattern = describe(std::span<const std::int64_t>(work.records));
    cost.s = std::min(cost.s, cpu_s(RUSAGE_SELF) - start);
    cost.bytes = static_cast<double>(pattern_bytes(pattern).size());
    if (run == 0 && *expanded(pattern) != work.records) {
      fmt::print(stderr, "bench_pattern: {} does not come back\n", work.name);
      std::exit(1);
    }
  }
  return cost;
}

Cost compressed(const std::vector<std::int64_t>& records) {
  Cost cost;
  std::FILE* raw = std::tmpfile();
  std::fwrite(records.data(), sizeof(records[0]), records.size(), raw);
  std::fflush(raw);
  const double start = cpu_s(RUSAGE_CHILDREN);
  std::FILE* out = ::popen(fmt::format("zstd -q -3 -c </dev/fd/{} | wc -c", ::fileno(raw)).c_str(), "r");
  long long bytes = 0;
  if (out && std::fscanf(out, "%lld", &bytes) == 1) cost.bytes = static_cast<double>(bytes);
  if (out) ::pclose(out);
  cost.s = cpu_s(RUSAGE_CHILDREN) - start;
  std::fclose(raw);
  return cost;
}

std::string cell(const Cost& cost, double count) {
  const double each = cost.bytes / count;
  return fmt::format("{:>7.1f} {:>9} {:>7}", cost.s / count * 1e9, static_cast<long long>(cost.bytes),
                     each < 0.01 ? "" : fmt::format("{:.2f}", each));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  fmt::print("{:<16}{:^26}{:^26}{:^26}{:^26}{:^26}\n{:<16}", "", "nest", "nest, running sum", "paper, window 64",
             "zstd -3", "differences, zstd -3", "");
  for (int n = 0; n < 5; ++n) fmt::print(" {:>7} {:>9} {:>7}", "ns/op", "B", "B/op");
  fmt::print("\n");
  for (const Workload& work : workloads()) {
    if (!wanted.empty() && std::ranges::find(wanted, work.name) == wanted.end()) continue;
    std::vector<std::int64_t> differences = work.records;
    for (std::size_t n = differences.size() - 1; n >= columns; --n) differences[n] -= differences[n - columns];
    DetectOptions nest{.columns = columns}, sums = nest;
    sums.follows[2] = 1;
    const double count = work.count();
    fmt::print(
        "{:<16} {} {} {} {} {}\n", work.name,
        cell(described(work, 5, [&](auto records) { return detect(records, nest); }), count),
        cell(described(work, 5, [&](auto records) { return detect(records, sums); }), count),
        cell(described(work, 1, [&](auto records) { return detect_paper(records, {.columns = columns}); }), count),
        cell(compressed(work.records), count), cell(compressed(differences), count));
    std::fflush(stdout);
  }
}
