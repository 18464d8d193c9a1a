// Searches stripe sizes for a region: Algorithm 1 of the H2DP paper, and ours.
//
// Pure, deterministic with any number of threads. Takes checked Servers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

struct StripeChoice {
  Stripes stripes;
  double seconds = 0;        ///< paper: sum of Table 2 over the requests; ours: busiest_s of the region's requests
  bool is_fallback = false;  ///< paper: no pair of its grid covers the request
  std::uint64_t tried = 0;   ///< pairs that were costed
};

struct PaperStripeOptions {
  std::uint64_t step_bytes = 4096;
  bool is_literal = false;  ///< as printed, without m h + n s = r: answers <0, step> for any request
  /// h = 0 pays the HServers' start-up, as Table 2 prints it: SServers alone are then never the best. False: servers
  /// without a byte of a request cost nothing.
  bool charges_idle = false;
  unsigned threads = 0;  ///< 0: as many as processors
};

/// Algorithm 1 for each region, without the start-up of idle servers (charges_idle): h from 0 to r / (m + n), s from h
/// + step to r / n in steps, the least sum of Table 2 over all requests; ties go to the least h, then the least s.
///
/// The model's constraint m h + n s = r is imposed as m h + n s >= r, since the grid rarely has equality. r, which the
/// paper leaves undefined for mixed sizes, is the largest. Where no pair covers r: <0, r / n rounded up to the grid>. A
/// region without requests gets the fallback of r = 1. The cost of a group is that of one request, times its number:
/// for the printed algorithm's own running time, give groups of one request. Pairs are divided among threads. Fails
/// with `usage` unless there are two classes with servers in both, and if there would be more than 10^11 pairs.
[[nodiscard]] Result<std::vector<StripeChoice>> paper_stripes(std::span<const Region> regions, const Servers& servers,
                                                              const PaperStripeOptions& options = {});

struct StripeOptions {
  std::uint64_t unit_bytes = 4096;                           ///< stripes are multiples of it, > 0
  std::uint64_t max_period_bytes = std::uint64_t{1} << 60U;  ///< the region's length: no longer period, if possible
  /// Requests that may be costed before the search ends with what it has; the closed forms are always tried.
  std::uint64_t max_effort = 1'000'000;
};

/// Returns the stripes with the least busiest_s for the mixture of all `groups` of one region; ties within 0.1 % go to
/// the lower latency, then to the longer period. Only classes with `may_use` (empty: all) get stripes. Within 1 % of
/// the best on the grid of unit_bytes, by experience (tests/decide/test_striping.cpp), not by proof.
///
/// Begins at the closed forms: for each set of used classes, (1) one period per request, where all servers end at the
/// same time (fill_servers), and (2) whole requests on single servers, in proportion to their speed. Then searches the
/// neighbourhood of the best of them, and for up to two classes a grid that gets coarser, as far as max_effort allows.
/// Without requests: stripes of the largest unit that is at most 1 MB on the first allowed class. `stripes` is empty if
/// no allowed class has servers.
[[nodiscard]] StripeChoice choose_stripes(std::span<const RequestGroup> groups, const Servers& servers,
                                          const StripeOptions& options = {}, const std::vector<bool>& may_use = {});

/// As choose_stripes, for a region among others that are used at the same time: up to three layouts. First that of
/// choose_stripes; then that with the least mean_busiest_s, and that with the least product of both times, of all that
/// were costed. Layouts whose both times are within 2 % of an earlier one's are left out.
///
/// A whole request on one server leaves the others to other regions: that takes less of all servers' time than dividing
/// it, and more of its own.
[[nodiscard]] std::vector<StripeChoice> choose_shared_stripes(std::span<const RequestGroup> groups,
                                                              const Servers& servers, const StripeOptions& options = {},
                                                              const std::vector<bool>& may_use = {});

/// As choose_stripes, for the single requests of a region, at their offsets from its start. `seconds` counts each at
/// its place, or 2^18 of them, if there are more. The period is at most the range that they use, if possible: larger
/// stripes would leave servers idle.
[[nodiscard]] StripeChoice choose_stripes_at(std::span<const Request> requests, const Servers& servers,
                                             StripeOptions options = {});

/// Returns for each class the bytes that each of its servers gets if a request of `length` bytes is divided so that it
/// ends as early as possible: the time of the slowest server max(startup + b * s_per_byte, b * network) is least.
/// Closed form: convex and piecewise linear. A class whose start-up takes longer gets 0.
[[nodiscard]] std::vector<double> fill_servers(double length, const Servers& servers, bool is_write,
                                               const std::vector<bool>& may_use = {});

}  // namespace iosig
