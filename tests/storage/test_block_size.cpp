#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "iosig/storage/block_size.h"

using namespace iosig;

namespace {

/// The device of Fig. 6c: what an append of each size takes by Eq. 3 with blocks of `block` bytes, each time off by up
/// to `noise`.
std::vector<TimedSize> times_with(std::uint64_t block, double noise = 0, double latency_s = 2e-3) {
  constexpr double bytes_per_s = 60e6;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
  std::vector<TimedSize> times;
  for (const std::uint64_t bytes : block_size_steps) {
    const auto blocks = static_cast<double>((bytes + block - 1) / block);
    const double read_s = bytes % block != 0 ? static_cast<double>(block) / bytes_per_s : 0;
    times.push_back({bytes, (latency_s + blocks * static_cast<double>(block) / bytes_per_s + read_s) * off(random)});
  }
  return times;
}

}  // namespace

TEST_CASE("block size: that of the paper's NFS is found from the times of appends") {
  CHECK(closest_block_bytes(times_with(22 * KiB), 4 * KiB) == 22 * KiB);
  CHECK(closest_block_bytes(times_with(22 * KiB, 0.05), 4 * KiB) == 22 * KiB);
}

TEST_CASE("block size: every multiple of 2 KB up to 64 KB is found") {
  for (std::uint64_t block = 6 * KiB; block <= 64 * KiB; block += 2 * KiB)
    CHECK(closest_block_bytes(times_with(block, 0, 0.2e-3), 4 * KiB) == block);
}

TEST_CASE("block size: without another one the reported size stays, whatever the noise") {
  for (const double noise : {0.0, 0.05, 0.3, 0.9}) {
    CAPTURE(noise);
    CHECK(closest_block_bytes(times_with(4 * KiB, noise), 4 * KiB) == 4 * KiB);
  }
  CHECK(closest_block_bytes(times_with(4 * KiB, 0.05, 100e-3), 4 * KiB) == 4 * KiB);  // latency hides everything
}

TEST_CASE("block size: too few times, or none, leave the reported size") {
  const auto times = times_with(22 * KiB);
  CHECK(closest_block_bytes({}, 4 * KiB) == 4 * KiB);
  CHECK(closest_block_bytes(std::span(times).first(31), 4 * KiB) == 4 * KiB);
  CHECK(closest_block_bytes(std::span(times).first(32), 4 * KiB) == 22 * KiB);
}
