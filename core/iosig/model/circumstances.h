// Inputs of a choice besides the signature and the storage description.
//
// Plain data, so a choice can be repeated elsewhere. enact/circumstances gathers it on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "iosig/base/page_cache.h"
#include "iosig/model/signature.h"

namespace iosig {

/// The place that the program asked for.
struct Home {
  std::string mount_point;  ///< path of the mount point of the description that it lies on; empty: it is not described
};

struct Circumstances {
  Policy policy = Policy::job;
  std::optional<Home> home = {};          ///< absent: no path is known, as in `iosig choose` without --home
  Residence residence = Residence::rest;  ///< of a signature that declares neither home nor rest
  double min_gain = default_min_gain;     ///< another mount point must save this share of the time at home
  double redirect_s = 0;                  ///< what a redirect itself costs: making the link, without the data
  double settle_s = 0;                    ///< what bringing data home costs, without the data: the command that does it
  PageCache page_cache = {};
  std::uint64_t coming_home_bytes = 0;  ///< of other streams that will be brought home, to the file system of `home`

  static constexpr double default_min_gain = 0.2;
};

}  // namespace iosig
