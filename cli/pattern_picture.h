// Draws a sequence of accesses with characters: position from left to right, logical offset from bottom to top.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "iosig/model/pattern.h"

namespace iosig::cli {

/// Size and characters of the picture.
struct PictureStyle {
  std::size_t columns = 80, rows = 20;  ///< in characters: total width, and height of the plot area
  bool has_braille = true;              ///< eight dots per character; else two, in ASCII
  bool has_colours = false;             ///< ANSI colours by id
};

/// The style for the terminal at stdout, or 80 columns without colours if there is none. $LC_ALL, $LC_CTYPE or $LANG
/// selects UTF-8; $COLUMNS overrides the terminal's width; $NO_COLOR disables colours.
[[nodiscard]] PictureStyle picture_style();

/// A pattern of more than max_walked accesses is sampled: sample_size accesses, one at a random position of each batch
/// of equal size. A line below the picture says so.
inline constexpr std::uint64_t max_walked = 1 << 24, sample_size = 1 << 17;

/// The picture with its axes, without a final newline, or one line if there are no accesses. It is deterministic.
/// `names` are the column names. It shows `logical`, up to its length if there is one, coloured by `id`. Three or more
/// unnamed columns are taken as by lookup_columns; otherwise the first column is drawn.
[[nodiscard]] std::string pattern_picture(const Pattern& pattern, std::span<const std::string> names,
                                          const PictureStyle& style);

}  // namespace iosig::cli
