#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "iosig/observe/infer.h"

using namespace iosig::observe;
using iosig::trace::Access;
using iosig::trace::Call;
using iosig::trace::Process;

namespace {

/// Calls that a program makes, as its trace has them.
class Run {
 public:
  const Process* process(std::int32_t pid, const std::string& host = "n1") {
    Process& made = processes_[pid];
    made.key = static_cast<std::uint64_t>(pid);
    made.pid = pid;
    made.host = host;
    return &made;
  }
  void call(const Process* process, Call call, std::string_view path, std::int64_t offset, std::int64_t length,
            std::int64_t result, std::int64_t pause_ns = 0, std::string_view second_path = {}) {
    now_ns_ += pause_ns;
    gatherer_.add({.process = process,
                   .tid = process->pid,
                   .call = call,
                   .file = 1,
                   .path = path,
                   .second_path = second_path,
                   .offset = offset,
                   .length = length,
                   .start_ns = now_ns_,
                   .end_ns = now_ns_ + 1000,
                   .result = result});
    now_ns_ += 2000;
  }
  void open(const Process* process, std::string_view path, int flags) {
    call(process, Call::open, path, iosig::trace::no_offset, flags, 3);
  }
  void rename(std::int32_t pid, std::string_view from, std::string to) {
    const std::string& kept = names_.emplace_back(std::move(to));
    call(process(pid), Call::rename, from, iosig::trace::no_offset, iosig::trace::no_length, 0, 0, kept);
  }
  void link(std::int32_t pid, std::string_view from, std::string to) {
    const std::string& kept = names_.emplace_back(std::move(to));
    call(process(pid), Call::link, from, iosig::trace::no_offset, iosig::trace::no_length, 0, 0, kept);
  }
  TracedRun end(const std::string& name = "run.trace") { return {.name = name, .facts = gatherer_.finish()}; }

 private:
  std::map<std::int32_t, Process> processes_;
  std::deque<std::string> names_;
  FactGatherer gatherer_;
  std::int64_t now_ns_ = 1000;
};

std::string signature_of(Run& run) {
  std::vector<TracedRun> runs;
  runs.push_back(run.end());
  const auto streams = infer(runs);
  REQUIRE(streams.size() == 1);
  return streams.front().signature_text(0.5);
}

constexpr auto none = iosig::trace::no_offset;

}  // namespace

TEST_CASE("a file that is written once from start to end") {
  Run run;
  const Process* p = run.process(1);
  run.open(p, "/d/out", O_WRONLY | O_CREAT | O_TRUNC);
  for (int n = 0; n < 10; ++n) run.call(p, Call::write, "/d/out", n * 1024, 1024, 1024);
  CHECK(signature_of(run) == "persist sequential nosync size-per-IO(1KB) totalsize(10KB)");
}

TEST_CASE("a scratch file: written and read at random, and removed under another name") {
  Run run;
  const Process* p = run.process(1);
  run.open(p, "/d/scratch", O_RDWR | O_CREAT | O_EXCL);
  for (const int n : {7, 2, 5, 0, 6, 1, 4, 3}) run.call(p, Call::pwrite, "/d/scratch", n * 512, 512, 512);
  for (const int n : {3, 1, 7, 6, 2, 0, 5, 4}) run.call(p, Call::pread, "/d/scratch", n * 512, 512, 512);
  run.rename(1, "/d/scratch", "/d/other");
  run.call(p, Call::unlink, "/d/other", none, none, 0);
  CHECK(signature_of(run) == "temp random nosync size-per-IO(512B) totalsize(4KB) read-share(50%) passes(2)");
}

TEST_CASE("data that still have a name are not temp, however they got it") {
  const auto lifetime = [](const std::function<void(Run&, const Process*)>& make) {
    Run run;
    const Process* p = run.process(1);
    make(run, p);
    std::vector<TracedRun> runs;
    runs.push_back(run.end());
    std::string words;
    for (const InferredStream& stream : infer(runs)) words += stream.findings.front().word + " ";
    return words;
  };
  const auto write = [](Run& run, const Process* p, std::string_view path) {
    run.open(p, path, O_WRONLY | O_CREAT | O_TRUNC);
    run.call(p, Call::write, path, 0, 10, 10);
  };
  const auto unlink = [](Run& run, const Process* p, std::string_view path) {
    run.call(p, Call::unlink, path, none, none, 0);
  };
  CHECK(lifetime([&](Run& run, const Process* p) {  // what had the name is replaced, not unwanted
          write(run, p, "/d/a"), write(run, p, "/d/b"), run.rename(1, "/d/b", "/d/a");
        }) == "persist persist ");
  CHECK(lifetime([&](Run& run, const Process* p) {  // checkpoints that take the place of the one before
          for (int n = 0; n < 3; ++n) write(run, p, "/d/x.tmp"), run.rename(1, "/d/x.tmp", "/d/x");
        }) == "persist ");
  CHECK(lifetime([&](Run& run, const Process* p) {
          write(run, p, "/d/x.tmp"), run.link(1, "/d/x.tmp", "/d/x"), unlink(run, p, "/d/x.tmp");
        }) == "persist ");
  CHECK(lifetime([&](Run& run, const Process* p) {  // the last ones are kept
          for (const char* path : {"/d/c1", "/d/c2", "/d/c3"}) write(run, p, path);
          unlink(run, p, "/d/c1");
        }) == "persist ");
  CHECK(lifetime([&](Run& run, const Process* p) {  // to a name that is not in the trace
          write(run, p, "/d/x"), run.call(p, Call::rename, "/d/x", none, none, 0);
          write(run, p, "/d/x"), unlink(run, p, "/d/x");
        }) == "persist ");
  CHECK(lifetime([&](Run& run, const Process* p) {
          write(run, p, "/d/e/f"), run.rename(1, "/d/e", "/d/g"), unlink(run, p, "/d/g/f");
        }) == "temp ");
  CHECK(lifetime([&](Run& run, const Process* p) {
          for (int n = 0; n < 3; ++n) write(run, p, "/d/x"), unlink(run, p, "/d/x");
        }) == "temp ");
}

TEST_CASE("a synced file that is removed may be a journal: temp is not sure, unless it is scratch that is read back") {
  const auto confidence = [](int flags, int syncs, bool is_read_back) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, "/d/x", O_RDWR | O_CREAT | flags);
    run.call(p, Call::write, "/d/x", 0, 10, 10);
    for (int n = 0; n < syncs; ++n)
      run.call(p, n % 2 == 0 ? Call::fdatasync : Call::io_uring_fsync, "/d/x", none, none, 0);
    if (is_read_back) run.call(p, Call::pread, "/d/x", 0, 10, 10);
    run.call(p, Call::unlink, "/d/x", none, none, 0);
    std::vector<TracedRun> runs;
    runs.push_back(run.end());
    const auto streams = infer(runs);
    REQUIRE(streams.size() == 1);
    REQUIRE(streams[0].findings.front().word == "temp");
    return streams[0].findings.front().confidence;
  };
  CHECK(confidence(0, 0, false) >= 0.9);
  CHECK(confidence(0, 1, false) < 0.6);       // a rollback journal
  CHECK(confidence(0, 1, true) < 0.6);        // a write-ahead log
  CHECK(confidence(O_EXCL, 2, true) < 0.6);   // synced step by step
  CHECK(confidence(O_EXCL, 1, false) < 0.6);  // never read
  CHECK(confidence(O_SYNC, 0, false) < 0.6);
  CHECK(confidence(O_EXCL, 1, true) >= 0.6);  // as samtools sorts
  CHECK(confidence(O_EXCL, 1, true) < 0.9);
}

TEST_CASE("what lies in memory is not said to survive a power failure") {
  const auto words = [](std::string_view path) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, path, O_WRONLY | O_CREAT);
    run.call(p, Call::write, path, 0, 10, 10);
    run.call(p, Call::fsync, path, none, none, 0);
    return signature_of(run);
  };
  CHECK(words("/d/segment").find("persist") != std::string::npos);
  CHECK(words("/dev/shm/segment").find("persist") == std::string::npos);
}

TEST_CASE("files whose opens fail at a link are told") {
  const auto refusal = [](int flags, Call call = Call::write) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, "/d/x", O_RDWR | flags);
    run.call(p, call, "/d/x", 0, 10, 10);
    std::vector<TracedRun> runs;
    runs.push_back(run.end());
    const auto streams = infer(runs);
    REQUIRE(streams.size() == 1);
    return streams[0].link_refusal;
  };
  CHECK(refusal(O_CREAT | O_TRUNC) == "");
  CHECK(refusal(O_NOFOLLOW, Call::read) == "");  // only what is written is redirected
  CHECK(refusal(O_CREAT | O_EXCL).find("O_EXCL") != std::string::npos);
  CHECK(refusal(O_NOFOLLOW).find("O_NOFOLLOW") != std::string::npos);
}

TEST_CASE("think times have two digits and a unit that people read") {
  for (const auto& [pause_ns, word] :
       {std::pair{1'700'000'001, "think-time(1.7s)"}, std::pair{1'437'000'000, "think-time(1.4s)"},
        std::pair{567'000'000, "think-time(0.57s)"}}) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, "/d/x", O_WRONLY | O_CREAT);
    run.call(p, Call::write, "/d/x", 0, 10, 10);
    run.call(p, Call::write, "/d/x", 10, 10, 10, pause_ns);
    CHECK(signature_of(run).find(word) != std::string::npos);
  }
}

TEST_CASE("temp is not sure of a name that was there before: it may have been a symbolic link") {
  for (const Call before : {Call::symlink, Call::stat}) {
    Run run;
    const Process* p = run.process(1);
    run.call(p, before, "/d/latest", none, none, 0);
    run.open(p, "/d/latest", O_WRONLY | O_CREAT | O_TRUNC);
    run.call(p, Call::write, "/d/latest", 0, 10, 10);
    run.call(p, Call::unlink, "/d/latest", none, none, 0);
    std::vector<TracedRun> runs;
    runs.push_back(run.end());
    const auto streams = infer(runs);
    REQUIRE(streams.size() == 1);
    CHECK(streams[0].findings.front().word == "temp");
    CHECK(streams[0].findings.front().confidence < 0.6);
  }
}

TEST_CASE("temp is not sure where the glob matches any name") {
  Run run;
  const Process* p = run.process(1);
  for (const char* path : {"/d/c1", "/d/c2"}) {
    run.open(p, path, O_WRONLY | O_CREAT | O_TRUNC);
    run.call(p, Call::write, path, 0, 10, 10);
    run.call(p, Call::unlink, path, none, none, 0);
  }
  std::vector<TracedRun> runs;
  runs.push_back(run.end());
  const auto streams = infer(runs);
  REQUIRE(streams.size() == 1);
  CHECK(streams[0].glob == "/d/c[0-9]*");
  CHECK(streams[0].findings.front().word == "temp");
  CHECK(streams[0].findings.front().confidence < 0.6);
}

TEST_CASE("writes wait if most are followed by fsync, or their descriptor says so") {
  for (const bool has_flag : {false, true}) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, "/d/log", O_WRONLY | O_CREAT | (has_flag ? O_DSYNC : 0));
    for (int n = 0; n < 6; ++n) {
      run.call(p, Call::write, "/d/log", n * 100, 100, 100);
      if (!has_flag) run.call(p, Call::fdatasync, "/d/log", none, none, 0);
    }
    CHECK(signature_of(run) == "persist sequential sync size-per-IO(100B) totalsize(600B)");
  }
}

TEST_CASE("ranks that fill a file with strides, on several nodes") {
  Run run;
  for (int n = 0; n < 5; ++n)
    for (int rank = 0; rank < 4; ++rank)
      run.call(run.process(rank + 1, rank < 2 ? "n1" : "n2"), Call::pwrite, "/d/shared", (n * 4 + rank) * 4096, 4096,
               4096);
  std::vector<TracedRun> runs;
  runs.push_back(run.end());
  const auto streams = infer(runs);
  REQUIRE(streams.size() == 1);
  CHECK(streams[0].order == "strided");
  CHECK(streams[0].sharing == "N-1");
  CHECK(streams[0].processes == 4);
  CHECK(streams[0].aligned_share == 1);
  CHECK(streams[0].signature_text(0.5) == "persist global sequential nosync size-per-IO(4KB) totalsize(80KB)");
}

TEST_CASE("data that are read twice, with pauses, and whose end was read") {
  Run run;
  const Process* p = run.process(1);
  run.open(p, "/d/in", O_RDONLY);
  for (int pass = 0; pass < 2; ++pass) {
    for (int n = 0; n < 4; ++n) run.call(p, Call::read, "/d/in", n * 4096, 4096, 4096, n == 0 ? 1'000'000'000 : 0);
    run.call(p, Call::read, "/d/in", 16384, 4096, 0);
  }
  CHECK(signature_of(run) ==
        "sequential nosync size-per-IO(4KB) totalsize(16KB) read-share(1) passes(2) think-time(1s)");
}

TEST_CASE("what reaches the file is told, and what the program asked for is a remark") {
  Run run;
  const Process* p = run.process(1);
  for (int n = 0; n < 8; ++n) run.call(p, Call::fwrite, "/d/out", n * 512, 512, 512);
  run.call(p, Call::write, "/d/out", 0, 4096, 4096);
  std::vector<TracedRun> runs;
  runs.push_back(run.end());
  const auto streams = infer(runs);
  REQUIRE(streams.size() == 1);
  CHECK(streams[0].writes == 1);
  REQUIRE(streams[0].remarks.size() == 1);
  CHECK(streams[0].remarks[0].starts_with("through stdio, mostly 512B at once"));
}

TEST_CASE("a trace that is cut, and runs that differ, are less sure") {
  const auto write = [](std::int64_t bytes, const std::string& name) {
    Run run;
    const Process* p = run.process(1);
    run.open(p, "/d/out", O_WRONLY | O_CREAT);
    for (std::int64_t at = 0; at < bytes; at += 1024) run.call(p, Call::write, "/d/out", at, 1024, 1024);
    return run.end(name);
  };
  const auto total = [](const std::vector<TracedRun>& runs) {
    const auto streams = infer(runs);
    REQUIRE(streams.size() == 1);
    const auto found = std::ranges::find_if(streams[0].findings,
                                            [](const Finding& each) { return each.word.starts_with("totalsize"); });
    REQUIRE(found != streams[0].findings.end());
    return *found;
  };
  std::vector<TracedRun> runs;
  runs.push_back(write(8192, "a"));
  const Finding alone = total(runs);
  runs.front().is_complete = false;
  CHECK(total(runs).confidence < 0.6);
  runs.front().is_complete = true;
  runs.push_back(write(16384, "b"));
  const Finding both = total(runs);
  CHECK(both.word == "totalsize(16KB)");
  CHECK(both.confidence < alone.confidence);
  CHECK(both.why.find("runs differ: totalsize(16KB) in b, totalsize(8KB) in a") != std::string::npos);
}

TEST_CASE("sizes: exact while they are few, within an eighth when they are many") {
  SizeCounts few, many;
  few.add(100, 3), few.add(1000), few.add(5000);
  CHECK(few.most_frequent() == 100);
  CHECK(few.quantile(0.5) == 100);
  CHECK(few.quantile_of_bytes(0.5) == 5000);
  CHECK(few.share(100, 1000) == 0.8);
  for (std::uint64_t size = 1; size <= 1000; ++size) many.add(size);
  CHECK(many.count() == 1000);
  CHECK(std::abs(static_cast<double>(many.quantile(0.5)) - 500) <= 63);
  CHECK(std::abs(many.share(1, 500) - 0.5) <= 0.07);
}
