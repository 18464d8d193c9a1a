#include "iosig/simulate/accesses.h"

#include <algorithm>
#include <utility>

#include "iosig/simulate/check.h"

namespace iosig::simulate {
namespace {

constexpr std::uint32_t max_processes = 1U << 20;

Result<void> check(std::span<const Access> accesses, const PlacedFile& file, std::uint32_t processes_per_node) {
  if (accesses.empty() || file.region_bytes == 0 || processes_per_node == 0)
    return fail(ErrorKind::usage, "{} accesses, regions of {} bytes, {} processes on a node: expected at least 1",
                accesses.size(), file.region_bytes, processes_per_node);
  for (std::size_t n = 0; n < accesses.size(); ++n) {
    const Access& access = accesses[n];
    const bool is_sound = access.process < max_processes && access.offset < bytes_limit && access.bytes < bytes_limit;
    const std::uint64_t last = access.bytes > 0 && is_sound ? access.offset + access.bytes - 1 : 0;
    if (!is_sound || last / file.region_bytes >= file.layout_of.size())
      return fail(ErrorKind::usage,
                  "access {}: {} bytes at {} by process {}: expected less than 2^20 processes, and an "
                  "end in the {} regions of {} bytes",
                  n, access.bytes, access.offset, access.process, file.layout_of.size(), file.region_bytes);
  }
  return {};
}

/// The accesses of each process, one after the other.
class Cursors {
 public:
  Cursors(std::span<const Access> accesses, const PlacedFile& file) : accesses_(accesses), file_(file) {
    for (std::size_t n = 0; n < accesses.size(); ++n) {
      const std::uint32_t process = accesses[n].process;
      if (process >= of_process_.size()) of_process_.resize(process + 1);
      if (accesses[n].bytes > 0) of_process_[process].numbers.push_back(n);
    }
  }

  [[nodiscard]] std::uint32_t processes() const { return static_cast<std::uint32_t>(of_process_.size()); }

  bool next(std::uint32_t process, ClientRequest& request) {
    Cursor& cursor = of_process_[process];
    if (cursor.at == cursor.numbers.size()) return false;
    const Access& access = accesses_[cursor.numbers[cursor.at]];
    const std::uint64_t at = access.offset + cursor.done_bytes;
    request.region = static_cast<std::uint32_t>(at / file_.region_bytes);
    request.offset = at % file_.region_bytes;
    request.bytes = std::min(access.bytes - cursor.done_bytes, file_.region_bytes - request.offset);
    request.is_write = access.is_write;
    request.layout = file_.layout_of[request.region];
    cursor.done_bytes += request.bytes;
    if (cursor.done_bytes == access.bytes) {
      cursor.done_bytes = 0;
      ++cursor.at;
    }
    return true;
  }

 private:
  struct Cursor {
    std::vector<std::size_t> numbers;
    std::size_t at = 0;
    std::uint64_t done_bytes = 0;  ///< of the access at `at`
  };
  std::span<const Access> accesses_;
  const PlacedFile& file_;
  std::vector<Cursor> of_process_;
};

}  // namespace

Result<Totals> run(const System& hardware, std::span<const Access> accesses, const PlacedFile& file,
                   std::uint32_t processes_per_node) {
  if (auto sound = check(accesses, file, processes_per_node); !sound) return pass_on(sound.error());
  if (hardware.nodes.empty()) return fail(ErrorKind::usage, "no node: expected one, of which the others are copies");
  Cursors cursors(accesses, file);
  System system = hardware;
  system.layouts = file.layouts;
  system.clients.clear();
  for (std::uint32_t n = 0; n < cursors.processes(); ++n) system.clients.push_back({.node = n / processes_per_node});
  system.nodes.assign(system.clients.back().node + 1, hardware.nodes.front());
  return run(system,
             [&](std::uint32_t client, double, ClientRequest& request) { return cursors.next(client, request); });
}

}  // namespace iosig::simulate
