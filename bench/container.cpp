// Containers against one shared plain file: what a write, an open for reading and the index cost.
//
//     bench_container DIRECTORY [WRITES [BYTES...]]
//     bench_container DIRECTORY writers COUNT
//     bench_container DIRECTORY make-writers COUNT | make-random COUNT
//     bench_container DIRECTORY syncs COUNT
//     bench_container open CONTAINER
//
// Simulated writers take turns in one process: 4 and 64 of them write BYTES (64 and 4096) at a time, strided as N-1
// checkpoints are, WRITES (65536) in all for each row. CPU time, since the device is not what is measured. DIRECTORY
// should be on tmpfs. The second form closes COUNT writers of 16 strided writes each, one after the other, and opens
// the container without a snapshot and with one. The third form leaves such a container, or one of COUNT writes of 64
// bytes by 4 writers at random. The fourth compares what the first and a later sync cost with a plain file; DIRECTORY
// should be on a device. The last opens a container without a snapshot, once: for figures of a fresh process.
#include "iosig/container/admin/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"

using namespace iosig;

namespace {

double cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class T>
T sound(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(4);
}
void sound(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(4);
}

/// Who writes where: write n of writer w. Nobody's bytes are anybody else's.
enum class Shape { strided, segmented, random };
const char* name_of(Shape shape) {
  return shape == Shape::strided ? "strided" : shape == Shape::segmented ? "segmented" : "random";
}

struct Job {
  Shape shape = Shape::strided;
  std::int64_t writers = 8, bytes = 64, each = 0;
  std::vector<std::int64_t> places;  ///< of a random job, by turn

  [[nodiscard]] std::int64_t offset(std::int64_t writer, std::int64_t n) const {
    if (shape == Shape::segmented) return (writer * each + n) * bytes;
    const std::int64_t turn = n * writers + writer;
    return (shape == Shape::random ? places[static_cast<std::size_t>(turn)] : turn) * bytes;
  }
};

constexpr int rounds = 5;  // the least of them counts

double plain_write_ns(const Job& job, const std::string& path, std::span<const std::byte> data) {
  std::vector<Fd> fds;
  for (std::int64_t w = 0; w < job.writers; ++w) fds.emplace_back(::open(path.c_str(), O_RDWR | O_CREAT, 0644));
  const double start = cpu_s();
  for (std::int64_t n = 0; n < job.each; ++n)
    for (std::int64_t w = 0; w < job.writers; ++w)
      if (::pwrite(fds[static_cast<std::size_t>(w)].get(), data.data(), data.size(), job.offset(w, n)) < 0)
        std::abort();
  const double ns = 1e9 * (cpu_s() - start) / static_cast<double>(job.each * job.writers);
  ::unlink(path.c_str());
  return ns;
}

/// Time of an open without an index snapshot, which it saves.
double first_open_ms(const std::string& path, std::unique_ptr<ContainerView>& view) {
  (void)::unlink(fmt::format("{}/{}", path, index_snapshot_name).c_str());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // otherwise it would be too early for a snapshot
  const double start = wall_s();
  view = sound(ContainerView::open(sound(ContainerDirectory::open(path))));
  return 1e3 * (wall_s() - start);
}

std::int64_t peak_kb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

constexpr std::int64_t writes_of_many = 16;

/// Many small writers, as a restarted job leaves them. Returns the time.
double make_many(std::int64_t count, const std::string& path) {
  constexpr std::int64_t bytes = 64;
  const std::vector<std::byte> data(bytes, std::byte{'x'});
  const auto directory = sound(create_container(path));
  const double start = wall_s();
  for (std::int64_t w = 0; w < count; ++w) {
    const auto writer = sound(ContainerWriter::open(directory));
    for (std::int64_t n = 0; n < writes_of_many; ++n) (void)sound(writer->write((n * count + w) * bytes, data));
    sound(writer->close());
  }
  return wall_s() - start;
}

/// `count` writes of 4 writers, which leave no pattern.
void make_random(std::int64_t count, const std::string& path) {
  constexpr std::int64_t bytes = 64;
  const std::vector<std::byte> data(bytes, std::byte{'x'});
  std::vector<std::int64_t> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  std::mt19937_64 random(7);
  std::shuffle(places.begin(), places.end(), random);
  const auto directory = sound(create_container(path));
  std::vector<std::unique_ptr<ContainerWriter>> writers;
  for (int n = 0; n < 4; ++n) writers.push_back(sound(ContainerWriter::open(directory)));
  for (std::size_t n = 0; n < places.size(); ++n) (void)sound(writers[n % 4]->write(places[n] * bytes, data));
  for (const auto& writer : writers) sound(writer->close());
}

/// Opens a container without a snapshot, and deletes the one that this leaves.
void open_once(const std::string& path) {
  const std::string snapshot = fmt::format("{}/{}", path, index_snapshot_name);
  (void)::unlink(snapshot.c_str());
  const std::int64_t before_kb = peak_kb();
  const double start = wall_s(), cpu_start = cpu_s();
  const auto view = sound(ContainerView::open(sound(ContainerDirectory::open(path))));
  fmt::print("{:.1f} ms, processor {:.1f} ms, {:.1f} MB\n", 1e3 * (wall_s() - start), 1e3 * (cpu_s() - cpu_start),
             static_cast<double>(peak_kb() - before_kb) / 1000);
  (void)::unlink(snapshot.c_str());
}

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

/// `count` times in turn: a new plain file, and a new writer of a container that others have closed, write 4 KB and
/// sync, twice; then the record of a sync alone is appended and flushed.
void measure_syncs(std::int64_t count, const std::string& path) {
  const std::vector<std::byte> data(4096, std::byte{'x'});
  const auto directory = sound(create_container(path));
  std::vector<double> plain, plain_named, plain_again, first, again, record;
  const auto timed = [](std::vector<double>& times, auto work) {
    const double start = wall_s();
    work();
    times.push_back(1e6 * (wall_s() - start));
  };
  const auto must = [](bool is_done) {
    if (!is_done) std::abort();
  };
  for (std::int64_t n = 0; n < count; ++n) {
    const std::string flat = path + ".flat";
    const Fd file(::open(flat.c_str(), O_RDWR | O_CREAT | O_EXCL, 0644));
    const Fd above(::open((path + "/..").c_str(), O_RDONLY | O_DIRECTORY));
    must(::pwrite(file.get(), data.data(), data.size(), 0) > 0);
    timed(plain, [&] { must(::fsync(file.get()) == 0); });
    timed(plain_named, [&] { must(::fsync(above.get()) == 0); });
    plain_named.back() += plain.back();
    must(::pwrite(file.get(), data.data(), data.size(), 4096) > 0);
    timed(plain_again, [&] { must(::fsync(file.get()) == 0); });
    ::unlink(flat.c_str());

    const auto writer = sound(ContainerWriter::open(directory));
    (void)sound(writer->write(4096 * n, data));
    timed(first, [&] { sound(writer->sync()); });
    (void)sound(writer->write(4096 * (n + count), data));
    timed(again, [&] { sound(writer->sync()); });
    sound(writer->close());
    const Fd records = SyncRecord::open_file(*directory);
    SyncRecord alone;
    timed(record, [&] { alone.append(*directory, records, {.id = n, .data_bytes = 0}); });
  }
  fmt::print(
      "medians of {}, us: plain file, first sync {:.0f}, with its directory's {:.0f}, again {:.0f}; "
      "container, first sync {:.0f}, again {:.0f}; of the first, the record alone {:.0f}\n",
      count, median(plain), median(plain_named), median(plain_again), median(first), median(again), median(record));
  sound(remove_container(path));
}

void measure_many(std::int64_t count, const std::string& path) {
  const double written_s = make_many(count, path);
  const std::int64_t before_kb = peak_kb();
  std::unique_ptr<ContainerView> view;
  double open_ms = 1e99, again_ms = 1e99;
  for (int n = 0; n < rounds; ++n) open_ms = std::min(open_ms, first_open_ms(path, view));
  const std::int64_t peak = peak_kb() - before_kb;
  for (int n = 0; n < rounds; ++n) {
    const double again = wall_s();
    view = sound(ContainerView::open(sound(ContainerDirectory::open(path))));
    again_ms = std::min(again_ms, 1e3 * (wall_s() - again));
  }
  fmt::print(
      "{} writers: {:.0f} us to open, write {} times and close; first open {:.0f} ms, at most {} MB more than "
      "after writing; again {:.2f} ms, {} bytes\n",
      count, 1e6 * written_s / static_cast<double>(count), writes_of_many, open_ms, peak / 1000, again_ms,
      view->memory_bytes());
  view.reset();
  sound(remove_container(path));
}

struct Metrics {
  double write_ns = 1e99, close_us = 1e99, open_ms = 1e99, again_ms = 1e99, read_ns = 1e99, plain_read_ns = 1e99;
  std::int64_t index_bytes = 0;
  std::size_t memory_bytes = 0;
};

void measure(const Job& job, IndexKind index, const std::string& path, std::span<const std::byte> data, Metrics& best) {
  const auto directory = sound(create_container(path, [&] {
    ContainerOptions options;
    options.index = index;
    return options;
  }()));
  std::vector<std::unique_ptr<ContainerWriter>> writers;
  for (std::int64_t w = 0; w < job.writers; ++w) writers.push_back(sound(ContainerWriter::open(directory)));
  double start = cpu_s();
  for (std::int64_t n = 0; n < job.each; ++n)
    for (std::int64_t w = 0; w < job.writers; ++w)
      (void)sound(writers[static_cast<std::size_t>(w)]->write(job.offset(w, n), data));
  const auto all = static_cast<double>(job.each * job.writers);
  best.write_ns = std::min(best.write_ns, 1e9 * (cpu_s() - start) / all);
  start = wall_s();
  for (auto& writer : writers) sound(writer->close());
  best.close_us = std::min(best.close_us, 1e6 * (wall_s() - start) / static_cast<double>(job.writers));
  std::unique_ptr<ContainerView> view;
  best.open_ms = std::min(best.open_ms, first_open_ms(path, view));
  best.memory_bytes = view->memory_bytes();
  best.index_bytes = 0;
  const auto content = sound(read_content(view->directory()));
  for (const WriterContent& writer : content.writers) best.index_bytes += writer.index_bytes;
  start = wall_s();
  view = sound(ContainerView::open(sound(ContainerDirectory::open(path))));
  best.again_ms = std::min(best.again_ms, 1e3 * (wall_s() - start));

  const std::int64_t size = view->size(), pieces = size / job.bytes;
  std::vector<std::byte> read(static_cast<std::size_t>(job.bytes));
  std::mt19937_64 random(1);
  start = cpu_s();
  for (std::int64_t n = 0; n < pieces; ++n)
    (void)sound(view->read(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(pieces)) * job.bytes, read));
  best.read_ns = std::min(best.read_ns, 1e9 * (cpu_s() - start) / static_cast<double>(pieces));
  const std::string flat = path + ".flat";
  const Fd fd(::open(flat.c_str(), O_RDWR | O_CREAT, 0644));
  for (std::int64_t at = 0; at < size; at += job.bytes)
    if (::pwrite(fd.get(), data.data(), data.size(), at) < 0) std::abort();
  random.seed(1);
  start = cpu_s();
  for (std::int64_t n = 0; n < pieces; ++n)
    if (::pread(fd.get(), read.data(), read.size(),
                static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(pieces)) * job.bytes) < 0)
      std::abort();
  best.plain_read_ns = std::min(best.plain_read_ns, 1e9 * (cpu_s() - start) / static_cast<double>(pieces));
  ::unlink(flat.c_str());
  view.reset();
  sound(remove_container(path));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr,
               "usage: bench_container DIRECTORY [WRITES [BYTES...] | writers COUNT | syncs COUNT] | open CONTAINER\n");
    return 2;
  }
  if (argc == 3 && argv[1] == std::string_view("open")) {
    open_once(argv[2]);
    return 0;
  }
  const std::string path = std::string(argv[1]) + "/bench-container";
  if (argc == 4 && argv[2] == std::string_view("writers")) {
    measure_many(std::atoll(argv[3]), path);
    return 0;
  }
  if (argc == 4 && argv[2] == std::string_view("syncs")) {
    measure_syncs(std::atoll(argv[3]), path);
    return 0;
  }
  if (argc == 4 && argv[2] == std::string_view("make-writers")) {
    (void)make_many(std::atoll(argv[3]), path);
    return 0;
  }
  if (argc == 4 && argv[2] == std::string_view("make-random")) {
    make_random(std::atoll(argv[3]), path);
    return 0;
  }
  const std::int64_t writes = argc > 2 ? std::atoll(argv[2]) : 65536;
  std::vector<std::int64_t> sizes;
  for (int n = 3; n < argc; ++n) sizes.push_back(std::atoll(argv[n]));
  if (sizes.empty()) sizes = {64, 4096};
  fmt::print("{:9} {:7} {:5} {:11} | {:>8} {:>8} {:>8} | {:>8} {:>8} {:>9} {:>9} | {:>8} {:>8}\n", "shape", "writers",
             "bytes", "index", "plain ns", "write ns", "close us", "open ms", "again ms", "index B", "memory B",
             "plain ns", "read ns");
  for (const Shape shape : {Shape::strided, Shape::segmented, Shape::random})
    for (const std::int64_t writers : {4, 64})
      for (const std::int64_t bytes : sizes) {
        Job job{shape, writers, bytes, writes / writers, {}};
        for (std::int64_t n = 0; n < job.each * writers; ++n) job.places.push_back(n);
        std::mt19937_64 random(7);
        std::shuffle(job.places.begin(), job.places.end(), random);
        const std::vector<std::byte> data(static_cast<std::size_t>(bytes), std::byte{'x'});
        double plain = 1e99;
        for (int n = 0; n < rounds; ++n) plain = std::min(plain, plain_write_ns(job, path, data));
        for (const IndexKind index : {IndexKind::pattern, IndexKind::traditional}) {
          Metrics best;
          for (int n = 0; n < rounds; ++n) measure(job, index, path, data, best);
          fmt::print("{:9} {:7} {:5} {:11} | {:8.0f} {:8.0f} {:8.1f} | {:8.3f} {:8.3f} {:9} {:9} | {:8.0f} {:8.0f}\n",
                     name_of(shape), writers, bytes, iosig::name_of(index), plain, best.write_ns, best.close_us,
                     best.open_ms, best.again_ms, best.index_bytes, best.memory_bytes, best.plain_read_ns,
                     best.read_ns);
        }
      }
  return 0;
}
