#include <doctest/doctest.h>

#include <vector>

#include "iosig/base/units.h"
#include "iosig/cost/throughput.h"

using namespace iosig;

namespace {

/// Round numbers, so that every expectation below can be checked by hand.
Device round_device() {
  Device device;
  device.kind = DeviceKind::hdd;
  device.write_bytes_per_s = 4096e3;  // a block in 1 ms
  device.read_bytes_per_s = 8192e3;   // a block in 0.5 ms
  device.operation_latency_s = 3e-3;
  device.seek_latency_s = 10e-3;
  return device;
}

/// The same behind a page cache.
Device page_cache_device() {
  Device device = round_device();
  device.random_write_latency_s = 12e-3;
  device.random_read_latency_s = 11e-3;
  device.buffered_write_latency_s = 1e-6;
  device.buffered_write_bytes_per_s = 1e9;
  device.buffered_read_latency_s = 2e-6;
  device.buffered_read_bytes_per_s = 1e8;
  return device;
}

}  // namespace

TEST_CASE("Eq. 3: an aligned write costs its latency and its transfer") {
  const Prediction p = predict({.bytes_per_io = 8192}, round_device(), 4096);
  CHECK(p.operation_s == doctest::Approx(5e-3));  // 3 ms + 2 blocks
  CHECK(p.throughput_bytes_per_s == doctest::Approx(8192 / 5e-3));
  CHECK(p.limit == Limit::latency);
}

TEST_CASE("Eq. 3: an unaligned write is rounded up to blocks and reads one block first") {
  const Prediction p = predict({.bytes_per_io = 4097}, round_device(), 4096);
  CHECK(p.operation_s == doctest::Approx(3e-3 + 2e-3 + 0.5e-3));
  CHECK(p.throughput_bytes_per_s == doctest::Approx(4097 / 5.5e-3));
}

TEST_CASE("Eq. 3: the unit of transfer is the larger of page and block") {
  Device device = round_device();
  CHECK(predict({.bytes_per_io = 512}, device, 512).operation_s == doctest::Approx(3e-3 + 1e-3 + 0.5e-3));
  CHECK(predict({.bytes_per_io = 8192}, device, 16384).operation_s == doctest::Approx(3e-3 + 4e-3 + 2e-3));
}

TEST_CASE("Eq. 3: only random access seeks, and only on a device that seeks") {
  Device device = round_device();
  CHECK(predict({.bytes_per_io = 4096, .random = true}, device, 4096).operation_s == doctest::Approx(14e-3));
  CHECK(predict({.bytes_per_io = 4096, .random = true}, device, 4096).limit == Limit::seek);
  device.kind = DeviceKind::ssd;
  CHECK(predict({.bytes_per_io = 4096, .random = true}, device, 4096).operation_s == doctest::Approx(4e-3));
}

TEST_CASE("Eq. 3: IOPS bound small writes, and an unaligned one counts twice") {
  Device device = round_device();
  device.max_iops = 100;
  const Prediction aligned = predict({.bytes_per_io = 4096}, device, 4096);
  CHECK(aligned.throughput_bytes_per_s == doctest::Approx(100 * 4096));
  CHECK(aligned.limit == Limit::iops);
  CHECK(predict({.bytes_per_io = 100}, device, 4096).throughput_bytes_per_s == doctest::Approx(50 * 100));
}

TEST_CASE("mixed model: a read has no read-modify-write, counts once, and may have its own latency") {
  Device device = round_device();
  CHECK(predict({.bytes_per_io = 4097, .read_share = 1}, device, 4096).operation_s == doctest::Approx(3e-3 + 1e-3));
  device.read_operation_latency_s = 1e-3;
  CHECK(predict({.bytes_per_io = 4097, .read_share = 1}, device, 4096).operation_s == doctest::Approx(1e-3 + 1e-3));
  CHECK(predict({.bytes_per_io = 4096, .read_share = 0.5}, device, 4096).operation_s ==
        doctest::Approx((4e-3 + 1.5e-3) / 2));
  device.max_iops = 100;  // 10 ms for each read and each aligned write, 20 ms for an unaligned write
  CHECK(predict({.bytes_per_io = 4097, .read_share = 0.5}, device, 4096).operation_s == doctest::Approx(15e-3));
}

TEST_CASE("mixed model: an append reads nothing back, and an overwrite has its own latency, the seek being a part") {
  Device device = page_cache_device();
  CHECK(predict({.bytes_per_io = 4097}, device, 4096).operation_s == doctest::Approx(3e-3 + 2e-3));
  const Prediction aligned = predict({.bytes_per_io = 4096, .random = true}, device, 4096);
  CHECK(aligned.operation_s == doctest::Approx(12e-3 + 1e-3));
  CHECK(aligned.seek_s == doctest::Approx(10e-3));
  CHECK(aligned.latency_s == doctest::Approx(2e-3));
  CHECK(aligned.limit == Limit::seek);
}

TEST_CASE("mixed model: an unaligned write at random reads the blocks that it covers in part, which are near") {
  Device device = page_cache_device();  // a block is read in 3.5 ms, at random in 11.5 ms
  CHECK(predict({.bytes_per_io = 2048, .random = true}, device, 4096).operation_s ==
        doctest::Approx(12e-3 + 1e-3 + 1.5 * 3.5e-3));  // half of them lie across two blocks
  CHECK(predict({.bytes_per_io = 8193, .random = true}, device, 4096).operation_s ==
        doctest::Approx(12e-3 + 3e-3 + 2 * 3.5e-3));
  device.rewrite_latency_s = 1e-3;
  CHECK(predict({.bytes_per_io = 8193, .random = true}, device, 4096).operation_s ==
        doctest::Approx(12e-3 + 3e-3 + 2 * 1e-3));
  device.rewrite_latency_s = 0;  // a file system that reads nothing before
  CHECK(predict({.bytes_per_io = 8193, .random = true}, device, 4096).operation_s == doctest::Approx(12e-3 + 3e-3));
}

TEST_CASE("mixed model: a random write of a new block has a latency of its own and reads nothing") {
  Device device = page_cache_device();
  const auto write_s = [&](double new_share, std::uint64_t bytes = 4096, bool sync = true) {
    return predict({.bytes_per_io = bytes, .random = true, .sync = sync, .new_share = new_share}, device, 4096)
        .operation_s;
  };
  CHECK(write_s(1) == doctest::Approx(13e-3));  // 12 ms and a block; no value of its own
  device.random_new_write_latency_s = 20e-3;
  CHECK(write_s(0) == doctest::Approx(13e-3));
  CHECK(write_s(1) == doctest::Approx(21e-3));
  CHECK(write_s(0.25) == doctest::Approx(15e-3));     // 3 of 4 passes overwrite
  CHECK(write_s(1, 2048) == doctest::Approx(21e-3));  // the rest of the block holds nothing
  CHECK(write_s(0, 2048) > 13e-3);
  CHECK(write_s(1, 4096, false) == write_s(0, 4096, false));
}

TEST_CASE("mixed model: reads in sequence wait once for each block, which the next one shares") {
  const Device device = page_cache_device();
  CHECK(predict({.bytes_per_io = 512, .read_share = 1}, device, 4096).operation_s ==
        doctest::Approx(3.5e-3 / 8 + 2e-6 * 7 / 8));  // one in 8 waits, the others find their block
  CHECK(predict({.bytes_per_io = 6144, .read_share = 1}, device, 4096).operation_s == doctest::Approx(3e-3 + 0.75e-3));
  CHECK(predict({.bytes_per_io = 8192, .read_share = 1}, device, 4096).operation_s == doctest::Approx(3e-3 + 1e-3));
}

TEST_CASE("mixed model: who does not wait copies bytes, not blocks, and reads ahead in sequence") {
  Device device = page_cache_device();
  CHECK(predict({.bytes_per_io = 1000, .sync = false}, device, 4096).operation_s == doctest::Approx(1e-6 + 1e-6));
  CHECK(predict({.bytes_per_io = 4096, .random = true, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(1e-6 + 4.096e-6));
  CHECK(predict({.bytes_per_io = 4097, .random = true, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(1e-6 + 4.097e-6 + 11.5e-3 + 3.5e-3));  // the first block far, the other near
  CHECK(predict({.bytes_per_io = 1000, .read_share = 1, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(2e-6 + 10e-6));
  CHECK(predict({.bytes_per_io = 4096, .random = true, .read_share = 1, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(11e-3 + 40.96e-6));
  device.buffered_small_write_latency_s = 5e-7;  // of what is smaller than a block, of which one in 4 takes a new one
  CHECK(predict({.bytes_per_io = 1024, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(1e-6 / 4 + 5e-7 * 3 / 4 + 1.024e-6));
  CHECK(predict({.bytes_per_io = 4096, .sync = false}, device, 4096).operation_s == doctest::Approx(1e-6 + 4.096e-6));
  device.buffered_small_write_latency_s.reset();
  device.buffered_random_write_latency_s = 3e-6;  // of overwrites alone
  CHECK(predict({.bytes_per_io = 4096, .random = true, .sync = false}, device, 4096).operation_s ==
        doctest::Approx(3e-6 + 4.096e-6));
  CHECK(predict({.bytes_per_io = 1000, .sync = false}, device, 4096).operation_s == doctest::Approx(1e-6 + 1e-6));
  const Prediction mixture = predict({.bytes_per_io = 1000, .read_share = 0.5, .sync = false}, device, 4096);
  CHECK(mixture.operation_s == doctest::Approx((2e-6 + 12e-6) / 2));
  CHECK(mixture.bandwidth_bytes_per_s == doctest::Approx(1000 / 5.5e-6));
  device.max_iops = 1;  // of the storage, which nobody waits for
  CHECK(predict({.bytes_per_io = 1000, .sync = false}, device, 4096).operation_s == doctest::Approx(2e-6));
}

TEST_CASE("mixed model: without the values of a page cache, who does not wait is predicted as one who waits") {
  for (const bool random : {false, true})
    for (const double read_share : {0.0, 0.5, 1.0})
      CHECK(predict({5000, random, read_share, false}, round_device(), 4096).operation_s ==
            predict({5000, random, read_share, true}, round_device(), 4096).operation_s);
}

TEST_CASE("paper model: neither the share of reads, nor a page cache, nor nosync counts") {
  for (std::uint64_t chunk = 1; chunk <= 64 * MiB; chunk = chunk * 3 + 1)
    for (const bool random : {false, true})
      CHECK(predict({chunk, random, 0.7, false}, page_cache_device(), 4096, CostModel::paper).operation_s ==
            predict({chunk, random}, round_device(), 4096, CostModel::paper).operation_s);
  const Device device = round_device();
  CHECK(predict({.bytes_per_io = 4097, .read_share = 1}, device, 4096, CostModel::paper).operation_s ==
        predict({.bytes_per_io = 4097}, device, 4096).operation_s);
}

TEST_CASE("model: more bandwidth, less latency and more IOPS never predict less") {
  for (std::uint64_t chunk = 1; chunk <= 64 * MiB; chunk = chunk * 3 + 1) {
    Device worse = round_device();
    worse.max_iops = 150;
    Device better = worse;
    better.write_bytes_per_s *= 2;
    better.operation_latency_s /= 2;
    better.max_iops = 300;
    for (const bool random : {false, true})
      CHECK(predict({chunk, random, 0.3}, better, 4096).throughput_bytes_per_s >=
            predict({chunk, random, 0.3}, worse, 4096).throughput_bytes_per_s);
  }
}

TEST_CASE("model: a page cache that is faster in any way never predicts less, and larger chunks never take less time") {
  const Device worse = page_cache_device();
  std::vector<Device> better(8, worse);
  *better[0].random_write_latency_s /= 2;
  *better[1].random_read_latency_s /= 2;
  *better[2].buffered_write_latency_s /= 2;
  *better[3].buffered_write_bytes_per_s *= 2;
  *better[4].buffered_read_latency_s /= 2;
  *better[5].buffered_read_bytes_per_s *= 2;
  better[6].read_bytes_per_s *= 2;
  better[7].rewrite_latency_s = 1e-3;
  for (const bool random : {false, true})
    for (const bool sync : {false, true})
      for (std::uint64_t chunk = 4096; chunk <= 64 * MiB; chunk *= 2) {
        const double operation_s = predict({chunk, random, 0.3, sync}, worse, 4096).operation_s;
        for (const Device& device : better)
          CHECK(predict({chunk, random, 0.3, sync}, device, 4096).operation_s <= operation_s);
        CHECK(predict({2 * chunk, random, 0.3, sync}, worse, 4096).operation_s >= operation_s);
        CHECK(predict({chunk + 1, random, 0.3, sync}, worse, 4096).operation_s >= operation_s);
      }
}
