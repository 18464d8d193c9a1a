// Fuzzes write maps as text: what is read comes back from the map's patterns write by write, in the order of each rank;
// and of small maps every byte is, merged and looked up, that of the last line that wrote it.
#include <map>

#include "iosig/analyze/lookup.h"
#include "iosig/model/pattern_cursor.h"
#include "iosig/replay/replay_turns.h"
#include "iosig/replay/write_map_text.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

constexpr std::int64_t small_file = 2000;
constexpr std::size_t few = 200;

void hold_bytes(const WriteMap& map, const std::vector<MappedWrite>& writes) {
  struct Byte {
    std::int64_t rank = -1, physical = 0;
  };
  std::vector<Byte> file(static_cast<std::size_t>(map.size));
  std::map<std::int64_t, std::int64_t> physical;
  for (const MappedWrite& write : writes)
    for (std::int64_t n = 0; n < write.length; ++n)
      file[static_cast<std::size_t>(write.offset + n)] = {write.rank, physical[write.rank]++};
  const auto merged = merged_writes(map);
  hold(merged.has_value(), "what was read can be merged");
  const auto lookup = PatternLookup::of(merged->pattern);
  hold(lookup.has_value(), "what was merged can be looked up");
  hold(lookup->size() == map.size, "the file ends where the last write does");
  lookup->find(0, map.size, [&](const Piece& piece) {
    for (std::int64_t n = 0; n < piece.length; ++n) {
      const Byte& byte = file[static_cast<std::size_t>(piece.logical + n)];
      hold(piece.is_hole == (byte.rank < 0), "nobody wrote a hole");
      hold(piece.is_hole || (piece.id == byte.rank && piece.physical + n == byte.physical), "the last write stands");
    }
  });
}

}  // namespace

void try_one(std::string_view text) {
  WriteMapLines lines("map");
  WriteMapBuilder builder(1000);
  std::vector<MappedWrite> writes;
  for (const std::string_view line : split(text, '\n')) {
    MappedWrite write;
    const auto read = lines.read(line, write);
    if (!read) {
      hold(read.error().kind == ErrorKind::bad_input, "a refusal is bad input");
      hold(fuzz::names_a_line(read.error().message, "map"), "a refusal names its line", read.error().message);
      break;
    }
    if (*read && builder.add(write.rank, write.offset, write.length) && write.rank < 1000) writes.push_back(write);
  }
  const WriteMap map = builder.finish();
  hold(map.writes == writes.size(), "every write is counted");
  std::uint64_t next = 0;
  RankTurns turns(map, 0, 1, true);
  for (Turn turn; turns.next(turn); ++next) {
    hold(turn.sequence == next, "turns come in the order of the lines");
    const MappedWrite& write = writes[next];
    hold(turns.rank(turn.local_rank) == write.rank && turn.offset == write.offset && turn.length == write.length,
         "a turn is its line");
  }
  hold(next == writes.size(), "every line has its turn");
  if (map.size <= small_file && writes.size() <= few) hold_bytes(map, writes);
}
