// Accesses as loops: what a workload of this directory is made of, and the walk through it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace iosig::workloads {

/// `count` times, `stride_bytes` further each time.
struct Loop {
  std::uint64_t count = 1, stride_bytes = 0;
};

/// Extents of one length at `offset_bytes` and on from there; loops outermost first. A count of 0: no extent at all.
struct Nest {
  std::uint64_t offset_bytes = 0, length_bytes = 0;
  std::array<Loop, 3> loops{};
  bool is_shared = false;  ///< every rank writes the same bytes here
};

/// One rank's nests by index from 0, one after the other; nothing behind the last. Pure: the same index, the same nest.
using Nests = std::function<std::optional<Nest>(std::uint64_t index)>;

/// What one request transfers.
struct Extent {
  std::uint64_t offset_bytes = 0, length_bytes = 0;
  bool is_shared = false;
};

/// Walks through nests, extent by extent.
class Walk {
 public:
  /// `request_bytes` > 0 cuts extents as FUSE does (fuse_perform_write): a request ends where the page of its first
  /// byte began plus `request_bytes`, a multiple of 4 KiB.
  explicit Walk(Nests nests, std::uint64_t request_bytes = 0)
      : nests_(std::move(nests)), request_bytes_(request_bytes) {}

  /// Nothing when the walk is over.
  [[nodiscard]] std::optional<Extent> next();

 private:
  [[nodiscard]] std::optional<Extent> next_of_nests();

  Nests nests_;
  std::uint64_t request_bytes_;
  std::uint64_t index_ = 0;              ///< of the next nest
  std::optional<Nest> nest_;             ///< that the walk is in
  std::array<std::uint64_t, 3> turn_{};  ///< of its loops
  Extent uncut_;                         ///< what is left of an extent that is cut
};

/// Products and sums that end at UINT64_MAX instead of starting again at 0: too large stays too large.
[[nodiscard]] std::uint64_t product(std::initializer_list<std::uint64_t> factors);
[[nodiscard]] std::uint64_t sum(std::initializer_list<std::uint64_t> terms);

}  // namespace iosig::workloads
