// One `#pragma sig` from the moment it is read until its signature reaches a call.
//
//   pragmas.cc    reads the text, adds a Site, and leaves a marker statement with the site's number in the code
//   associate.cc  finds the call in what follows the marker, and records the call's location in the Site
//   inject.cc     puts code before that call, and removes the marker
//
// The detour is needed because no single moment has it all: the parser knows the order of statements, only GIMPLE has
// calls that can be preceded by code in every language and construct.
#pragma once

#include <string>
#include <vector>

#include "gcc.h"
#include "iosig/model/signature.h"

namespace iosig::gcc {

struct Site {
  Signature signature;
  std::string text;  ///< canonical
  location_t at = UNKNOWN_LOCATION;
  bool marked = false;   ///< a marker stands in the code; else the call is found by location alone
  bool visited = false;  ///< associate has seen the marker
  bool used = false;     ///< a call got the signature
  /// Of the call that associate chose; UNKNOWN_LOCATION for some objects that C++ constructs in place.
  std::optional<location_t> call;
};

inline std::vector<Site> sites;

/// The marker: an empty `asm volatile` that holds the site's number as a comment.
[[nodiscard]] tree build_marker(std::size_t site, location_t at);
/// The site of the marker with this assembler text, or -1.
[[nodiscard]] int marked_site(const char* assembler_text);

/// Order in the text of the program, macros counted where they are expanded.
[[nodiscard]] bool is_before(location_t a, location_t b);

}  // namespace iosig::gcc
