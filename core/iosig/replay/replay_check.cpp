#include "iosig/replay/replay_check.h"

#include <algorithm>
#include <memory>

#include "iosig/analyze/lookup.h"
#include "iosig/replay/worker_group.h"

namespace iosig {
namespace {

constexpr std::int64_t chunk_bytes = 1 << 20;

/// Fills `out` with the bytes of `piece` as `rank` wrote them; zeros for a hole.
void expect(const Piece& piece, std::int64_t rank, std::span<std::byte> out) {
  if (piece.is_hole)
    std::ranges::fill(out, std::byte{0});
  else
    fill(out, origin_of(rank, piece.logical, piece.physical), static_cast<std::uint64_t>(piece.logical));
}

class Checker {
 public:
  Checker(const WriteMap& map, const PatternLookup& all, bool was_in_turn)
      : map_(map), all_(all), was_in_turn_(was_in_turn), expected_(chunk_bytes), is_right_(chunk_bytes) {}

  /// Compares the bytes that were read at `offset`.
  Result<void> look_at(std::int64_t offset, std::span<const std::byte> bytes, CheckMetrics& metrics) {
    all_.find(offset, static_cast<std::int64_t>(bytes.size()),
              [&](const Piece& piece) { expect(piece, piece.id, place_of(piece.logical - offset, piece.length)); });
    if (std::ranges::equal(bytes, std::span(expected_).first(bytes.size()))) return {};
    for (std::size_t n = 0; n < bytes.size(); ++n) is_right_[n] = bytes[n] == expected_[n];
    if (!was_in_turn_)
      if (auto looked = look_at_ranks(offset, bytes); !looked) return looked;
    for (std::size_t n = 0; n < bytes.size(); ++n)
      if (!is_right_[n]) {
        if (metrics.wrong_bytes++ == 0) metrics.first_wrong = offset + static_cast<std::int64_t>(n);
      }
    return {};
  }

  /// Returns how many of these bytes more than one rank wrote.
  Result<std::int64_t> shared_bytes(std::int64_t offset, std::int64_t length) {
    struct Bound {
      std::int64_t at = 0;
      int step = 0;  ///< change of the number of ranks: 1 where a rank's bytes begin, -1 where they end
    };
    std::vector<Bound> bounds;
    std::size_t last = map_.ranks.size();
    auto found = find_of_ranks(offset, length, [&](std::size_t n, const Piece& piece) {
      const bool goes_on = n == last && bounds.back().at == piece.logical;
      last = n;
      if (goes_on)
        bounds.pop_back();
      else
        bounds.push_back({piece.logical, 1});
      bounds.push_back({piece.logical + piece.length, -1});
    });
    if (!found) return pass_on(std::move(found.error()));
    std::ranges::sort(bounds, {}, &Bound::at);
    std::int64_t shared = 0, before = 0;
    int ranks = 0;
    for (const Bound& bound : bounds) {
      if (ranks > 1) shared += bound.at - before;
      ranks += bound.step;
      before = bound.at;
    }
    return shared;
  }

 private:
  [[nodiscard]] std::span<std::byte> place_of(std::int64_t at, std::int64_t length) {
    return std::span(expected_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }

  /// Calls visit(index of the rank, piece) for every piece that a rank wrote into these bytes, rank by rank.
  template <class Visit>
  Result<void> find_of_ranks(std::int64_t offset, std::int64_t length, Visit&& visit) {
    for (std::size_t n = 0; n < map_.ranks.size(); ++n) {
      if (n == lookups_.size()) {
        auto lookup = PatternLookup::of(map_.ranks[n].writes, {.id = -1});
        if (!lookup) return pass_on(std::move(lookup.error()));
        lookups_.push_back(std::make_unique<PatternLookup>(*std::move(lookup)));
      }
      lookups_[n]->find(offset, length, [&](const Piece& piece) {
        if (!piece.is_hole) visit(n, piece);
      });
    }
    return {};
  }

  /// Accepts bytes that match the last write of any rank.
  Result<void> look_at_ranks(std::int64_t offset, std::span<const std::byte> bytes) {
    const auto length = static_cast<std::int64_t>(bytes.size());
    return find_of_ranks(offset, length, [&](std::size_t n, const Piece& piece) {
      const std::int64_t at = piece.logical - offset;
      expect(piece, map_.ranks[n].rank, place_of(at, piece.length));
      for (std::int64_t byte = at; byte < at + piece.length; ++byte) {
        const auto index = static_cast<std::size_t>(byte);
        if (bytes[index] == expected_[index]) is_right_[index] = true;
      }
    });
  }

  const WriteMap& map_;
  const PatternLookup& all_;
  bool was_in_turn_;
  std::vector<std::byte> expected_;
  std::vector<bool> is_right_;
  std::vector<std::unique_ptr<PatternLookup>> lookups_;  ///< of the first ranks; created on demand
};

/// Returns the bytes of the file that more than one rank wrote.
Result<std::int64_t> shared_bytes(const WriteMap& map, const PatternLookup& all, Checker& checker,
                                  const ReplayWatch& watch) {
  if (map.ranks.size() < 2) return 0;
  // If no byte was written twice, the sum of the writes equals the bytes covered.
  std::int64_t covered = 0;
  all.find(0, map.size, [&](const Piece& piece) { covered += piece.is_hole ? 0 : piece.length; });
  if (covered == map.bytes) return 0;
  std::int64_t shared = 0;
  for (std::int64_t at = 0; at < map.size;) {
    const Piece piece = all.piece_at(at);
    const std::int64_t left = map.size - at;
    if (piece.is_hole) {
      at += std::min(left, piece.length);
      continue;
    }
    const std::int64_t length = std::min(chunk_bytes, left);
    const auto found = checker.shared_bytes(at, length);
    if (!found) return pass_on(found.error());
    shared += *found;
    at += length;
    if (!watch(static_cast<std::uint64_t>(at))) return fail(ErrorKind::system, "interrupted");
  }
  return shared;
}

}  // namespace

Result<CheckMetrics> check_replay(const WriteMap& map, const ReplayTarget& target, bool was_in_turn,
                                  const ReplayWatch& watch) {
  CheckMetrics metrics;
  const auto merged = merged_writes(map);
  if (!merged) return pass_on(merged.error());
  const auto lookup = PatternLookup::of(merged->pattern);
  if (!lookup) return pass_on(lookup.error());
  auto source = ReplaySource::open(target);
  if (!source) return pass_on(source.error());
  Checker checker(map, *lookup, was_in_turn);
  std::vector<std::byte> bytes(chunk_bytes);
  const auto wrong_from = [&](std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (metrics.wrong_bytes == 0) metrics.first_wrong = begin;
    metrics.wrong_bytes += end - begin;
  };
  for (std::int64_t at = 0; at < map.size;) {
    const std::int64_t wanted = std::min(chunk_bytes, map.size - at);
    const double begin = steady_s();
    const auto got = source->read(at, std::span(bytes).first(static_cast<std::size_t>(wanted)));
    metrics.read_s += steady_s() - begin;
    if (!got) return pass_on(got.error());
    metrics.read_bytes += *got;
    if (auto looked = checker.look_at(at, std::span(bytes).first(static_cast<std::size_t>(*got)), metrics); !looked)
      return pass_on(std::move(looked.error()));
    if (*got < wanted) {
      wrong_from(at + *got, map.size);
      break;
    }
    const Piece piece = lookup->piece_at(at);
    at += piece.is_hole ? std::max(wanted, piece.length) : wanted;
    if (!watch(static_cast<std::uint64_t>(metrics.read_bytes))) return fail(ErrorKind::system, "interrupted");
  }
  wrong_from(map.size, source->size());
  const auto shared = shared_bytes(map, *lookup, checker, watch);
  if (!shared) return pass_on(shared.error());
  metrics.shared_bytes = *shared;
  return metrics;
}

}  // namespace iosig
