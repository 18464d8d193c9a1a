// One `#pragma sig` from the moment it is read until its signature reaches a call.
//
//   pragmas.cc    reads the text, adds a Site, and leaves a marker with the site's number among the statements
//   associate.cc  finds the call in what follows the pragma, and records the call's location in the Site
//   inject.cc     puts code before the call at that location, and removes the marker
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
  bool marked = false;          ///< a marker stands in the code; else the pragma is outside of functions
  bool in_template = false;     ///< of functions; perhaps no unit instantiates it
  bool seen = false;            ///< its marker was among the statements of a function that GCC compiles
  tree class_type = NULL_TREE;  ///< the class that it stands in, or none
  bool told = false;            ///< what is wrong with the code that follows has been said
  bool in_place = false;        ///< its call got its location from us: only the first one there is meant
  bool found = false;           ///< a call that gets the signature
};

inline std::vector<Site> sites;
/// By the location, without its range, of the call that gets the signature. No other open of the unit is there.
inline std::unordered_map<location_t, std::size_t> site_of_call;

/// A statement that does nothing in every language, in constant expressions too: a branch prediction of no weight.
/// Every pass and dump of GCC understands it, so a marker may stay where the plugin never meets it.
[[nodiscard]] tree build_marker(std::size_t site, location_t at);
/// The site whose marker this statement is, or -1.
[[nodiscard]] int marked_site(tree statement);
/// It is no longer known which site's marker this is.
void neutralise_marker(tree statement);
[[nodiscard]] bool is_marker(const gimple* statement);

/// The tree, which GCC's garbage collector leaves alone from now on.
tree keep(tree node);
void register_kept_trees(const char* plugin_name);

/// Order in the text of the program, macros counted where they are expanded.
[[nodiscard]] bool is_before(location_t a, location_t b);

}  // namespace iosig::gcc
