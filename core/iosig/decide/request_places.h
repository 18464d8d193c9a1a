// Where the requests of one length and kind begin in a region, as few groups that tell hot parts from others.
//
// A layout is only as good as the description of the requests: if all of them are for one megabyte of a region of 64
// MB, large stripes put them on one server. Pure, deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/model/striping.h"

namespace iosig {

/// Requests that begin in one region, all of one length and kind, in any order.
class RequestPlaces {
 public:
  RequestPlaces(std::uint64_t length, bool is_write) : length_(length), is_write_(is_write) {}

  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] bool is_write() const { return is_write_; }
  void add(std::uint64_t offset);
  /// Adds a group of this length and kind.
  void add(const RequestGroup& group);
  /// Takes away one request, which was added at `offset`.
  void drop(std::uint64_t offset) { dropped_.push_back(offset); }

  /// Returns groups with as many requests; none if all were dropped. `share` > 0: how many such results the region has;
  /// the more, the fewer groups in each.
  ///
  /// - Evenly spaced places with equally many requests: one group.
  /// - Up to 128 places: one group each, unless there are 512 requests or more and all places are used alike.
  /// - Otherwise scattered groups, one for each part of the range with another density than its neighbours: at most 16.
  ///   A part is cut in two where the likelihood gains most, and more than chance explains.
  /// - Progressions of more than 4096 requests stay groups, joined where they overlap, and beyond 16.
  [[nodiscard]] std::vector<RequestGroup> groups(std::size_t share) const;

 private:
  [[nodiscard]] RequestGroup at(std::uint64_t offset, std::uint64_t count) const;

  std::uint64_t length_;
  bool is_write_;
  std::vector<std::uint64_t> offsets_;  ///< of single requests
  std::vector<RequestGroup> longer_;    ///< groups of several
  std::vector<std::uint64_t> dropped_;
};

}  // namespace iosig
