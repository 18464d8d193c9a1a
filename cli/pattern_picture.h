// A sequence of accesses drawn with characters: position from left to right, logical offset from bottom to top.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "iosig/model/pattern.h"

namespace iosig::cli {

/// What the picture is to be made of.
struct PictureStyle {
  std::size_t columns = 80, rows = 20;  ///< of characters: the whole width, and the height of the field
  bool has_braille = true;              ///< eight dots in a character; else two, in ASCII
  bool has_colours = false;             ///< ANSI colours by id
};

/// As the terminal at standard output allows, or 80 columns without colours where there is none. $LC_ALL, $LC_CTYPE and
/// $LANG say whether it is UTF-8; $COLUMNS goes before what the terminal says; $NO_COLOR switches colours off.
[[nodiscard]] PictureStyle picture_style();

/// Of more accesses than max_walked, sample_size are drawn, at random places of even stretches, and a line says so.
inline constexpr std::uint64_t max_walked = 1 << 24, sample_size = 1 << 17;

/// The picture with its axes, without a line end behind the last; a line without accesses. `names`: of the columns.
/// What is drawn is the column `logical`, up to its length if there is one; without names the first. Colours: `id`. Of
/// columns without names the first four are as in lookup_columns. The same every time.
[[nodiscard]] std::string pattern_picture(const Pattern& pattern, std::span<const std::string> names,
                                          const PictureStyle& style);

}  // namespace iosig::cli
