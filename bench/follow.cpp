// Measures a read that follows another writer's write, for which the reader reads the writers' tails. Compares it with
// reading the container again, as each open does, and with a read of a shared plain file.
//
//     bench_follow DIRECTORY [WRITES [WRITERS...]]
//
// In turn, one of WRITERS (4 and 1000) open writers writes 64 bytes at a random place of a file with WRITES (100000)
// such writes, and a reader with a view of its own reads them. Median and 99th percentile of the read's wall time.
// DIRECTORY should be on tmpfs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "iosig/container/admin/container.h"
#include "iosig/container/shared/shared_container.h"

using namespace iosig;

namespace {

constexpr std::int64_t bytes = 64;
constexpr int rounds = 6000;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(4);
}

std::shared_ptr<SharedContainer> open(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto opened =
      SharedContainer::open(directory.get(), [](const std::string& said) { fmt::print(stderr, "{}\n", said); });
  if (!opened) give_up(opened.error().message);
  return *std::move(opened);
}

struct Times {
  std::vector<double> us;
  [[nodiscard]] double at(double part) {
    std::ranges::sort(us);
    return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
  }
};

void measure(const std::string& directory, std::int64_t writes, int writers) {
  const std::string path = fmt::format("{}/follow.{}", directory, ::getpid()), plain_path = path + ".plain";
  if (const auto made = create_container(path); !made) give_up(made.error().message);
  const Fd plain(::open(plain_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  // Writers with a container of their own are other processes for the reader.
  const auto writing = open(path), reading = open(path);
  std::vector<OpenWriter*> all;
  for (int n = 0; n < writers; ++n) all.push_back(writing->writers().add());
  std::mt19937_64 random(1);
  std::array<std::byte, bytes> block{}, found{};
  const auto write = [&](std::int64_t n) {
    std::int64_t at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(writes)) * bytes;
    block.fill(static_cast<std::byte>(n));
    OpenWriter& by = *all[static_cast<std::size_t>(n % writers)];
    if (writing->writers().write(by, at, block, false) != bytes) give_up("cannot write");
    if (::pwrite(plain.get(), block.data(), block.size(), at) != bytes) give_up("cannot write");
    return at;
  };
  for (std::int64_t n = 0; n < writes; ++n) write(n);
  (void)reading->view().read(0, found);

  Times follow, repeated, plain_read, again;
  for (int n = 0; n < rounds; ++n) {
    const std::int64_t at = write(n);
    double begin = now_us();
    const bool is_read = reading->view().read(at, found) == bytes;
    follow.us.push_back(now_us() - begin);
    if (!is_read || found != block) give_up("the reader got other bytes");
    begin = now_us();
    (void)reading->view().read(at, found);
    repeated.us.push_back(now_us() - begin);
    begin = now_us();
    if (::pread(plain.get(), found.data(), found.size(), at) != bytes || found != block) give_up("cannot read");
    plain_read.us.push_back(now_us() - begin);
  }
  for (int n = 0; n < 5; ++n) {
    const double begin = now_us();
    if (open(path)->view().read(0, found) != bytes) give_up("cannot read");
    again.us.push_back(now_us() - begin);
  }
  fmt::print(
      "{:>8} writes by {:>4} writers: a read after one more {:.2f} us (p99 {:.1f}), repeated {:.2f}, plain {:.2f}; "
      "reading the container again {:.1f} ms\n",
      writes, writers, follow.at(0.5), follow.at(0.99), repeated.at(0.5), plain_read.at(0.5), again.at(0.5) / 1000);
  for (OpenWriter* each : all) (void)writing->writers().remove(each);
  if (const auto removed = remove_container(path); !removed) give_up(removed.error().message);
  ::unlink(plain_path.c_str());
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: bench_follow DIRECTORY [WRITES [WRITERS...]]\n");
    return 2;
  }
  const std::int64_t writes = count > 2 ? std::atoll(words[2]) : 100'000;
  std::vector<int> writers;
  for (int n = 3; n < count; ++n) writers.push_back(std::atoi(words[n]));
  if (writers.empty()) writers = {4, 1000};
  for (const int each : writers) measure(words[1], writes, each);
}
