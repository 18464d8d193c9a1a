// What a decision costs: reading a description, choosing with a warm one, and the hint before an open.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <iosig/iosig.h>

#include "iosig/base/files.h"
#include "iosig/decide/placement.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/storage_toml.h"

namespace {

using namespace iosig;

constexpr const char* signature_words = "persist random size-per-IO(512KB) totalsize(1GB)";
const std::string table2 = IOSIG_TEST_DATA "/paper-table2.toml";

void parse_description(benchmark::State& state) {
  const auto text = read_file(table2);
  for (auto _ : state) benchmark::DoNotOptimize(parse_storage(*text, table2));
}
BENCHMARK(parse_description);

void parse_and_choose(benchmark::State& state) {
  const auto storage = parse_storage(*read_file(table2), table2);
  for (auto _ : state) benchmark::DoNotOptimize(choose_mount_point(*parse_signature(signature_words), *storage));
}
BENCHMARK(parse_and_choose);

// The common case of a hint: the file is there already, so there is nothing to decide.
void hint_for_an_existing_file(benchmark::State& state) {
  for (auto _ : state) iosig_open_hint(AT_FDCWD, table2.c_str(), O_CREAT | O_WRONLY, signature_words);
}
BENCHMARK(hint_for_an_existing_file);

}  // namespace

BENCHMARK_MAIN();
