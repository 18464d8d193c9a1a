// Real files and real threads: what the engine does is counted by the page cache itself, never by the time it takes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/decide/predictors.h"
#include "iosig/prefetch/observer.h"
#include "iosig/prefetch/report.h"
#include "iosig/prefetch/stream.h"
#include "support/directories.h"

using namespace iosig;
using namespace iosig::prefetch;

namespace {

/// Foresees reads at an even distance: enough for a test.
class EvenPredictor : public ReadPredictor {
 public:
  bool observe(FileRead read) override {
    const std::int64_t stride = read.offset - last_.offset;
    const bool holds = stride == stride_ && read.length == last_.length;
    right_ = holds ? right_ + 1 : 0;
    stride_ = stride;
    last_ = read;
    return holds;
  }
  std::optional<FileRead> expected(std::size_t ahead) override {
    if (right_ == 0) return std::nullopt;
    return FileRead{last_.offset + static_cast<std::int64_t>(ahead) * stride_, last_.length};
  }
  [[nodiscard]] double confidence() const override { return right_ >= 3 ? 1 : 0; }
  [[nodiscard]] std::size_t model_bytes() const override { return sizeof *this; }

 private:
  FileRead last_;
  std::int64_t stride_ = 0;
  int right_ = 0;
};

constexpr std::int64_t page = 4096;

/// Never freed, as in a program: its planner's threads may run until the end.
Observer& new_observer(std::int64_t max_bytes = 64 << 20, std::int64_t quick_ns = 0, bool hears_of_sequential = true) {
  // By default no read counts as quick: how fast this machine's disk is decides nothing.
  struct Kept {
    Settings settings;
    Observer observer;
  };
  static auto* const all = new std::vector<Kept*>;  // so that no leak is reported
  Kept* const made = all->emplace_back(new Kept);
  made->settings = {
      .make_predictor = [](const std::string&) { return MadePredictor{std::make_unique<EvenPredictor>()}; },
      .max_bytes = max_bytes,
      .quick_ns = quick_ns,
      .hears_of_sequential = hears_of_sequential};
  made->observer.start(made->settings);
  return made->observer;
}

struct TestFile {
  explicit TestFile(std::int64_t bytes) : path(directory.path() + "/data") {
    const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::vector<char> block(1 << 20, 'x');
    for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(block.size()))
      REQUIRE(::write(made.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()));
    REQUIRE(::fsync(made.get()) == 0);
    drop();
  }
  void drop() const {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  test::Directory directory;
  std::string path;
};

/// Reads as a program does under `iosig run --prefetch`.
ssize_t observed_pread(Observer& observer, int fd, std::int64_t offset, std::int64_t length) {
  std::vector<char> bytes(static_cast<std::size_t>(length));
  Observer::Reading reading = observer.begin(fd, offset, length);
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
  observer.end(reading, got);
  return got;
}

/// Whether all pages of a range are in memory: nothing if the kernel does not tell.
std::optional<bool> in_memory(int fd, std::int64_t offset, std::int64_t length) {
  const std::uint64_t range[2] = {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)};
  std::uint64_t pages[5] = {};
  if (::syscall(451, fd, range, pages, 0U) != 0) return std::nullopt;
  return static_cast<std::int64_t>(pages[0]) >= length / page;
}

/// Asks once a millisecond; a question may take long itself.
bool within_seconds(double seconds, const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (is_true()) return true;
    constexpr timespec millisecond{0, 1'000'000};
    ::nanosleep(&millisecond, nullptr);
  }
  return false;
}

ReadEvent read_event(std::int64_t offset, std::int64_t length, std::int64_t start_ns) {
  return {
      .file = 1, .thread = 1, .offset = offset, .length = length, .start_ns = start_ns, .took_before_ns = 2'000'000};
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("read queue: events come out in their order, and a full queue loses the newest") {
  const auto queue = std::make_unique<ReadQueue>();
  ReadEvent event;
  CHECK_FALSE(queue->pop(event));
  for (std::int64_t round = 0; round < 3; ++round) {
    for (std::uint64_t n = 0; n < ReadQueue::capacity; ++n)
      REQUIRE(queue->push({.offset = static_cast<std::int64_t>(n)}) == n + 1);
    CHECK(queue->push({.offset = -7}) == 0);
    for (std::uint64_t n = 0; n < ReadQueue::capacity; ++n) {
      REQUIRE(queue->pop(event));
      REQUIRE(event.offset == static_cast<std::int64_t>(n));
    }
    CHECK_FALSE(queue->pop(event));
  }
}

TEST_CASE("read queue: threads that push at once lose nothing") {
  const auto queue = std::make_unique<ReadQueue>();
  std::vector<std::thread> threads;
  constexpr std::int64_t each = 20'000;
  for (unsigned thread = 0; thread < 3; ++thread)
    threads.emplace_back([&queue, thread] {
      for (std::int64_t n = 0; n < each; ++n)
        while (queue->push({.thread = thread, .offset = n}) == 0) std::this_thread::yield();
    });
  std::int64_t next[3] = {};
  for (std::int64_t n = 0; n < 3 * each; ++n) {
    ReadEvent event;
    while (!queue->pop(event)) std::this_thread::yield();
    REQUIRE(event.offset == next[event.thread]++);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("prefetch: what a strided program reads next is in memory before it asks, and nothing of the gaps") {
  const TestFile data(16 << 20);
  Observer& observer = new_observer();
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in_memory(fd.get(), 0, page)) return;  // before Linux 6.5
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  const int before = open_descriptors();
  constexpr std::int64_t stride = 256 << 10, length = 16 << 10;
  bool is_ahead = false;
  for (std::int64_t n = 0; n < 60 && !is_ahead; ++n) {
    REQUIRE(observed_pread(observer, fd.get(), n * stride, length) == length);
    // A slow program: each read waits until the one after it is there, or 100 ms.
    is_ahead = n > 12 && within_seconds(0.1, [&] { return *in_memory(fd.get(), (n + 1) * stride, length); });
  }
  const std::string report(observer.report());
  CAPTURE(report);
  CHECK(is_ahead);
  CHECK_FALSE(*in_memory(fd.get(), stride / 2, length));  // between two reads
  CHECK(open_descriptors() == before);                    // the engine has a table of its own
  CHECK(report.find("1 open file prefetched") != std::string::npos);
  CHECK(report.find(data.path) != std::string::npos);
  observer.closed(fd.get());
  observer.stop();
}

TEST_CASE("prefetch: a record lock of the process stays when the engine closes the file") {
  const TestFile data(8 << 20);
  Observer& observer = new_observer();
  Fd fd(::open(data.path.c_str(), O_RDWR | O_CLOEXEC));
  const Fd second(::open(data.path.c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock {
    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0
  };
  REQUIRE(::fcntl(second.get(), F_SETLK, &lock) == 0);
  for (std::int64_t n = 0; n < 30; ++n) (void)observed_pread(observer, fd.get(), n * 3 * page, page);
  CHECK(within_seconds(5, [&] { return !observer.report().empty(); }));
  observer.closed(fd.get());  // the engine closes its descriptor; the program keeps its own
  CHECK(within_seconds(5, [&] { return observer.report().find(data.path) != std::string_view::npos; }));
  observer.stop();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(second.get(), F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("prefetch: files that shrink, vanish or cannot be opened again cause no error and end their requests") {
  Observer& observer = new_observer();
  for (int kind = 0; kind < 3; ++kind) {
    CAPTURE(kind);
    const TestFile data(8 << 20);
    const Fd fd(::open(data.path.c_str(), O_RDWR | O_CLOEXEC));
    for (std::int64_t n = 0; n < 40; ++n) {
      const ssize_t got = observed_pread(observer, fd.get(), n * 5 * page, page);
      CHECK(got == (kind == 0 && n >= 20 ? 0 : page));
      if (n == 19 && kind == 0) REQUIRE(::ftruncate(fd.get(), 0) == 0);
      if (n == 19 && kind == 1) REQUIRE(::unlink(data.path.c_str()) == 0);
      if (n == 1 && kind == 2) REQUIRE(::fchmod(fd.get(), 0) == 0);
    }
    observer.closed(fd.get());
  }
  CHECK(within_seconds(5, [&] { return !observer.report().empty(); }));
  observer.stop();
}

TEST_CASE("prefetch: descriptors that are closed, given away and opened by many threads") {
  Observer& observer = new_observer();
  const TestFile data(4 << 20), other(1 << 20);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 40; ++round) {
        const std::string& path = (round + thread) % 3 == 0 ? other.path : data.path;
        const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        for (std::int64_t n = 0; n < 12; ++n) (void)observed_pread(observer, fd.get(), n * 7 * page, page);
        if (round % 2 == 0) observer.closed(fd.get());  // else the close is not seen
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(within_seconds(5, [&] { return !observer.report().empty(); }));
  observer.stop();
}

#ifndef __SANITIZE_THREAD__  // it lets no child of a program with threads start one
TEST_CASE("prefetch: a child made by fork() has no planner of its parent's, and gets its own") {
  const TestFile data(8 << 20);
  Observer& observer = new_observer();
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  for (std::int64_t n = 0; n < 20; ++n) (void)observed_pread(observer, fd.get(), n * 3 * page, page);
  REQUIRE(within_seconds(5, [&] { return !observer.report().empty(); }));
  // Under the address sanitizer a child cannot allocate memory if another thread did so at the moment of the fork.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const pid_t child = ::fork();
  if (child == 0) {
    observer.reinit_after_fork();
    const bool is_off = observer.report().empty();
    for (std::int64_t n = 0; n < 20; ++n) (void)observed_pread(observer, fd.get(), n * 3 * page, page);
    ::_exit(is_off && within_seconds(5, [&] { return !observer.report().empty(); }) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  observer.stop();
}

#endif

TEST_CASE("prefetch: a file whose first reads were lost in a full queue is prefetched nevertheless") {
  Observer& observer = new_observer();
  const TestFile many(1 << 20), data(8 << 20);
  const Fd first(::open(many.path.c_str(), O_RDONLY | O_CLOEXEC)), fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  sigset_t blocked, before;  // as in a signal handler, where the planner cannot start
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
  for (std::uint64_t n = 0; n < ReadQueue::capacity; ++n) (void)observed_pread(observer, first.get(), 0, 1);
  for (std::int64_t n = 0; n < 3; ++n) (void)observed_pread(observer, fd.get(), n * 3 * page, page);
  REQUIRE(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  const auto reports_data = [&] {
    for (std::int64_t n = 3; n < 43; ++n) (void)observed_pread(observer, fd.get(), n * 3 * page, page);
    return observer.report().find(data.path + ": useful") != std::string_view::npos;
  };
  CHECK(within_seconds(5, reports_data));
  observer.stop();
}

TEST_CASE("prefetch: ten thousand streams stay within the limits") {
  Observer& observer = new_observer(1 << 20);
  const TestFile data(4 << 20);
  // The descriptors' numbers are enough: 10,000 open files need not be there for the slots to be used.
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const int count = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 10'200)) - 200;
  std::vector<Fd> duplicates;
  for (int n = 0; n < count; ++n) duplicates.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  REQUIRE(duplicates.back());
  for (std::int64_t n = 0; n < 6; ++n)
    for (const Fd& each : duplicates) REQUIRE(observed_pread(observer, each.get(), n * 3 * page, 512) == 512);
  CHECK(within_seconds(10, [&] { return !observer.report().empty(); }));
  for (const Fd& each : duplicates) observer.closed(each.get());
  observer.stop();
}

TEST_CASE("prefetch: pipes, directories and files opened with O_DIRECT are left out") {
  Observer& observer = new_observer();
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd reads(ends[0]), writes(ends[1]);
  const TestFile data(1 << 20);
  const Fd direct(::open(data.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  for (int n = 0; n < 10; ++n) {
    CHECK(observer.begin(reads.get(), Observer::at_file_offset, 1).slot == nullptr);
    CHECK(observer.begin(-1, 0, 1).slot == nullptr);
    CHECK(observer.begin(1 << 20, 0, 1).slot == nullptr);
    // The first read is remembered, whatever the file.
    if (direct) CHECK((observer.begin(direct.get(), 0, 4096).slot == nullptr) == (n > 0));
  }
  observer.stop();
}

TEST_CASE(
    "stream: requests are kept ahead by the latency over the time between reads, and cancelled with the pattern") {
  const TestFile data(64 << 20);
  const std::shared_ptr<OwnFile> none;
  Requests requests;
  Budget budget;
  struct stat status {};
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::fstat(fd.get(), &status) == 0);
  const auto file = OwnFile::open(fd.get(), status.st_dev, status.st_ino);
  REQUIRE(file != nullptr);
  Stream stream(file, std::make_unique<EvenPredictor>(), requests, budget);
  std::int64_t now = 1'000'000'000;
  // Each read takes 2 ms and is followed by 1 ms: 2 ms / 1 ms + a half, that is 3 ahead, once there is trust; and as
  // all of these reads began before their requests, which is late, half as many more.
  for (std::int64_t n = 0; n < 40; ++n) {
    stream.observe(read_event(n * 64 * page, 4 * page, now));
    now += 3'000'000;
    CHECK(budget.used_bytes <= (3 + 1) * 4 * page);
  }
  CHECK(stream.why_left_alone().empty());
  CHECK(budget.used_bytes > 0);
  stream.observe(read_event(17 * page, 3 * page, now));  // another phase
  CHECK(budget.used_bytes == 0);
}

TEST_CASE("stream: reads that are known beforehand are requested from the first one on, wherever it is") {
  const TestFile data(64 << 20);
  struct stat status {};
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::fstat(fd.get(), &status) == 0);
  const auto file = OwnFile::open(fd.get(), status.st_dev, status.st_ino);
  REQUIRE(file != nullptr);
  KnownReads known;  // without a pattern
  for (std::int64_t n = 0; n < 40; ++n) known.reads.push_back({n * n * 7919 % 2003 * 4 * page, page});
  for (const std::size_t first : {0U, 3U}) {  // the program may also begin elsewhere
    Requests requests;
    Budget budget;
    Stream stream(file, remembered_predictor(std::make_shared<const KnownReads>(known)), requests, budget);
    stream.observe({.file = 1, .thread = 1, .offset = known.reads[first].offset, .length = page, .start_ns = 1});
    CHECK(budget.used_bytes == 16 * page);
    stream.observe(read_event(known.reads[first + 1].offset, page, 3'000'000));
    CHECK(stream.counts().wasted_bytes == 0);
    stream.give_up();
  }
}

TEST_CASE("stream: sequential, random and cached streams are left alone, each with its reason") {
  const TestFile data(8 << 20);
  struct stat status {};
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::fstat(fd.get(), &status) == 0);
  const auto file = OwnFile::open(fd.get(), status.st_dev, status.st_ino);
  REQUIRE(file != nullptr);
  const auto why = [&](const std::function<std::int64_t(std::int64_t)>& offset, std::int64_t took_ns) {
    Requests requests;
    Budget budget;
    Stream stream(file, std::make_unique<EvenPredictor>(), requests, budget);
    for (std::int64_t n = 0; n < 100; ++n) {
      ReadEvent event = read_event(offset(n), page, 1'000'000'000 + n * 3'000'000);
      event.took_before_ns = took_ns;
      stream.observe(event);
    }
    CHECK(stream.counts().wasted_bytes <= 100 * page * 3 / 100);
    return std::string(stream.why_left_alone());
  };
  CHECK(why([](std::int64_t n) { return n * page; }, 2'000'000).starts_with("sequential"));
  CHECK(why([](std::int64_t n) { return (n * n * 7919 % 2003) * page; }, 2'000'000).starts_with("no pattern"));
  CHECK(why([](std::int64_t n) { return n * 3 * page; }, 1'000).starts_with("its reads are quick"));
  CHECK(why([](std::int64_t n) { return n * 3 * page; }, 2'000'000).empty());
}

TEST_CASE("stream: too little memory, and reads larger than the limit, are reasons, and end when the limit does") {
  const TestFile data(8 << 20);
  struct stat status {};
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::fstat(fd.get(), &status) == 0);
  const auto file = OwnFile::open(fd.get(), status.st_dev, status.st_ino);
  REQUIRE(file != nullptr);
  Requests requests;
  Budget budget;
  Stream stream(file, std::make_unique<EvenPredictor>(), requests, budget);
  std::int64_t n = 0;
  const auto reads_with_limit = [&](std::int64_t bytes) {
    budget.total_bytes = bytes;
    for (int count = 0; count < 20; ++count, ++n)
      stream.observe(read_event(n * 8 * page, 2 * page, 1'000'000'000 + n * 3'000'000));
    return std::string(stream.why_left_alone());
  };
  CHECK(reads_with_limit(0) == "less than 32 MiB of memory is free");
  CHECK(budget.is_wanted);  // the planner asks again
  CHECK(reads_with_limit(2 * page - 1) == "a read is larger than what may be prefetched");
  CHECK_FALSE(stream.was_prefetched());
  CHECK(reads_with_limit(64 << 20).empty());
  CHECK(stream.was_prefetched());
  CHECK(reads_with_limit(0) == "less than 32 MiB of memory is free");
  CHECK(budget.used_bytes == 0);
}

TEST_CASE("report: files of few reads are counted, the others have lines") {
  const auto file = [](const char* path, std::uint64_t reads, std::uint64_t bytes, const char* note = "") {
    return FileSummary{.path = path, .counts = {.reads = reads, .read_bytes = bytes}, .note = note};
  };
  Report quiet;
  quiet.add(file("/lib/a", 31, 1000));
  quiet.add(file("", 2, 10));  // it was never opened
  CHECK_FALSE(quiet.is_of_note());
  CHECK(quiet.text() ==
        "prefetch: test_prefetch (" + std::to_string(::getpid()) +
            "): 0 open files prefetched, 2 left alone; useful 0.0 MB, late 0.0, wasted 0.0, in memory before 0.0, of "
            "0.0 MB in 33 reads\nprefetch: 2 other files of few reads\n");
  Report full = quiet;
  full.add(file("/lib/a", 1, 0));  // the same again: 32 reads
  full.add(file("/large", 1, 1 << 20));
  full.add(file("/noted", 1, 1, "as declared"));
  CHECK(full.is_of_note());
  const std::string text = full.text();
  for (const char* line :
       {"\nprefetch: /large: ", "\nprefetch: /lib/a: ", "; as declared\n", "\nprefetch: 1 other file of"})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("prefetch: a file that the kernel makes at each read is not opened again") {
  Observer& observer = new_observer();
  const Fd fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  for (std::int64_t n = 0; n < 60; ++n) (void)observed_pread(observer, fd.get(), n % 20 * 8, 4);
  CHECK(within_seconds(5, [&] { return !observer.report().empty(); }));
  const std::string report(observer.report());
  CAPTURE(report);
  CHECK(report.find("0 open files prefetched, 1 left alone") != std::string::npos);
  CHECK(report.find("/proc/") == std::string::npos);  // it has no path, because it was not opened
  observer.closed(fd.get());
  observer.stop();
}

TEST_CASE("prefetch: after thousands of quick sequential reads, slow strided ones are prefetched within 16") {
  bool is_observed = true;
  SUBCASE("that the planner observes, for a report") {}
  SUBCASE("of which nobody hears: no thread is started") { is_observed = false; }
  const TestFile data(64 << 20);
  Observer& observer = new_observer(64 << 20, 10'000, is_observed);
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto reads = [&](std::int64_t offset, bool is_slow) {
    std::vector<char> bytes(page);
    Observer::Reading reading = observer.begin(fd.get(), offset, page);
    const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), offset);
    constexpr timespec millisecond{0, 1'000'000};
    if (is_slow) ::nanosleep(&millisecond, nullptr);
    observer.end(reading, got);
  };
  for (int n = 0; n < 4000; ++n) {
    reads(n * page, false);
    // Whether the planner has begun.
    if (n == 100 && is_observed) CHECK(within_seconds(5, [&] { return !observer.report().empty(); }));
  }
  if (!is_observed) CHECK(observer.report().empty());
  data.drop();
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  for (int n = 0; n < 16; ++n) reads((32 << 20) + n * 64 * page, true);
  CHECK(within_seconds(1, [&] { return observer.report().find("1 open file prefetched") != std::string_view::npos; }));
  observer.closed(fd.get());
  observer.stop();
}

TEST_CASE("prefetch: thousands of threads that read twice are counted, and the thread that reads on is prefetched") {
  const TestFile data(16 << 20);
  Observer& observer = new_observer();
  const Fd fd(::open(data.path.c_str(), O_RDONLY | O_CLOEXEC));
  constexpr int threads = 9000;
  for (int n = 0; n < threads; ++n)
    std::thread([&] {
      (void)observed_pread(observer, fd.get(), n * page % (8 << 20), 1);
      (void)observed_pread(observer, fd.get(), n * page % (8 << 20), 1);
    }).join();
  data.drop();
  for (std::int64_t n = 0; n < 60; ++n) (void)observed_pread(observer, fd.get(), n * 64 * page, page);
  CHECK(within_seconds(5, [&] { return observer.report().find("1 open file prefetched") != std::string_view::npos; }));
  const std::string report(observer.report());
  CAPTURE(report);
  // The first read only marks the descriptor, and while a thread waits for the processor, events may be lost.
  CHECK(observer.reported_counts().reads > threads);
  CHECK(observer.reported_counts().reads <= 2 * threads + 60);
  observer.closed(fd.get());
  observer.stop();
}
