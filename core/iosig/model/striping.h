// Striped regions of a file, and the requests that go to them.
//
// Plain data. A region is a byte range with one layout: round robin over all servers, in the order of their numbers,
// with one stripe size for each class of servers. Offsets in a region count from its start, where server 0's first
// stripe begins.
#pragma once

#include <cstdint>
#include <vector>

namespace iosig {

inline constexpr std::uint64_t default_region_bytes = std::uint64_t{64} << 20U;  ///< H2DP, section 3.3

/// Stripe size in bytes of each class of Servers, in its order; 0: the class holds none of the region. <h, s> of the
/// paper is {h, s}.
using Stripes = std::vector<std::uint64_t>;

/// One request of a client, as traced.
struct Request {
  std::uint64_t offset = 0, length = 0;
  bool is_write = false;
  double start_s = 0;         ///< only windows use it; may be negative
  std::uint32_t process = 0;  ///< only simulations use it

  bool operator==(const Request&) const = default;
};

/// The part of a client's request that is in one region.
struct RegionRequest {
  std::uint32_t process = 0, region = 0;
  std::uint64_t offset = 0, length = 0;  ///< from the region's start
  bool is_write = false;

  bool operator==(const RegionRequest&) const = default;
};

/// Requests of one region that are alike. Progression (`places` 0): request n < count begins at offset + n * stride.
/// Scattered: each begins at offset + k * stride for some k < `places`, all k equally often.
struct RequestGroup {
  std::uint64_t offset = 0;  ///< from the region's start
  std::uint64_t length = 0;  ///< of each request
  std::uint64_t stride = 0;
  std::uint64_t count = 1;
  bool is_write = false;
  std::uint64_t places = 0;

  [[nodiscard]] bool is_scattered() const { return places > 0; }
  /// At how many places requests begin, if the stride is not 0.
  [[nodiscard]] std::uint64_t place_count() const { return places > 0 ? places : count; }

  bool operator==(const RequestGroup&) const = default;
};

struct Region {
  std::uint32_t file = 0;  ///< the caller's number of the file
  std::uint64_t offset = 0, length = 0;
  std::vector<RequestGroup> groups;  ///< of one window; empty: no request

  bool operator==(const Region&) const = default;
};

}  // namespace iosig
