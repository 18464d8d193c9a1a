#include <doctest/doctest.h>

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

TEST_CASE("paper model: the share of reads does not count") {
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
