// The life of one `#pragma sig`, from the parser to the call that gets its signature.
//
//   pragmas.cc    reads the text, adds a Site, and leaves a marker with the site's number among the statements
//   associate.cc  finds the call in what follows the pragma, and records the call's location in the Site
//   inject.cc     puts code before the call at that location, and removes the marker
//
// It takes these steps because no single phase suffices: the parser knows the order of statements, but only GIMPLE has
// calls that code can precede in every language and construct.
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
  bool marked = false;          ///< a marker is in the code; else the pragma is outside of functions
  bool in_template = false;     ///< a function template, perhaps never instantiated
  bool seen = false;            ///< its marker was in a function that GCC compiles
  tree class_type = NULL_TREE;  ///< the enclosing class, if any
  bool told = false;            ///< an error in the following code was reported
  bool in_place = false;        ///< the plugin set its call's location: only the first call there counts
  bool found = false;           ///< a call gets the signature
};

inline std::vector<Site> sites;
/// Key: location, without its range, of the call that gets the signature. The unit has no other open there.
inline std::unordered_map<location_t, std::size_t> site_of_call;

/// A statement that does nothing in every language, also in constant expressions: a branch prediction without weight.
/// All passes and dumps of GCC support it, so a marker may remain where the plugin never sees it.
[[nodiscard]] tree build_marker(std::size_t site, location_t at);
/// The site of this marker; -1 if the statement is none.
[[nodiscard]] int marked_site(tree statement);
/// Detaches the marker from its site.
void neutralise_marker(tree statement);
[[nodiscard]] bool is_marker(const gimple* statement);

/// Returns the tree and protects it from GCC's garbage collector.
tree keep(tree node);
void register_kept_trees(const char* plugin_name);

/// Whether `a` precedes `b` by line and column, macros counted where they are expanded. Both must be in the same file.
[[nodiscard]] bool is_before(location_t a, location_t b);

}  // namespace iosig::gcc
