#include "pattern_lookup.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "iosig/analyze/lookup.h"
#include "iosig/base/files.h"

namespace iosig::cli {
namespace {

nlohmann::ordered_json piece_json(const Piece& piece) {
  nlohmann::ordered_json json = {{"logical", piece.logical}, {"length", piece.length}};
  if (piece.is_hole)
    json["hole"] = true;
  else
    json.update({{"id", piece.id}, {"physical", piece.physical}});
  return json;
}

}  // namespace

int show_pieces(const Pattern& pattern, const std::vector<std::string>& columns, const std::string& source,
                std::int64_t offset, std::int64_t length, Console& console) {
  const auto places = lookup_columns(columns, pattern.columns);
  if (!places)
    return console.fail({ErrorKind::bad_input,
                         fmt::format("{}: {}; it has {}", source, places.error().message, fmt::join(columns, ","))});
  const auto lookup = PatternLookup::of(pattern, *places);
  if (!lookup) return console.fail({lookup.error().kind, fmt::format("{}: {}", source, lookup.error().message)});
  PieceCursor cursor(*lookup, offset, length);
  Piece piece;
  if (console.json) {
    nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
    while (cursor.next(piece)) pieces.push_back(piece_json(piece));
    console.say_json(pattern_lookup_schema,
                     {{"offset", offset}, {"length", length}, {"size", lookup->size()}, {"pieces", std::move(pieces)}});
    return yes;
  }
  std::string text;
  for (bool has_more = true; has_more;) {
    has_more = cursor.next(piece);
    if (has_more)
      text += piece.is_hole ? fmt::format("{} {} hole\n", piece.logical, piece.length)
                            : fmt::format("{} {} {} {}\n", piece.logical, piece.length, piece.id, piece.physical);
    if (has_more && text.size() < (1 << 16)) continue;
    if (auto written = write_all(STDOUT_FILENO, text, "standard output"); !written)
      return console.fail(written.error());
    text.clear();
  }
  return yes;
}

}  // namespace iosig::cli
