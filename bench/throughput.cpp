// bench_throughput FOLDER: what a folder's storage delivers, as CSV rows
// `operation,access,aligned,chunk_bytes,bytes_per_s`.
//
// Writes are each followed by fdatasync: in sequence they append, at random they overwrite. Reads miss the page cache:
// O_DIRECT where size and file system allow, else the file's pages are dropped first. Unaligned chunks are 1000 bytes
// longer, so that neither sizes nor offsets are multiples of a block. Works in one file without a name of 256 MB.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/units.h"

namespace {

using namespace iosig;

constexpr std::uint64_t file_bytes = 256 * MiB;
constexpr std::uint64_t chunks_bytes[] = {4 * KiB, 16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB, 16 * MiB, 64 * MiB};
constexpr std::uint64_t odd_bytes = 1000;
constexpr double budget_s = 0.25;
constexpr int least_operations = 3;

struct Cell {
  bool read, random, aligned;
  std::uint64_t chunk_bytes;
};

[[noreturn]] void give_up(const char* doing) {
  fmt::print(stderr, "bench_throughput: cannot {}: {}\n", doing, std::strerror(errno));
  std::exit(4);
}

void transfer(const Fd& file, const Cell& cell, char* buffer, std::uint64_t offset) {
  const auto at = static_cast<off_t>(offset);
  const ssize_t moved = cell.read ? ::pread(file.get(), buffer, cell.chunk_bytes, at)
                                  : ::pwrite(file.get(), buffer, cell.chunk_bytes, at);
  if (moved != static_cast<ssize_t>(cell.chunk_bytes)) give_up(cell.read ? "read" : "write");
  if (!cell.read && ::fdatasync(file.get()) != 0) give_up("sync");
}

/// Fills the file and leaves nothing of it in the page cache.
void fill(const Fd& file, char* buffer) {
  for (std::uint64_t at = 0; at < file_bytes; at += MiB)
    if (::pwrite(file.get(), buffer, MiB, static_cast<off_t>(at)) != static_cast<ssize_t>(MiB)) give_up("write");
  if (::fsync(file.get()) != 0) give_up("sync");
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

double bytes_per_s(const Fd& file, const Cell& cell, char* buffer) {
  if (!cell.read && !cell.random) {
    if (::ftruncate(file.get(), 0) != 0) give_up("truncate");
  } else {
    fill(file, buffer);
  }
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (cell.read && cell.aligned) (void)::fcntl(file.get(), F_SETFL, flags | O_DIRECT);  // refused: the cache is empty

  std::mt19937_64 random(1);
  const std::uint64_t places = file_bytes / cell.chunk_bytes;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::chrono::duration<double> spent{};
  std::uint64_t operations = 0;
  // In sequence, the file's end is the end: a second pass would read what the first one cached.
  while (operations < least_operations || (spent.count() < budget_s && (cell.random || operations < places))) {
    transfer(file, cell, buffer, (cell.random ? random() : operations) % places * cell.chunk_bytes);
    ++operations;
    spent = Clock::now() - begin;
  }
  (void)::fcntl(file.get(), F_SETFL, flags);
  return static_cast<double>(operations * cell.chunk_bytes) / spent.count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_throughput FOLDER\n");
    return 2;
  }
  std::string name = fmt::format("{}/iosig-bench-XXXXXX", argv[1]);
  const Fd file(::mkstemp(name.data()));
  if (!file || ::unlink(name.c_str()) != 0) give_up("make a file");
  auto* buffer = static_cast<char*>(std::aligned_alloc(4096, chunks_bytes[std::size(chunks_bytes) - 1] + 4096));
  if (buffer == nullptr) give_up("allocate");
  std::memset(buffer, 0x5a, chunks_bytes[std::size(chunks_bytes) - 1] + 4096);
  fmt::print("operation,access,aligned,chunk_bytes,bytes_per_s\n");
  for (const bool read : {false, true})
    for (const bool random : {false, true})
      for (const bool aligned : {true, false})
        for (const std::uint64_t chunk_bytes : chunks_bytes) {
          const Cell cell{read, random, aligned, chunk_bytes + (aligned ? 0 : odd_bytes)};
          fmt::print("{},{},{},{},{:.0f}\n", read ? "read" : "write", random ? "random" : "sequential",
                     aligned ? "yes" : "no", cell.chunk_bytes, bytes_per_s(file, cell, buffer));
        }
  std::free(buffer);
}
