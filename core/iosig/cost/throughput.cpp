#include "iosig/cost/throughput.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace iosig {
namespace {

/// The parts of one operation's time; Eq. 3 is the maximum of their sum and the interval that max_iops allows.
struct Operation {
  double latency_s = 0, seek_s = 0, transfer_s = 0, extra_read_s = 0, iops_s = 0;
  double moved_bytes = 0;  ///< in transfer_s

  [[nodiscard]] double seconds() const { return std::max(latency_s + seek_s + transfer_s + extra_read_s, iops_s); }
  void move(double bytes, double bytes_per_s) {
    moved_bytes = bytes;
    transfer_s = bytes / bytes_per_s;
  }
  void add(const Operation& other, double share) {
    latency_s += share * other.latency_s;
    seek_s += share * other.seek_s;
    transfer_s += share * other.transfer_s;
    extra_read_s += share * other.extra_read_s;
    moved_bytes += share * other.moved_bytes;
  }
  [[nodiscard]] Limit largest() const {
    const std::array<std::pair<double, Limit>, 4> terms{{{transfer_s, Limit::bandwidth},
                                                         {latency_s, Limit::latency},
                                                         {seek_s, Limit::seek},
                                                         {extra_read_s, Limit::read_modify_write}}};
    return std::ranges::max_element(terms, {}, [](const auto& term) { return term.first; })->second;
  }
};

/// A workload in blocks of a file system: ts and d of Eq. 3.
struct Blocks {
  double block_bytes, chunk_bytes, moved_bytes;
  bool unaligned;

  Blocks(std::uint64_t bytes_per_io, std::uint64_t block)
      : block_bytes(static_cast<double>(block)),
        chunk_bytes(static_cast<double>(bytes_per_io)),
        moved_bytes(block_bytes * std::ceil(chunk_bytes / block_bytes)),
        unaligned(bytes_per_io % block != 0) {}
  /// Returns the mean time of a sequential operation when the first in each block takes another time than the others.
  [[nodiscard]] double shared(double first_s, double other_s) const {
    const double firsts = std::min(1.0, chunk_bytes / block_bytes);
    return firsts * first_s + (1 - firsts) * other_s;
  }
  /// Returns how many blocks a write of this size covers partly, averaged over its positions.
  [[nodiscard]] double partial() const { return unaligned ? std::min(2.0, 1 + chunk_bytes / block_bytes) : 0; }
};

/// Returns a write according to Eq. 3.
Operation eq3(const Blocks& blocks, bool random, const Device& device, double slot_s) {
  Operation write{.latency_s = device.operation_latency_s,
                  .seek_s = random && seeks(device) ? device.seek_latency_s : 0,
                  .extra_read_s = blocks.unaligned ? blocks.block_bytes / device.read_bytes_per_s : 0,
                  .iops_s = (blocks.unaligned ? 2 : 1) * slot_s};
  write.move(blocks.moved_bytes, device.write_bytes_per_s);
  return write;
}

/// Returns a latency of `whole` seconds that includes the device's seek.
Operation latency_with_seek(double whole, const Device& device) {
  const double seek_s = seeks(device) ? std::min(device.seek_latency_s, whole) : 0;
  return {.latency_s = whole - seek_s, .seek_s = seek_s};
}

Operation mixed_read(const Blocks& blocks, bool random, bool sync, const Device& device, double slot_s) {
  const bool ahead = !sync && device.buffered_read_bytes_per_s;
  const double bytes_per_s = ahead ? *device.buffered_read_bytes_per_s : device.read_bytes_per_s;
  if (ahead && !random) {
    Operation read{.latency_s = device.buffered_read_latency_s.value_or(0)};
    read.move(blocks.chunk_bytes, bytes_per_s);
    return read;
  }
  Operation read{.latency_s = device.read_operation_latency_s.value_or(device.operation_latency_s)};
  if (random && device.random_read_latency_s)
    read = latency_with_seek(*device.random_read_latency_s, device);
  else if (random && seeks(device))
    read.seek_s = device.seek_latency_s;
  read.iops_s = slot_s;
  read.move(blocks.moved_bytes, bytes_per_s);
  if (!random && device.random_read_latency_s) {
    read.latency_s = blocks.shared(read.latency_s, device.buffered_read_latency_s.value_or(0));
    read.iops_s = blocks.shared(read.iops_s, 0);
    read.move(blocks.chunk_bytes, bytes_per_s);
  }
  return read;
}

Operation mixed_write(const Blocks& blocks, const Workload& workload, const Device& device, double slot_s) {
  const bool random = workload.random, sync = workload.sync;
  const double new_share = sync ? workload.new_share : 0;
  const bool copies = !sync && device.buffered_write_bytes_per_s;
  if (!copies && !device.random_write_latency_s) return eq3(blocks, random, device, slot_s);
  Operation write;
  if (copies) {
    const double new_block_s = device.buffered_write_latency_s.value_or(0);
    const double old_block_s = device.buffered_random_write_latency_s.value_or(new_block_s);
    write.latency_s = random ? old_block_s + workload.new_share * std::max(0.0, new_block_s - old_block_s)
                             : blocks.shared(new_block_s, device.buffered_small_write_latency_s.value_or(new_block_s));
    write.move(blocks.chunk_bytes, *device.buffered_write_bytes_per_s);
  } else {
    const double old_s = random ? *device.random_write_latency_s : 0;
    const double new_s = device.random_new_write_latency_s.value_or(old_s);
    write = random ? latency_with_seek(new_share * new_s + (1 - new_share) * old_s, device)
                   : Operation{.latency_s = device.operation_latency_s};
    write.iops_s = slot_s;
    write.move(blocks.moved_bytes, device.write_bytes_per_s);
  }
  if (random && blocks.unaligned) {
    const auto block = static_cast<std::uint64_t>(blocks.block_bytes);
    const auto block_read_s = [&](bool anywhere) {
      return mixed_read(Blocks(block, block), anywhere, true, device, slot_s).seconds();
    };
    const double far_s = device.rewrite_latency_s.value_or(block_read_s(true));
    const double near_s = std::min(far_s, block_read_s(false));
    write.extra_read_s = copies ? far_s + (blocks.partial() - 1) * near_s : (1 - new_share) * blocks.partial() * near_s;
  }
  return write;
}

}  // namespace

bool seeks(const Device& device) {
  const bool solid =
      device.kind == DeviceKind::ram || device.kind == DeviceKind::nvram || device.kind == DeviceKind::ssd;
  return !solid && device.seek_latency_s > 0;
}

Prediction predict(const Workload& workload, const Device& device, std::uint64_t block_bytes, CostModel model) {
  const Blocks blocks(workload.bytes_per_io, std::max(page_bytes, block_bytes));  // cs
  const double slot_s = device.max_iops ? 1 / *device.max_iops : 0;
  const bool paper = model == CostModel::paper;
  const double read_share = paper ? 0 : workload.read_share;
  const Operation write =
      paper ? eq3(blocks, workload.random, device, slot_s) : mixed_write(blocks, workload, device, slot_s);
  const Operation read = mixed_read(blocks, workload.random, workload.sync, device, slot_s);
  const double operation_s = (1 - read_share) * write.seconds() + read_share * read.seconds();
  Operation mean;
  mean.add(write, 1 - read_share);
  mean.add(read, read_share);
  constexpr double rounding = 1e-9;
  const bool iops_bound = device.max_iops && operation_s > mean.seconds() * (1 + rounding);
  return {.throughput_bytes_per_s = blocks.chunk_bytes / operation_s,
          .operation_s = operation_s,
          .limit = iops_bound ? Limit::iops : mean.largest(),
          .latency_s = mean.latency_s,
          .seek_s = mean.seek_s,
          .bandwidth_bytes_per_s = mean.moved_bytes / mean.transfer_s};
}

}  // namespace iosig
