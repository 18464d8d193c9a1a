// bench_grid [--quick] STORAGE RESULTS: what the mount points of a storage description deliver, cell by cell.
//
// A cell is one workload: read or write, sequential or random, sync or nosync, aligned or not, 512 B to 1 GB (quick:
// to 16 MB). Sync writes are each followed by fdatasync, nosync writes go to the page cache; in sequence they append,
// at random they overwrite. Reads find nothing of the file in the page cache: sync ones use O_DIRECT where size, place
// and file system allow, else pages without read-ahead; nosync ones are plain. No place is visited twice within a cell.
// Unaligned chunks are 512 B, 1000 B, and the aligned sizes and 1000 bytes more, so that neither sizes nor places are
// multiples of a block.
//
// A cell takes about `budget_s`, at least one operation, and is measured on one mount point after the other before the
// next cell, so that a change of the machine's load touches all of them; all of it in `rounds`, chunks above 16 MB in
// the first only. What is left out (larger than the scratch file, too slow) is written down with the reason.
//
// RESULTS is CSV: mount_point,operation,access,sync,aligned,chunk_bytes,round,bytes_per_s,left_out. Rows are appended
// as they are measured, and those that are there already are not measured again: after ^C run the same command. The
// scratch files have no names.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/units.h"
#include "iosig/config/storage_file.h"
#include "iosig/storage/scratch.h"

namespace {

using namespace iosig;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t odd_bytes = 1000;
constexpr std::uint64_t buffer_alignment = 64 * KiB;  // O_DIRECT accepts it
constexpr std::uint64_t many_operations = 20000;

constexpr std::uint64_t large_bytes = 17 * MiB;  // from here on chunks need a file of their own size
constexpr std::uint64_t file_bytes_of_small = 256 * MiB;

struct Extent {
  std::uint64_t largest_chunk;
  double budget_s, longest_operation_s;
  int rounds;
};
constexpr Extent whole{GiB, 0.1, 3, 5};
constexpr Extent quick{16 * MiB, 0.1, 2, 2};

struct Cell {
  bool read = false, random = false, sync = false, aligned = false;
  std::uint64_t chunk_bytes = 0;

  [[nodiscard]] bool appends() const { return !read && !random; }
  /// All but the size: what makes cells alike.
  [[nodiscard]] std::string kind() const {
    return fmt::format("{},{},{},{}", read ? "read" : "write", random ? "random" : "sequential",
                       sync ? "sync" : "nosync", aligned ? "yes" : "no");
  }
};

[[noreturn]] void give_up(const std::string& message) {
  fmt::print(stderr, "bench_grid: {}\n", message);
  std::exit(4);
}

template <class T>
T value_or_give_up(Result<T> result) {
  if (!result) give_up(result.error().message);
  return *std::move(result);
}

/// Chunks from `smallest` to `largest` bytes. Those that append first: the others work on a filled file.
std::vector<Cell> cells_between(std::uint64_t smallest, std::uint64_t largest) {
  std::vector<Cell> cells;
  for (const bool aligned : {true, false}) {
    std::vector<std::uint64_t> sizes;
    if (!aligned && smallest == 0) sizes = {512, odd_bytes};
    for (const std::uint64_t size : {4 * KiB, 64 * KiB, MiB, 16 * MiB, 64 * MiB, 256 * MiB, GiB})
      if (size >= smallest && size <= largest) sizes.push_back(size + (aligned ? 0 : odd_bytes));
    for (const std::uint64_t size : sizes)
      for (const bool read : {false, true})
        for (const bool random : {false, true})
          for (const bool sync : {true, false}) cells.push_back({read, random, sync, aligned, size});
  }
  std::ranges::stable_partition(cells, &Cell::appends);
  return cells;
}

class Target {
 public:
  explicit Target(const MountPoint& mount) : path_(mount.path), fd_(value_or_give_up(open_scratch_file(mount.path))) {
    const std::uint64_t memory_bytes =
        static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t room = std::min(value_or_give_up(free_bytes_at(path_)) / 4 * 3, memory_bytes / 4);
    room_bytes_ = room / MiB * MiB;
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Of the scratch file for chunks of `chunk_bytes`, which may not fit into it.
  [[nodiscard]] std::uint64_t file_bytes(std::uint64_t chunk_bytes) const {
    return std::min(room_bytes_, std::max(file_bytes_of_small, chunk_bytes));
  }

  double bytes_per_s(const Cell& cell, char* buffer, double budget_s) {
    const std::uint64_t file_bytes = this->file_bytes(cell.chunk_bytes);
    if (cell.appends())
      empty();
    else
      fill(file_bytes, buffer);
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    ::posix_fadvise(fd_.get(), 0, 0, cell.read && cell.sync ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
    if (cell.read && cell.sync && cell.aligned) (void)::fcntl(fd_.get(), F_SETFL, flags | O_DIRECT);  // may be refused

    std::vector<std::uint32_t> places(file_bytes / cell.chunk_bytes);
    std::iota(places.begin(), places.end(), 0U);
    if (cell.random) std::ranges::shuffle(places, std::mt19937(1));
    if (places.size() > many_operations) places.resize(many_operations);

    // The first of a sequence of small chunks, which looks for the file's beginning, is not counted.
    const bool skips_first = !cell.random && cell.chunk_bytes < 2 * MiB;
    if (skips_first) transfer(cell, buffer, 0);

    const auto begin = Clock::now();
    std::chrono::duration<double> spent{};
    std::uint64_t moved = 0;
    for (const std::uint64_t place : std::span(places).subspan(skips_first ? 1 : 0)) {
      transfer(cell, buffer, place * cell.chunk_bytes);
      moved += cell.chunk_bytes;
      spent = Clock::now() - begin;
      if (spent.count() >= budget_s) break;
    }
    (void)::fcntl(fd_.get(), F_SETFL, flags);
    if (cell.appends()) empty();
    return static_cast<double>(moved) / spent.count();
  }

 private:
  [[noreturn]] void refused(const char* doing) const { give_up(system_failure(doing, path_).value().message); }

  void transfer(const Cell& cell, char* buffer, std::uint64_t offset) const {
    for (std::uint64_t done = 0; done < cell.chunk_bytes;) {
      const auto at = static_cast<off_t>(offset + done);
      const ssize_t moved = cell.read ? ::pread(fd_.get(), buffer + done, cell.chunk_bytes - done, at)
                                      : ::pwrite(fd_.get(), buffer + done, cell.chunk_bytes - done, at);
      if (moved <= 0) refused(cell.read ? "read a scratch file in" : "write a scratch file in");
      done += static_cast<std::uint64_t>(moved);
    }
    if (!cell.read && cell.sync && ::fdatasync(fd_.get()) != 0) refused("sync a scratch file in");
  }

  void empty() {
    if (::ftruncate(fd_.get(), 0) != 0 || ::fsync(fd_.get()) != 0) refused("empty a scratch file in");
    filled_bytes_ = 0;
  }

  /// Makes the file at least `file_bytes` large, and leaves nothing of it in the page cache.
  void fill(std::uint64_t file_bytes, char* buffer) {
    for (; filled_bytes_ < file_bytes; filled_bytes_ += MiB)
      transfer({.chunk_bytes = std::min<std::uint64_t>(MiB, file_bytes - filled_bytes_)}, buffer, filled_bytes_);
    if (::fsync(fd_.get()) != 0) refused("sync a scratch file in");
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

  std::string path_;
  Fd fd_;
  std::uint64_t room_bytes_ = 0, filled_bytes_ = 0;
};

/// The rows of the file, by what was measured; a last line that was cut off is removed.
class Results {
 public:
  explicit Results(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0644)) {
    if (!fd_) give_up(system_failure("open", path).value().message);
    const std::string text = value_or_give_up(read_file(path));
    if (!text.starts_with(header) && !header.starts_with(text))
      give_up(fmt::format("'{}' is not a file of results: it does not begin with {}", path, header.substr(0, 24)));
    const std::size_t end = text.rfind('\n') + 1;
    if (::ftruncate(fd_.get(), static_cast<off_t>(end)) != 0) give_up(system_failure("truncate", path).value().message);
    if (end == 0) write(std::string(header));
    for (std::size_t begin = 0; begin < end;) {
      const std::size_t stop = text.find('\n', begin);
      const std::string line = text.substr(begin, stop - begin);
      known_.insert(line.substr(0, line.rfind(',', line.rfind(',') - 1)));
      begin = stop + 1;
    }
  }
  [[nodiscard]] bool has(const std::string& key) const { return known_.contains(key); }
  void add(const std::string& key, double bytes_per_s) { write(fmt::format("{},{:.0f},\n", key, bytes_per_s)); }
  void leave_out(const std::string& key, const char* reason) { write(fmt::format("{},,{}\n", key, reason)); }

 private:
  static constexpr std::string_view header =
      "mount_point,operation,access,sync,aligned,chunk_bytes,round,bytes_per_s,left_out\n";
  void write(const std::string& line) {
    if (const auto written = write_all(fd_.get(), line, path_); !written) give_up(written.error().message);
  }
  std::string path_;
  Fd fd_;
  std::set<std::string> known_;
};

std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char c : path) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

class Grid {
 public:
  Grid(const Storage& storage, const Extent& extent, Results& results) : extent_(extent), results_(results) {
    for (const MountPoint& mount : storage.mount_points) targets_.emplace_back(mount);
  }

  void measure() {
    for (int round = 1; round <= extent_.rounds; ++round)
      measure(cells_between(0, std::min(extent_.largest_chunk, large_bytes)), round);
    measure(cells_between(large_bytes, extent_.largest_chunk), 1);
  }

 private:
  void measure(const std::vector<Cell>& cells, int round) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      fmt::print(stderr, "\r\033[Kround {} of {}, cell {} of {}", round, extent_.rounds, i + 1, cells.size());
      for (Target& target : targets_) measure(cells[i], round, target);
    }
    fmt::print(stderr, "\r\033[K");
  }

  void measure(const Cell& cell, int round, Target& target) {
    const std::string like = fmt::format("{},{}", quoted(target.path()), cell.kind());
    const std::string key = fmt::format("{},{},{}", like, cell.chunk_bytes, round);
    if (results_.has(key)) return;
    if (cell.chunk_bytes > target.file_bytes(cell.chunk_bytes)) {
      results_.leave_out(key, "no room for one chunk");
      return;
    }
    const auto last = last_bytes_per_s_.find(like);
    if (last != last_bytes_per_s_.end() &&
        static_cast<double>(cell.chunk_bytes) / last->second > extent_.longest_operation_s) {
      results_.leave_out(key, "one operation would take too long");
      return;
    }
    const double bytes_per_s = target.bytes_per_s(cell, buffer_.get(), extent_.budget_s);
    results_.add(key, bytes_per_s);
    last_bytes_per_s_[like] = bytes_per_s;
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  static char* filled_memory(std::size_t bytes) {
    auto* memory = static_cast<char*>(std::aligned_alloc(buffer_alignment, bytes));
    if (memory == nullptr) give_up(fmt::format("there is no memory for a chunk of {}", bytes_text(bytes)));
    std::memset(memory, 0x5a, bytes);
    return memory;
  }

  const Extent& extent_;
  Results& results_;
  std::vector<Target> targets_;
  std::map<std::string, double> last_bytes_per_s_;  ///< by mount point and kind of cell
  std::unique_ptr<char, Free> buffer_{filled_memory(extent_.largest_chunk + buffer_alignment)};
};

}  // namespace

int main(int argc, char** argv) {
  const bool is_quick = argc == 4 && std::string_view(argv[1]) == "--quick";
  if (!is_quick && argc != 3) {
    fmt::print(stderr, "usage: bench_grid [--quick] STORAGE RESULTS\n");
    return 2;
  }
  const auto storage = iosig::read_storage_file(argv[argc - 2]);
  if (!storage) {
    fmt::print(stderr, "bench_grid: {}\n", storage.error().message);
    return 3;
  }
  Results results(argv[argc - 1]);
  Grid(*storage, is_quick ? quick : whole, results).measure();
}
