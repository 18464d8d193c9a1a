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
  for (auto _ : state) benchmark::DoNotOptimize(choose_mount_point(*parse_signature(signature_words), *storage, {}));
}
BENCHMARK(parse_and_choose);

// The common case of a hint: the file is there already, so there is nothing to decide.
void hint_for_an_existing_file(benchmark::State& state) {
  for (auto _ : state) iosig_open_hint(AT_FDCWD, table2.c_str(), O_CREAT | O_WRONLY, signature_words);
}
BENCHMARK(hint_for_an_existing_file);

/// A home, a state directory and a description whose best mount point is a directory in /dev/shm; `redirected` leads
/// there already. The process reads them once, so there is one for all benchmarks.
struct World {
  static std::string in_temporary_directory() {
    const char* const named = std::getenv("TMPDIR");
    return std::string(named != nullptr ? named : "/tmp") + "/iosig-bench-XXXXXX";
  }
  std::string home = in_temporary_directory(), fast = "/dev/shm/iosig-bench-XXXXXX", redirected;
  bool works = ::mkdtemp(home.data()) != nullptr && ::mkdtemp(fast.data()) != nullptr;

  World() {
    const std::string description = home + "/storage.toml";
    redirected = home + "/redirected";
    works = works && replace_file(description, fmt::format("schema = \"iosig.storage/1\"\n[[mount_point]]\n"
                                                           "path = \"{}\"\ndevice = \"ram\"\n"
                                                           "[[device]]\nname = \"ram\"\nkind = \"ram\"\n",
                                                           fast));
    ::setenv("IOSIG_STORAGE", description.c_str(), 1);
    ::setenv("IOSIG_STATE", home.c_str(), 1);
    works = works && iosig_redirect(redirected.c_str(), "temp random") == 1 && replace_through(redirected);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    if (redirected.empty()) return;
    std::error_code ignored;
    std::filesystem::remove_all(home, ignored);
    std::filesystem::remove_all(fast, ignored);
  }
  static bool replace_through(const std::string& path) {
    return Fd(::open(path.c_str(), O_CREAT | O_WRONLY, 0600)).get() >= 0;
  }
};

World& world() {
  static World only;
  return only;
}

// The path was decided before, by this process or another.
void hint_for_a_redirected_file(benchmark::State& state) {
  if (!world().works) return state.SkipWithError(iosig_last_error());
  for (auto _ : state) iosig_open_hint(AT_FDCWD, world().redirected.c_str(), O_CREAT | O_WRONLY, signature_words);
}
BENCHMARK(hint_for_a_redirected_file);

// All of it, description warm: statvfs, choice, journal entry, link. With a totalsize also the reservation of room,
// which is dropped with the process.
void redirect_new_files(benchmark::State& state, const char* signature) {
  if (!world().works) return state.SkipWithError(iosig_last_error());
  static int file = 0;
  for (auto _ : state) iosig_redirect(fmt::format("{}/out{}", world().home, ++file).c_str(), signature);
}
BENCHMARK_CAPTURE(redirect_new_files, without_totalsize, "temp random")->Iterations(5000);
BENCHMARK_CAPTURE(redirect_new_files, with_totalsize, "temp random totalsize(4KB)")->Iterations(500);

}  // namespace

BENCHMARK_MAIN();
