#include "pattern_picture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "console.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/model/access_columns.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig::cli {
namespace {

using Wide = unsigned __int128;

constexpr std::array colours = {34, 33, 32, 31, 35, 36};  // ANSI

std::size_t colour_of(std::int64_t id) {
  constexpr auto count = static_cast<std::int64_t>(colours.size());
  return static_cast<std::size_t>((id % count + count) % count);
}

/// Returns a pseudo-random hash of `value`.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdULL;
  return value ^ (value >> 29);
}

constexpr std::size_t narrowest = 40, widest = 200;

/// Maps signed numbers to unsigned ones in the same order.
std::uint64_t ordered(std::int64_t value) { return static_cast<std::uint64_t>(value) ^ (1ULL << 63); }

struct Mark {
  std::uint64_t position = 0;
  std::uint64_t first = 0, last = 0;  ///< as returned by ordered()
  std::int64_t id = 0;
};

AccessColumns drawn_columns(const Pattern& pattern, std::span<const std::string> names) {
  AccessColumns columns{0, -1, -1, -1};
  if (!names.empty())
    columns = access_columns(names);
  else if (pattern.columns > 2)
    columns = {0, 1, 2, pattern.columns > 3 ? 3 : -1};
  columns.logical = std::max(columns.logical, 0);
  return columns;
}

Mark mark_of(std::uint64_t position, std::span<const std::int64_t> vector, const AccessColumns& columns) {
  const std::int64_t begin = vector[static_cast<std::size_t>(columns.logical)];
  std::int64_t last = begin;
  if (columns.length >= 0) {
    const std::int64_t length = vector[static_cast<std::size_t>(columns.length)];
    if (length > 0 && begin <= INT64_MAX - (length - 1)) last = begin + (length - 1);
  }
  return {position, ordered(begin), ordered(last), columns.id < 0 ? 0 : vector[static_cast<std::size_t>(columns.id)]};
}

/// Calls visit(mark) for every access, or for a sample, which is the same in every call.
template <class Visit>
void for_each_mark(const Pattern& pattern, const AccessColumns& columns, Visit visit) {
  std::array<std::int64_t, max_columns> vector{};
  const std::uint64_t count = pattern.count();
  if (count <= max_walked) {
    PatternCursor cursor(pattern);
    for (std::uint64_t n = 0; cursor.next(vector); ++n) visit(mark_of(n, vector, columns));
    return;
  }
  const PatternIndex index(pattern);
  std::mt19937_64 random(1);
  const auto stretch = [&](std::uint64_t n) { return static_cast<std::uint64_t>(Wide{count} * n / sample_size); };
  for (std::uint64_t n = 0; n < sample_size; ++n) {
    const std::uint64_t position = stretch(n) + random() % (stretch(n + 1) - stretch(n));
    index.element(position, vector);
    visit(mark_of(position, vector, columns));
  }
}

/// The plot area: dots, of which each character has `wide` x `high`.
class Field {
 public:
  Field(std::size_t columns, std::size_t rows, const PictureStyle& style)
      : columns_(columns),
        rows_(rows),
        wide_(style.has_braille ? 2 : 1),
        high_(style.has_braille ? 4 : 2),
        has_colours_(style.has_colours),
        dots_(columns * rows),
        colour_(columns * rows),
        marks_(columns * rows) {}

  /// Draws one access of `count`. All values are in [low, high].
  void draw(const Mark& mark, std::uint64_t count, std::uint64_t low, std::uint64_t high) {
    const auto up = [&](std::uint64_t value) {
      return static_cast<std::size_t>(Wide{value - low} * (rows_ * high_) / (Wide{high - low} + 1));
    };
    const auto x = static_cast<std::size_t>(Wide{mark.position} * (columns_ * wide_) / count);
    const auto colour = static_cast<std::uint8_t>(colour_of(mark.id));
    occurs_[colour] = true;
    const std::size_t top = up(mark.last);
    for (std::size_t y = up(mark.first); y <= top; ++y) set(x, y, colour, mark.position);
  }

  /// Returns the numbers of the colours that occur, each in its colour.
  [[nodiscard]] std::string legend() const {
    std::string text;
    for (std::size_t colour = 0; colour < colours.size(); ++colour)
      if (occurs_[colour]) text += fmt::format(" \x1b[{}m{}\x1b[0m", colours[colour], colour);
    return text;
  }

  /// Returns a row of the picture; 0 is the top.
  [[nodiscard]] std::string row(std::size_t row) const {
    std::string text;
    std::size_t end = columns_;  // without trailing blanks
    while (end > 0 && dots_[row * columns_ + end - 1] == 0) --end;
    int before = -1;
    for (std::size_t cell = row * columns_; cell < row * columns_ + end; ++cell) {
      const int colour = dots_[cell] == 0 ? before : colours[colour_[cell]];
      if (has_colours_ && colour != before) text += fmt::format("\x1b[{}m", colour);
      before = colour;
      text += character(dots_[cell]);
    }
    if (has_colours_ && before >= 0) text += "\x1b[0m";
    return text;
  }

 private:
  /// Sets a dot. A character gets the colour of a random one of its marks. With the last mark's colour, the same rank
  /// would always hide the others when ranks write in turns.
  void set(std::size_t x, std::size_t y, std::uint8_t colour, std::uint64_t position) {
    const std::size_t cell = (rows_ - 1 - y / high_) * columns_ + x / wide_;
    dots_[cell] |= static_cast<std::uint8_t>(1u << ((high_ - 1 - y % high_) * wide_ + x % wide_));
    if (mixed(position + cell) % ++marks_[cell] == 0) colour_[cell] = colour;
  }

  /// Returns the character with these dots: bits row by row from the top, each from left to right.
  [[nodiscard]] std::string character(std::uint8_t dots) const {
    if (high_ == 2) return std::string(1, " '.:"[dots]);
    if (dots == 0) return " ";
    constexpr std::array<unsigned, 8> braille = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
    unsigned bits = 0;
    for (std::size_t dot = 0; dot < braille.size(); ++dot)
      if ((dots >> dot & 1) != 0) bits |= braille[dot];
    return {'\xe2', static_cast<char>(0xa0 | bits >> 6), static_cast<char>(0x80 | (bits & 0x3f))};  // U+2800 + bits
  }

  std::size_t columns_, rows_, wide_, high_;
  bool has_colours_;
  std::vector<std::uint8_t> dots_, colour_;
  std::vector<std::uint64_t> marks_;
  std::array<bool, colours.size()> occurs_{};
};

}  // namespace

PictureStyle picture_style() {
  const Screen screen = screen_of(STDOUT_FILENO);
  PictureStyle style{.has_braille = screen.is_utf8, .has_colours = screen.has_colours};
  if (screen.columns < SIZE_MAX) style.columns = std::clamp(screen.columns, narrowest, widest);
  if (screen.rows > 0) style.rows = std::clamp<std::size_t>(screen.rows, 12, 32) - 8;
  return style;
}

std::string pattern_picture(const Pattern& pattern, std::span<const std::string> names, const PictureStyle& style) {
  const std::uint64_t count = pattern.count();
  if (count == 0) return "no accesses";
  const AccessColumns columns = drawn_columns(pattern, names);
  std::uint64_t low = UINT64_MAX, high = 0, drawn = 0;
  for_each_mark(pattern, columns, [&](const Mark& mark) {
    low = std::min(low, mark.first);
    high = std::max(high, mark.last);
    ++drawn;
  });
  const bool is_bytes = columns.length >= 0 || !names.empty();
  const auto value_text = [&](std::uint64_t value) {
    const auto number = static_cast<std::int64_t>(value ^ (1ULL << 63));
    return is_bytes && number >= 0 ? about_bytes(static_cast<double>(number)) : fmt::format("{}", number);
  };
  std::array labels = {value_text(high), value_text(low + (high - low) / 2), value_text(low)};
  if (high - low < 2) labels[1].clear();
  if (high == low) labels[0].clear();
  const std::size_t margin = std::ranges::max(labels, {}, &std::string::size).size() + 2;
  const std::size_t width = std::max(style.columns, margin + 20) - margin, rows = std::max<std::size_t>(style.rows, 4);
  Field field(width, rows, style);
  for_each_mark(pattern, columns, [&](const Mark& mark) { field.draw(mark, count, low, high); });
  const std::array<std::string_view, 3> lines = style.has_braille ? std::array<std::string_view, 3>{"┤", "│", "└"}
                                                                  : std::array<std::string_view, 3>{"+", "|", "+"};
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    const int at = row == 0 ? 0 : row == rows / 2 ? 1 : row == rows - 1 ? 2 : -1;
    text += fmt::format("{:>{}} {}{}\n", at < 0 ? "" : labels[static_cast<std::size_t>(at)], margin - 2,
                        lines[at < 0 || labels[static_cast<std::size_t>(at)].empty() ? 1 : 0], field.row(row));
  }
  text += fmt::format("{:>{}}", "", margin - 1);
  text += lines[2];
  for (std::size_t n = 0; n < width; ++n) text += style.has_braille ? "─" : "-";
  text += fmt::format("\n{:>{}}0{:>{}}", "", margin, count - 1, width - 1);
  const std::string_view value = !names.empty() ? std::string_view(names[static_cast<std::size_t>(columns.logical)])
                                 : columns.length >= 0 ? logical_column
                                                       : "value";
  text += fmt::format("\n{:>{}}{} over position", "", margin, value);
  if (columns.id >= 0 && style.has_colours) text += fmt::format("; id modulo {}:{}", colours.size(), field.legend());
  if (drawn < count) text += fmt::format("; {} of {}, at random places", drawn, count);
  return text;
}

}  // namespace iosig::cli
