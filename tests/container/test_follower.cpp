// Readers follow writers: a read after any change by other writers of the node shows it, whether the view could add the
// new writes or had to be read again.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bytes.h"
#include "iosig/base/files.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/new_writes.h"
#include "iosig/container/shared/shared_container.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

std::shared_ptr<SharedContainer> opened(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return SharedContainer::open(directory.get(), [](const std::string& said) { MESSAGE(said); }).value();
}

std::string content_of(SharedContainer& container, std::int64_t at, std::size_t bytes) {
  std::string text(bytes, '?');
  const std::int64_t got = container.view().read(at, std::as_writable_bytes(std::span(text)));
  REQUIRE(got >= 0);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

/// The expected content of the file.
class Model {
 public:
  void write(std::size_t at, const std::string& text) {
    if (text_.size() < at + text.size()) text_.resize(at + text.size());
    text_.replace(at, text.size(), text);
  }
  void truncate(std::size_t size) { text_.resize(size); }
  void punch(std::size_t at, std::size_t length) {
    if (at < text_.size())
      std::fill_n(text_.begin() + static_cast<long>(at), std::min(length, text_.size() - at), '\0');
  }
  [[nodiscard]] std::string read(std::size_t at, std::size_t bytes) const {
    return at < text_.size() ? text_.substr(at, bytes) : std::string();
  }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

/// IOSIG_FOLLOWER_SEEDS, for a longer search.
unsigned seeds() {
  const char* const wanted = std::getenv("IOSIG_FOLLOWER_SEEDS");
  return wanted == nullptr ? 2 : static_cast<unsigned>(std::atoi(wanted));
}

/// A writer with a SharedContainer of its own, which readers cannot tell from another process of the node.
struct Process {
  std::shared_ptr<SharedContainer> container;
  OpenWriter* writer = nullptr;
  std::int64_t next = 0, stride = 0;  ///< of a regular writer
};

}  // namespace

TEST_CASE("new writes lie over older ones by their numbers, in any order of adding") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    struct Write {
      std::int64_t at, length, id, physical, sequence;
    };
    std::vector<Write> writes;
    std::array<std::int64_t, 4> ends{};
    for (int n = 0; n < 30; ++n) {
      const auto id = static_cast<std::int64_t>(random() % 4);
      const auto length = static_cast<std::int64_t>(1 + random() % 30);
      std::int64_t& end = ends[static_cast<std::size_t>(id)];
      writes.push_back({static_cast<std::int64_t>(random() % 100), length, id, end, n / 2 * 4 + id});
      end += length;
    }
    std::array<std::pair<std::int64_t, std::int64_t>, 130> wanted;
    std::array<std::int64_t, 130> numbers{};
    wanted.fill({-1, 0});
    numbers.fill(-1);
    const auto is_later = [&](const Write& one, const Write& other) {
      return one.sequence != other.sequence ? one.sequence > other.sequence : one.physical > other.physical;
    };
    std::vector<Write> sorted = writes;
    std::ranges::stable_sort(sorted, [&](const Write& one, const Write& other) { return is_later(other, one); });
    for (const Write& write : sorted)
      for (std::int64_t n = 0; n < write.length; ++n)
        wanted[static_cast<std::size_t>(write.at + n)] = {write.id, write.physical + n};
    // The writes of one writer are added in their order; those of different writers in any.
    std::ranges::shuffle(writes, random);
    std::ranges::stable_sort(writes, [](const Write& one, const Write& other) {
      return one.id == other.id && one.physical < other.physical;
    });
    std::array<std::vector<Write>, 4> by_writer;
    for (const Write& write : writes) by_writer[static_cast<std::size_t>(write.id)].push_back(write);
    for (auto& each : by_writer) std::ranges::sort(each, {}, &Write::physical);
    NewWrites added;
    for (std::size_t left = writes.size(); left > 0;) {
      auto& queue = by_writer[random() % 4];
      if (queue.empty()) continue;
      const Write write = queue.front();
      queue.erase(queue.begin());
      added.add(write.at, write.length, write.id, write.physical, write.sequence);
      --left;
    }
    for (std::int64_t at = 0; at < 130; ++at) {
      Piece piece{at, 1000, 0, 0, true};
      added.lay_over(piece);
      const auto& [id, physical] = wanted[static_cast<std::size_t>(at)];
      REQUIRE(piece.is_hole == (id < 0));
      if (id < 0) continue;
      REQUIRE(piece.id == id);
      REQUIRE(piece.physical == physical);
    }
  }
}

TEST_CASE("after every change of any writer, a reader sees what a file would hold") {
  for (const IndexKind index : {IndexKind::pattern, IndexKind::traditional})
    for (unsigned seed = 1; seed <= seeds(); ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
      const Directory directory;
      const std::string path = directory.path() + "/box";
      ContainerOptions options;
      options.index = index;
      REQUIRE(create_container(path, options));
      const auto reader = opened(path);
      Model model;
      std::array<Process, 4> processes;
      const auto start = [&](Process& process) {
        process = {opened(path), nullptr, static_cast<std::int64_t>(below(400)), static_cast<std::int64_t>(below(60))};
        process.writer = process.container->writers().add();
      };
      for (Process& process : processes) start(process);
      for (int step = 0; step < 250; ++step) {
        Process& by = processes[below(processes.size())];
        std::string text(1 + below(30), static_cast<char>('a' + step % 26));
        const auto write = [&](std::size_t at) {
          auto offset = static_cast<std::int64_t>(at);
          REQUIRE(by.container->writers().write(*by.writer, offset, bytes_of(text), false) ==
                  static_cast<std::int64_t>(text.size()));
          model.write(at, text);
        };
        switch (below(seed % 3 == 0 ? 16 : 12)) {
          case 0: {  // many writes, more than a tail holds
            const std::size_t count = below(8) == 0 ? 17'000 : below(600);
            text.resize(3);
            for (std::size_t n = 0; n < count; ++n) write(below(2000));
            break;
          }
          case 1: {
            std::int64_t offset = 0;
            REQUIRE(by.container->writers().write(*by.writer, offset, bytes_of(text), true) > 0);
            CHECK(offset == static_cast<std::int64_t>(model.size()));
            model.write(model.size(), text);
            break;
          }
          case 2:
          case 3:
          case 4:  // regular
            for (std::size_t n = below(40); n > 0; --n, by.next += by.stride) write(static_cast<std::size_t>(by.next));
            if (by.next > 3000) by.next = 0;
            break;
          case 12: {
            const std::size_t size = below(2500);
            REQUIRE(by.container->truncate(by.writer, static_cast<std::int64_t>(size)) == 0);
            model.truncate(size);
            break;
          }
          case 13: {
            const std::size_t at = below(2000), length = 1 + below(300);
            REQUIRE(by.container->allocate(*by.writer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                           static_cast<std::int64_t>(at), static_cast<std::int64_t>(length)) == 0);
            model.punch(at, length);
            break;
          }
          case 14:
            REQUIRE(by.container->writers().remove(by.writer) == 0);
            start(by);
            break;
          case 15: REQUIRE(by.container->writers().close_all() == 0); break;
          default: write(below(2000));
        }
        const std::size_t at = below(model.size() + 10);
        REQUIRE(content_of(*reader, static_cast<std::int64_t>(at), 100) == model.read(at, 100));
        if (step % 50 == 0) REQUIRE(content_of(*reader, 0, 10'000) == model.read(0, 10'000));
        if (step % 110 == 0) (void)close_idle_fds();
      }
      CHECK(content_of(*reader, 0, 100'000) == model.read(0, 100'000));
      for (Process& process : processes) REQUIRE(process.container->writers().remove(process.writer) == 0);
      CHECK(content_of(*reader, 0, 100'000) == model.read(0, 100'000));
      CHECK(content_of(*opened(path), 0, 100'000) == model.read(0, 100'000));
    }
}

TEST_CASE("a reader that follows does not read indices again") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  REQUIRE(create_container(path));
  const auto writing = opened(path), reader = opened(path);
  OpenWriter* const writer = writing->writers().add();
  const auto write = [&](std::int64_t at, const std::string& text) {
    REQUIRE(writing->writers().write(*writer, at, bytes_of(text), false) == static_cast<std::int64_t>(text.size()));
  };
  write(0, "first");
  CHECK(content_of(*reader, 0, 100) == "first");
  CHECK(content_of(*reader, 0, 100) == "first");
  write(5, ", second");
  CHECK(content_of(*reader, 0, 100) == "first, second");
  // Reading the container again would find that the index is gone.
  const std::string index = path + "/d0/index.0";
  REQUIRE(::rename(index.c_str(), (path + "/d0/gone").c_str()) == 0);
  write(0, "FIRST");
  write(200, "far");
  CHECK(content_of(*reader, 0, 20) == "FIRST, second" + std::string(7, '\0'));
  CHECK(content_of(*reader, 200, 20) == "far");
  for (int n = 0; n < 100; ++n) write(300 + 3 * n, "abc");
  CHECK(content_of(*reader, 597, 20) == "abc");
  REQUIRE(::rename((path + "/d0/gone").c_str(), index.c_str()) == 0);
  REQUIRE(writing->writers().remove(writer) == 0);
  CHECK(content_of(*reader, 597, 20) == "abc");
}

TEST_CASE("a reader follows writers that write while it reads") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  REQUIRE(create_container(path));
  constexpr std::int64_t writers = 3, places = 64, length = 8, enough = 3000, most = 100'000;
  // Each writer counts up in its own places, at random or in order; `reached` is what it has written.
  std::array<std::atomic<std::int64_t>, writers> reached{};
  std::atomic<std::int64_t> reads{0}, wrong{0};
  std::atomic<bool> is_over{false};
  const auto place = [&](std::int64_t writer, std::int64_t n) {
    return ((writer == 1 ? n * 7919 % places : n % places) * writers + writer) * length;
  };
  std::vector<std::thread> threads;
  for (std::int64_t n = 0; n < writers; ++n)
    threads.emplace_back([&, n] {
      const auto container = opened(path);
      OpenWriter* const writer = container->writers().add();
      for (std::int64_t count = 1; !is_over && count <= most; ++count) {  // a starved reader ends, too
        std::int64_t at = place(n, count);
        if (container->writers().write(*writer, at, std::as_bytes(std::span(&count, 1)), false) != length) ++wrong;
        reached[static_cast<std::size_t>(n)] = count;
        if (count % 50 == 0) std::this_thread::yield();
      }
      (void)container->writers().remove(writer);
    });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto container = opened(path);
  while (reads < enough && std::chrono::steady_clock::now() < end)
    for (std::int64_t n = 0; n < writers; ++n) {
      const std::int64_t before = reached[static_cast<std::size_t>(n)];
      if (before == 0) continue;
      std::int64_t found = 0;
      const std::int64_t got = container->view().read(place(n, before), std::as_writable_bytes(std::span(&found, 1)));
      const std::int64_t after = reached[static_cast<std::size_t>(n)];
      // Not older than the write of the same place that had ended, and none that had not begun.
      if (got != length || found < before || place(n, found) != place(n, before) || found > after + 1) ++wrong;
      ++reads;
    }
  is_over = true;
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
  CHECK(reads >= writers);
}
