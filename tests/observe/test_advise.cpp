#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>

#include "iosig/observe/advise.h"

using namespace iosig;
using namespace iosig::observe;
using trace::Access;
using trace::Call;
using trace::Process;

namespace {

/// Calls that programs make, as a trace has them: each begins 2 ms after the one before and takes 1 ms.
class Calls {
 public:
  Calls() {
    for (std::int32_t pid = 1; pid <= 300; ++pid) {
      processes_[pid].key = static_cast<std::uint64_t>(pid);
      processes_[pid].pid = pid;
    }
    processes_[1].names[77] = "/d/new";
  }
  void call(Call call, std::string_view path, std::int64_t length = 0, std::int64_t result = 0, std::int32_t pid = 1,
            std::int64_t duration_ns = 1'000'000) {
    const Access made{.process = &processes_[pid],
                      .tid = pid,
                      .call = call,
                      .file = 1,
                      .path = path,
                      .second_path = {},
                      .offset = 0,
                      .length = length,
                      .start_ns = now_ns_,
                      .end_ns = now_ns_ + duration_ns,
                      .result = result};
    now_ns_ += 2'000'000;
    facts_.add(made);
    costs_.add(made);
  }
  std::string_view kept(std::string path) { return paths_.emplace_back(std::move(path)); }
  std::map<std::string, StreamCosts> streams() {
    std::map<std::string, StreamCosts> by_path;
    for (StreamCosts& each : std::move(costs_).finish().streams) by_path.emplace(each.path, std::move(each));
    return by_path;
  }
  RunAdvice advice(double min_gain = 0) {
    const TracedRun run{.name = "t", .facts = facts_.finish()};
    return advise(run, std::move(costs_).finish(),
                  {.traces = {"t"},
                   .storing = [](const std::string&) { return std::nullopt; },
                   .choose = [](const std::string&, const std::string&) { return std::nullopt; },
                   .no_gain = "no description"},
                  min_gain);
  }

 private:
  std::map<std::int32_t, Process> processes_;
  std::deque<std::string> paths_;
  FactGatherer facts_;
  CostGatherer costs_;
  std::int64_t now_ns_ = 1'000'000;
};

constexpr std::string_view file = "/d/file", other = "/d/other";

}  // namespace

TEST_CASE("costs: an open is repeated only if the same process had opened the same file, and keeps its content") {
  Calls calls;
  calls.call(Call::open, file, O_RDONLY, 3);
  calls.call(Call::open, file, O_RDONLY, 3, 2);         // another process
  calls.call(Call::open, file, O_RDONLY, 3);            // repeated
  calls.call(Call::open, file, O_WRONLY | O_TRUNC, 3);  // empties it
  calls.call(Call::open, file, O_RDONLY, -ENOENT);      // failed
  calls.call(Call::unlink, file);
  calls.call(Call::open, file, O_WRONLY | O_CREAT, 3);             // another file
  calls.call(Call::open, file, O_WRONLY | O_APPEND | O_CREAT, 3);  // repeated
  const StreamCosts costs = calls.streams().at("/d/file");
  CHECK(costs.opens.calls == 7);
  CHECK(costs.repeated_opens.calls == 2);
  CHECK(costs.repeated_opens.ns == 2'000'000);
}

TEST_CASE("costs: a question is repeated only if no traced call has changed the file or its directory's names") {
  Calls calls;
  calls.call(Call::stat, file);
  calls.call(Call::access, file);            // repeated
  calls.call(Call::write, file, 10, 10, 2);  // by another process
  calls.call(Call::stat, file);
  calls.call(Call::stat, "/d");
  calls.call(Call::stat, "/d");                          // repeated
  calls.call(Call::open, other, O_WRONLY | O_CREAT, 3);  // changes the directory
  calls.call(Call::stat, "/d");
  const auto costs = calls.streams();
  CHECK(costs.at("/d/file").repeated_stats.calls == 1);
  CHECK(costs.at("/d").repeated_stats.calls == 1);
}

TEST_CASE("costs: a sync is idle only if another one has begun after every change and ended before it") {
  Calls calls;
  calls.call(Call::fsync, file);  // what came before the trace is not known
  calls.call(Call::fsync, file);  // idle
  calls.call(Call::write, file, 10, 10);
  calls.call(Call::fsync, file);
  calls.call(Call::write, file, 10, 10, 2, 5'000'000);  // is not over when the next sync begins
  calls.call(Call::fsync, file);
  calls.call(Call::fsync, file);  // so this one may be needed
  calls.call(Call::fsync, file);
  calls.call(Call::fsync, file);           // idle
  calls.call(Call::fsync, file, 0, -EIO);  // failed
  const StreamCosts costs = calls.streams().at("/d/file");
  CHECK(costs.syncs.calls == 8);
  CHECK(costs.idle_syncs.calls == 2);
}

TEST_CASE("advice: the time of a thread counts once, however its calls are nested") {
  Calls calls;
  calls.call(Call::fwrite, file, 10, 10, 1, 3'000'000);  // 0 to 3 ms
  calls.call(Call::write, file, 10, 10, 1, 1'000'000);   // 2 to 3 ms, within it
  calls.call(Call::write, file, 10, 10, 2, 1'000'000);   // another process
  calls.call(Call::read, "/proc/self/stat", 10, 10);     // no storage
  CHECK(calls.advice().io_s == doctest::Approx(0.004));
}

TEST_CASE("advice: what gains too little is counted and left out; a gain that is not known goes by the time") {
  const auto writes = [](int count) {
    Calls calls;
    for (int n = 0; n < count; ++n) calls.call(Call::write, file, 10, 10);
    return calls;
  };
  CHECK(writes(99).advice().advice.empty());  // no habit
  const RunAdvice found = writes(100).advice(1);
  REQUIRE(found.advice.size() == 1);
  CHECK(found.advice[0].topic == Topic::small_writes);
  CHECK_FALSE(found.advice[0].gain.seconds);
  CHECK(found.advice[0].gain.why == "no description");
  CHECK(found.advice[0].time_s == doctest::Approx(0.1));
  CHECK(found.advice[0].behind.count == 100);
}

TEST_CASE("advice: a buffer helps only where one process makes several small accesses while it has the file open") {
  const auto topics = [](auto program) {
    Calls calls;
    program(calls);
    std::vector<Topic> found;
    for (const Advice& each : calls.advice().advice) found.push_back(each.topic);
    return found;
  };
  const auto has = [](const std::vector<Topic>& found, Topic topic) {
    return std::ranges::find(found, topic) != found.end();
  };
  const auto many = topics([](Calls& calls) {  // a small file each
    for (int n = 0; n < 300; ++n) {
      const std::string_view path = calls.kept(fmt::format("/d/f{}", n));
      calls.call(Call::open, path, O_WRONLY | O_CREAT, 3);
      calls.call(Call::write, path, 100, 100);
    }
  });
  CHECK(!has(many, Topic::small_writes));
  CHECK(has(many, Topic::many_files));
  CHECK(has(topics([](Calls& calls) {
              calls.call(Call::open, file, O_WRONLY | O_CREAT, 3);
              for (int n = 0; n < 300; ++n) calls.call(Call::write, file, 100, 100);
            }),
            Topic::small_writes));
  CHECK(!has(topics([](Calls& calls) {  // each write is by another process, which inherited the descriptor
               for (std::int32_t pid = 1; pid <= 300; ++pid) calls.call(Call::write, file, 100, 100, pid);
             }),
             Topic::small_writes));
  CHECK(has(topics([](Calls& calls) {  // the open is repeated, and could be left out
              for (int n = 0; n < 300; ++n) {
                calls.call(Call::fopen, file, O_WRONLY | O_CREAT | O_APPEND, 3);
                calls.call(Call::write, file, 100, 100);
              }
            }),
            Topic::small_writes));
}

TEST_CASE("advice: fopen(3) is an open") {
  Calls calls;
  for (int n = 0; n < 3; ++n) calls.call(Call::fopen, file, O_RDONLY, 3);
  const StreamCosts costs = calls.streams().at(std::string(file));
  CHECK(costs.opens.calls == 3);
  CHECK(costs.repeated_opens.calls == 2);
}

TEST_CASE("advice: many small files are told with the time of their opens, less the one that remains") {
  Calls calls;
  for (int n = 0; n < 256; ++n) {
    const std::string_view path = calls.kept(fmt::format("/job/out/{}/f", n));
    calls.call(Call::open, path, O_WRONLY | O_CREAT, 3);
    calls.call(Call::write, path, 1024, 1024);
  }
  calls.call(Call::open, "/elsewhere/small", O_WRONLY | O_CREAT, 3);
  calls.call(Call::write, "/elsewhere/small", 10, 10);
  const RunAdvice found = calls.advice();
  const auto many = std::ranges::find(found.advice, Topic::many_files, &Advice::topic);
  REQUIRE(many != found.advice.end());
  CHECK(many->glob == "/job/out/*");
  CHECK(many->paths.size() == 256);
  CHECK(many->time_s == doctest::Approx(0.256));  // 1 ms each
  CHECK(many->gain.seconds.value() == doctest::Approx(0.255));
  CHECK(many->what == "256 files of 1 KB on average are written; their opens take 256 ms, moving their bytes 256 ms");

  Calls fewer;
  for (int n = 0; n < 255; ++n) {
    const std::string_view path = fewer.kept(fmt::format("/job/out/{}/f", n));
    fewer.call(Call::open, path, O_WRONLY | O_CREAT, 3);
    fewer.call(Call::write, path, 1024, 1024);
  }
  CHECK(std::ranges::count(fewer.advice().advice, Topic::many_files, &Advice::topic) == 0);
}

TEST_CASE("advice: a storm of syncs is told without those that found nothing to do, and so is its time") {
  Calls calls;
  for (int n = 0; n < 30; ++n) {
    calls.call(Call::write, file, 100, 100);
    calls.call(Call::fsync, file);
    calls.call(Call::fsync, file);  // nothing has changed
  }
  const RunAdvice found = calls.advice();
  const auto storm = std::ranges::find(found.advice, Topic::sync_storm, &Advice::topic);
  REQUIRE(storm != found.advice.end());
  CHECK(storm->what == "30 syncs for 30 writes: one after 100 B on average; without 30 that found nothing to do");
  CHECK(storm->time_s == doctest::Approx(0.030));  // 1 ms each
  CHECK(storm->behind.count == 60);                // the command lists all
}

TEST_CASE("advise: a rank that moves the bytes of all in collective calls is told from one that works alone") {
  for (const bool is_collective : {true, false}) {
    Process processes[2];
    CostGatherer costs;
    std::int64_t now_ns = 0;
    std::uint64_t id = 0;
    const auto call = [&](int rank, Call what, std::uint64_t parent, std::int64_t bytes) {
      processes[rank].rank = rank;
      costs.add({.id = ++id,
                 .parent = parent,
                 .process = &processes[rank],
                 .tid = rank,
                 .call = what,
                 .path = "/d/a",
                 .second_path = {},
                 .offset = 0,
                 .length = bytes,
                 .start_ns = now_ns,
                 .end_ns = now_ns + 1'000'000 * (bytes / 1000),
                 .result = bytes});
      now_ns += 1'000'000;
      return id;
    };
    for (int n = 0; n < 5; ++n)
      for (const int rank : {0, 1}) {
        const std::uint64_t above =
            call(rank, is_collective ? Call::MPI_File_write_at_all : Call::MPI_File_write_at, 0, 50'000);
        call(rank, Call::pwrite, above, rank == 0 ? 99'000 : 1'000);
      }
    const RunAdvice found = advise({.name = "t", .facts = {}}, std::move(costs).finish(),
                                   {.traces = {"t"},
                                    .storing = [](const std::string&) { return std::nullopt; },
                                    .choose = [](const std::string&, const std::string&) { return std::nullopt; },
                                    .no_gain = "no description"},
                                   0);
    const auto imbalance = std::ranges::find(found.advice, Topic::imbalance, &Advice::topic);
    REQUIRE(imbalance != found.advice.end());
    CHECK(imbalance->what.find("99 % of the bytes") != std::string::npos);
    CHECK((imbalance->help.text.find("cb_nodes") != std::string::npos) == is_collective);
  }
}
