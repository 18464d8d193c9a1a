#include "iosig/cost/throughput.h"

#include <algorithm>
#include <array>
#include <utility>

namespace iosig {
namespace {

/// One operation's time by its parts; Eq. 3 is the larger of their sum and the pace that max_iops allows.
struct Operation {
  double latency_s = 0, seek_s = 0, transfer_s = 0, extra_read_s = 0, iops_s = 0;

  [[nodiscard]] double seconds() const { return std::max(latency_s + seek_s + transfer_s + extra_read_s, iops_s); }
  void add(const Operation& other, double share) {
    latency_s += share * other.latency_s;
    seek_s += share * other.seek_s;
    transfer_s += share * other.transfer_s;
    extra_read_s += share * other.extra_read_s;
  }
  [[nodiscard]] Limit largest() const {
    const std::array<std::pair<double, Limit>, 4> terms{{{transfer_s, Limit::bandwidth},
                                                         {latency_s, Limit::latency},
                                                         {seek_s, Limit::seek},
                                                         {extra_read_s, Limit::read_modify_write}}};
    return std::ranges::max_element(terms, {}, [](const auto& term) { return term.first; })->second;
  }
};

}  // namespace

bool seeks(const Device& device) {
  const bool solid =
      device.kind == DeviceKind::ram || device.kind == DeviceKind::nvram || device.kind == DeviceKind::ssd;
  return !solid && device.seek_latency_s > 0;
}

Prediction predict(const Workload& workload, const Device& device, std::uint64_t block_bytes, CostModel model) {
  const auto ds = static_cast<double>(workload.bytes_per_io);
  const std::uint64_t cs = std::max(page_bytes, block_bytes);
  const std::uint64_t blocks = (workload.bytes_per_io + cs - 1) / cs;
  const double moved = static_cast<double>(blocks) * static_cast<double>(cs);  // ts
  const bool rewrites = workload.bytes_per_io % cs != 0;                       // d
  const double seek_s = workload.random && seeks(device) ? device.seek_latency_s : 0;
  const double slot_s = device.max_iops ? 1 / *device.max_iops : 0;

  const Operation write{.latency_s = device.operation_latency_s,
                        .seek_s = seek_s,
                        .transfer_s = moved / device.write_bytes_per_s,
                        .extra_read_s = rewrites ? static_cast<double>(cs) / device.read_bytes_per_s : 0,
                        .iops_s = (rewrites ? 2 : 1) * slot_s};
  const Operation read{.latency_s = device.read_operation_latency_s.value_or(device.operation_latency_s),
                       .seek_s = seek_s,
                       .transfer_s = moved / device.read_bytes_per_s,
                       .extra_read_s = 0,
                       .iops_s = slot_s};

  const double read_share = model == CostModel::paper ? 0 : workload.read_share;
  const double operation_s = (1 - read_share) * write.seconds() + read_share * read.seconds();
  Operation mean;
  mean.add(write, 1 - read_share);
  mean.add(read, read_share);
  const bool iops_bound = operation_s > mean.seconds();
  return {.throughput_bytes_per_s = ds / operation_s,
          .operation_s = operation_s,
          .limit = iops_bound ? Limit::iops : mean.largest()};
}

}  // namespace iosig
