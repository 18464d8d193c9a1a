#include <doctest/doctest.h>

#include "iosig/base/units.h"
#include "iosig/cost/job_time.h"

using namespace iosig;

namespace {

/// Stores 100 MB/s, copies to the page cache at 1 GB/s, reads ahead at 200 MB/s; no latencies.
Device disk() {
  Device device;
  device.name = "disk";
  device.kind = DeviceKind::ssd;
  device.read_bytes_per_s = 2e8;
  device.write_bytes_per_s = 1e8;
  device.buffered_write_bytes_per_s = 1e9;
  device.buffered_read_bytes_per_s = 2e8;
  return device;
}

const PageCache cache{
    .unthrottled_bytes = 2'000'000'000, .background_bytes = 1'000'000'000, .cached_bytes = 4'000'000'000};

TransferTime written(double bytes, double think_s = 0, const PageCache& given = cache) {
  const Workload appends{.bytes_per_io = 4096, .sync = false};
  return predict_transfers({.workload = appends, .data_bytes = bytes, .think_s = think_s}, disk(), 4096, given);
}

}  // namespace

TEST_CASE(
    "job time: writes that do not wait are a copy until the page cache makes them wait, then as slow as the disk") {
  CHECK(written(5e8).transfer_s == doctest::Approx(0.5));  // 5e8 B / 1e9 B/s; below the background threshold
  CHECK(written(5e8).flush_s == doctest::Approx(5));       // all of it at 1e8 B/s
  CHECK(written(2e9).transfer_s == doctest::Approx(2));
  CHECK(written(2e9).flush_s == doctest::Approx(18));  // 2e9 B less the 2e8 B that were stored in 2 s
  // 1e10 B: all but 2e9 B have to be stored while the program runs, then the rest.
  CHECK(written(1e10).transfer_s == doctest::Approx(80));
  CHECK(written(1e10).flush_s == doctest::Approx(20));
}

TEST_CASE("job time: the disk stores what it can while the program computes") {
  CHECK(written(1e10, 60).transfer_s == doctest::Approx(20));    // 80 s, of which 60 are hidden
  CHECK(written(1e10, 1000).transfer_s == doctest::Approx(10));  // only the copy
  CHECK(written(1e10, 1000).flush_s == 0);
  // Few dirty data are stored when they have expired: not within 20 s, but within 40 s.
  CHECK(written(5e8, 20).flush_s == doctest::Approx(5));
  CHECK(written(5e8, 40).flush_s == 0);
}

TEST_CASE("job time: data that are overwritten in the page cache are stored once") {
  const Transfers rewrites{.workload = {.bytes_per_io = 4096, .sync = false}, .data_bytes = 5e8, .passes = 100};
  CHECK(predict_transfers(rewrites, disk(), 4096, cache).transfer_s == doctest::Approx(50));
}

TEST_CASE("job time: the page cache serves what the program has written or read, as far as memory holds it") {
  const auto read = [](double bytes, double passes, double share) {
    const Workload reads{.bytes_per_io = MiB, .read_share = share, .sync = false};
    return predict_transfers({.workload = reads, .data_bytes = bytes, .passes = passes}, disk(), 4096, cache)
        .transfer_s;
  };
  CHECK(read(1e9, 1, 1) == doctest::Approx(5));      // from the disk
  CHECK(read(1e9, 3, 1) == doctest::Approx(5 + 2));  // twice more from memory
  CHECK(read(8e9, 3, 1) == doctest::Approx(120));    // memory holds 4e9 B
  CHECK(read(1e9, 2, 0.5) == doctest::Approx(2));    // written, then read back from memory
}

TEST_CASE("job time: what the page cache holds is overwritten and read at rates of its own, if the device has them") {
  Device device = disk();
  device.cached_write_bytes_per_s = 4e9;
  device.cached_read_bytes_per_s = 1e10;
  const auto transfer_s = [&](double bytes, double passes, double read_share, bool random = false) {
    const Workload workload{.bytes_per_io = 4096, .random = random, .read_share = read_share, .sync = false};
    return predict_transfers({.workload = workload, .data_bytes = bytes, .passes = passes}, device, 4096, cache)
        .transfer_s;
  };
  CHECK(transfer_s(5e8, 1, 0) == doctest::Approx(0.5));              // new data
  CHECK(transfer_s(5e8, 3, 0) == doctest::Approx(0.5 + 2 * 0.125));  // 5e8 B / 4e9 B/s each
  CHECK(transfer_s(1e9, 4, 0.5) == doctest::Approx(1 + 0.25 + 2 * 0.1));
  CHECK(transfer_s(1e9, 3, 1) == doctest::Approx(5 + 2 * 0.1));  // the first time from the disk
  // 8e9 B, which memory does not hold: 1.6e10 B written, of which 2e9 B may stay, at 1e8 B/s.
  CHECK(transfer_s(8e9, 2, 0) == doctest::Approx(140));
  device.cached_write_latency_s = 1e-6;
  device.buffered_random_write_latency_s = 3e-6;  // of each overwrite; new data in random order pay it, too
  const double block_s = 4096 / 4e9, blocks = 5e8 / 4096;
  CHECK(transfer_s(5e8, 2, 0) == doctest::Approx(0.5 + blocks * (1e-6 + block_s)));
  CHECK(transfer_s(5e8, 2, 0, true) == doctest::Approx(0.5 + blocks * (3e-6 + 3e-6 + block_s)));
  const Transfers in_memory{
      .workload = {.bytes_per_io = 4096, .sync = false}, .data_bytes = 1e9, .passes = 2, .is_memory = true};
  CHECK(predict_transfers(in_memory, device, 4096, cache).transfer_s ==
        doctest::Approx(1 + 1e9 / 4096 * (1e-6 + block_s)));
}

TEST_CASE("job time: operations that wait take their throughput, however large the page cache is") {
  const Transfers synced{.workload = {.bytes_per_io = 4096, .sync = true}, .data_bytes = 1e9, .passes = 2};
  const TransferTime time = predict_transfers(synced, disk(), 4096, cache);
  CHECK(time.transfer_s == doctest::Approx(20));
  CHECK(time.flush_s == 0);
  const Transfers in_memory{.workload = {.bytes_per_io = 4096, .sync = false}, .data_bytes = 1e9, .is_memory = true};
  CHECK(predict_transfers(in_memory, disk(), 4096, cache).flush_s == 0);
}

TEST_CASE(
    "job time: a stream that waits for its writes reads them back from the page cache, as far as memory holds it") {
  Device device = disk();
  device.cached_read_bytes_per_s = 1e10;
  const auto transfer_s = [&](double bytes, double read_share) {
    const Workload workload{.bytes_per_io = MiB, .read_share = read_share, .sync = true};
    return predict_transfers({.workload = workload, .data_bytes = bytes, .passes = 2}, device, 4096, cache).transfer_s;
  };
  CHECK(transfer_s(1e9, 0.5) == doctest::Approx(10 + 0.1));  // written at 1e8 B/s
  CHECK(transfer_s(1e9, 1) == doctest::Approx(10));          // never written: from the disk, at 2e8 B/s
  CHECK(transfer_s(8e9, 0.5) == doctest::Approx(80 + 40));   // memory holds 4e9 B
  device.cached_read_bytes_per_s.reset();
  CHECK(transfer_s(1e9, 0.5) == doctest::Approx(10 + 5));
}

TEST_CASE("job time: a flush takes the latency and the bandwidth of the drain, if the device has them") {
  Device device = disk();
  device.drain_latency_s = 0.03;
  device.drain_bytes_per_s = 2e8;
  const Transfers written{.workload = {.bytes_per_io = MiB, .sync = false}, .data_bytes = 4e8};
  CHECK(predict_transfers(written, device, 4096, cache).flush_s == doctest::Approx(0.03 + 2));
  // A copy is stored likewise, and waits for directories.
  Device source{.name = "memory"};
  source.read_bytes_per_s = 1e9;
  source.operation_latency_s = 0;
  device.operation_latency_s = 0.001;
  CHECK(predict_copy_s(4e8, {source, true}, {device}) == doctest::Approx(2 + 0.03 + 0.001));
}

TEST_CASE("job time: a file that is dirty as a whole is stored in order, in whatever order it was written") {
  Device device = disk();
  device.random_drain_bytes_per_s = 1e6;
  const auto flush_s = [&](double bytes, double passes) {
    const Workload random{.bytes_per_io = 4096, .random = true, .sync = false};
    return predict_transfers({.workload = random, .data_bytes = bytes, .passes = passes}, device, 4096, cache).flush_s;
  };
  CHECK(flush_s(5e8, 1) == doctest::Approx(5));  // at 1e8 B/s
  CHECK(flush_s(5e8, 2) == doctest::Approx(5));
  CHECK(flush_s(5e8, 0.5) == doctest::Approx(250));  // every second block: at 1e6 B/s
  CHECK(flush_s(1.5e9, 1) > 1000);                   // the kernel stores some blocks meanwhile
}

TEST_CASE("job time: random writes drain at the measured rate; large ones pay its latency less often") {
  Device device = disk();
  device.random_drain_bytes_per_s = 1e6;  // a block of 4096 B: 4.096 ms, of which 41 us are the transfer
  const auto drain = [&](std::uint64_t bytes) {
    return drain_bytes_per_s({.bytes_per_io = bytes, .random = true}, device, 4096);
  };
  CHECK(drain(4096) == doctest::Approx(1e6));
  CHECK(drain(4096000) == doctest::Approx(4096000 / (4.096e-3 - 4.096e-5 + 4.096e-2)));
  CHECK(drain_bytes_per_s({.bytes_per_io = 4096}, device, 4096) == doctest::Approx(1e8));  // sequential
  CHECK(drain(512) == doctest::Approx(512 / 4.096e-3));                                    // a block is stored for each
  device.random_drain_bytes_per_s.reset();
  device.max_iops = 100;
  CHECK(drain(4096) == doctest::Approx(409600));
}

TEST_CASE("job time: a copy is as slow as the slower of reading and storing, or as both on one device") {
  Device fast = disk(), slow = disk();
  fast.name = "fast";
  fast.read_bytes_per_s = 1e9;
  CHECK(predict_copy_s(1e9, {fast, true}, {slow}) == doctest::Approx(10));               // storing at 1e8 B/s
  CHECK(predict_copy_s(1e9, {slow, false, false}, {fast, true}) == doctest::Approx(6));  // 5 s reading + 1 s copying
  CHECK(predict_copy_s(1e9, {slow}, {slow}) == doctest::Approx(16));
  CHECK(predict_copy_s(1e9, {slow, false, true}, {slow}) == doctest::Approx(10));  // memory has the data
  slow.operation_latency_s = 0.1;
  CHECK(predict_copy_s(1, {fast, true}, {slow}) == doctest::Approx(0.2));
}
