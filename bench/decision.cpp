// What a decision costs: reading a description, choosing with a warm one, and the hint before an open.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <iosig/iosig.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

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

// All of it, description warm: statvfs, choice, journal entry, link. Home and state lie in /tmp, the best mount point
// is /dev/shm.
void redirect_a_new_file(benchmark::State& state) {
  std::string home = "/tmp/iosig-bench-XXXXXX";
  if (::mkdtemp(home.data()) == nullptr) return state.SkipWithError("cannot make a folder in /tmp");
  const std::string description = home + "/storage.toml", path = home + "/out";
  const auto written =
      replace_file(description,
                   "schema = \"iosig.storage/1\"\n[[mount_point]]\npath = \"/dev/shm\"\ndevice = \"ram\"\n"
                   "[[device]]\nname = \"ram\"\nkind = \"ram\"\n");
  ::setenv("IOSIG_STORAGE", description.c_str(), 1);
  ::setenv("IOSIG_STATE", home.c_str(), 1);
  if (!written || iosig_redirect(path.c_str(), "random") != 1) state.SkipWithError(iosig_last_error());
  int file = 0;
  for (auto _ : state) iosig_redirect(fmt::format("{}/out{}", home, ++file).c_str(), "random");
  std::filesystem::remove_all(home);
}
BENCHMARK(redirect_a_new_file)->Iterations(5000);

}  // namespace

BENCHMARK_MAIN();
