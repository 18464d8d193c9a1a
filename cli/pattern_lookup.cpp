#include "pattern_lookup.h"

#include <unistd.h>

#include <algorithm>

#include "iosig/analyze/lookup.h"
#include "iosig/base/files.h"
#include "iosig/format/vectors_text.h"

namespace iosig::cli {
namespace {

Result<AccessColumns> access_columns(const Pattern& pattern, const std::vector<std::string>& names) {
  if (names.empty()) return AccessColumns{.id = pattern.columns > 3 ? 3 : -1};
  if (names.size() != pattern.columns)
    return fail(ErrorKind::usage, "--columns: {} names for {} columns", names.size(), pattern.columns);
  const auto place = [&](std::string_view name) {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
  };
  const AccessColumns columns{place(logical_column), place(length_column), place(physical_column), place(id_column)};
  if (columns.logical < 0 || columns.length < 0 || columns.physical < 0)
    return fail(ErrorKind::usage, "--columns: a lookup needs logical, length and physical");
  return columns;
}

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
  const auto places = access_columns(pattern, columns);
  if (!places) return console.fail(places.error());
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
