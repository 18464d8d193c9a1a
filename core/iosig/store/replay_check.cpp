#include "iosig/store/replay_check.h"

#include <algorithm>
#include <memory>

#include "iosig/analyze/lookup.h"
#include "iosig/base/team.h"

namespace iosig {
namespace {

constexpr std::int64_t chunk_bytes = 1 << 20;

/// What should be in `out`, the bytes of `piece` as `rank`, if it is one's, wrote them.
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

  /// Compares the bytes read from `offset` on.
  Result<void> look_at(std::int64_t offset, std::span<const std::byte> bytes, CheckFigures& figures) {
    all_.find(offset, static_cast<std::int64_t>(bytes.size()),
              [&](const Piece& piece) { expect(piece, piece.id, place_of(piece.logical - offset, piece.length)); });
    if (std::ranges::equal(bytes, std::span(expected_).first(bytes.size()))) return {};
    for (std::size_t n = 0; n < bytes.size(); ++n) is_right_[n] = bytes[n] == expected_[n];
    if (!was_in_turn_)
      if (auto looked = look_at_ranks(offset, bytes); !looked) return looked;
    for (std::size_t n = 0; n < bytes.size(); ++n)
      if (!is_right_[n]) {
        if (figures.wrong_bytes++ == 0) figures.first_wrong = offset + static_cast<std::int64_t>(n);
      }
    return {};
  }

 private:
  [[nodiscard]] std::span<std::byte> place_of(std::int64_t at, std::int64_t length) {
    return std::span(expected_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  }

  /// Bytes that are as any rank left them are right, too.
  Result<void> look_at_ranks(std::int64_t offset, std::span<const std::byte> bytes) {
    for (std::size_t n = 0; n < map_.ranks.size(); ++n) {
      if (n == lookups_.size()) {
        auto lookup = PatternLookup::of(map_.ranks[n].writes, {.id = -1});
        if (!lookup) return pass_on(std::move(lookup.error()));
        lookups_.push_back(std::make_unique<PatternLookup>(*std::move(lookup)));
      }
      lookups_[n]->find(offset, static_cast<std::int64_t>(bytes.size()), [&](const Piece& piece) {
        if (piece.is_hole) return;
        const std::int64_t at = piece.logical - offset;
        expect(piece, map_.ranks[n].rank, place_of(at, piece.length));
        for (std::int64_t byte = at; byte < at + piece.length; ++byte) {
          const auto index = static_cast<std::size_t>(byte);
          if (bytes[index] == expected_[index]) is_right_[index] = true;
        }
      });
    }
    return {};
  }

  const WriteMap& map_;
  const PatternLookup& all_;
  bool was_in_turn_;
  std::vector<std::byte> expected_;
  std::vector<bool> is_right_;
  std::vector<std::unique_ptr<PatternLookup>> lookups_;  ///< of the first ranks; made when they are needed
};

}  // namespace

Result<CheckFigures> check_replay(const WriteMap& map, const ReplayTarget& target, bool was_in_turn,
                                  const ReplayWatch& watch) {
  CheckFigures figures;
  const auto merged = merged_writes(map);
  if (!merged) return pass_on(merged.error());
  figures.interleaved = merged->interleaved;
  const auto lookup = PatternLookup::of(merged->pattern);
  if (!lookup) return pass_on(lookup.error());
  auto source = ReplaySource::open(target);
  if (!source) return pass_on(source.error());
  Checker checker(map, *lookup, was_in_turn);
  std::vector<std::byte> bytes(chunk_bytes);
  const auto wrong_from = [&](std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (figures.wrong_bytes == 0) figures.first_wrong = begin;
    figures.wrong_bytes += end - begin;
  };
  for (std::int64_t at = 0; at < map.size;) {
    const std::int64_t wanted = std::min(chunk_bytes, map.size - at);
    const double begin = steady_s();
    const auto got = source->read(at, std::span(bytes).first(static_cast<std::size_t>(wanted)));
    figures.read_s += steady_s() - begin;
    if (!got) return pass_on(got.error());
    figures.read_bytes += *got;
    if (auto looked = checker.look_at(at, std::span(bytes).first(static_cast<std::size_t>(*got)), figures); !looked)
      return pass_on(std::move(looked.error()));
    if (*got < wanted) {
      wrong_from(at + *got, map.size);
      break;
    }
    const Piece piece = lookup->piece_at(at);
    at += piece.is_hole ? std::max(wanted, piece.length) : wanted;
    if (!watch(static_cast<std::uint64_t>(figures.read_bytes))) return fail(ErrorKind::system, "interrupted");
  }
  wrong_from(map.size, source->size());
  return figures;
}

}  // namespace iosig
