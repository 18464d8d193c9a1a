// Builds a piece of GIMPLE: straight-line code with forward jumps, with its temporaries in a scope of its own.
//
// The scope is required: GCC silently miscompiles a function-wide temporary that is used inside an OpenMP region.
#pragma once

#include <initializer_list>

#include "gcc.h"

namespace iosig::gcc {

class Snippet {
 public:
  /// All added statements get the location `at`.
  explicit Snippet(location_t at) : at_(at) {}

  /// Returns a new temporary that holds `value`.
  tree assign(tree type, tree value);
  tree assign(tree type, enum tree_code operation, tree left, tree right);
  void store(tree target, tree value);
  /// Returns a temporary with the result, or NULL_TREE for a void function.
  tree call(tree function, std::initializer_list<tree> arguments);

  [[nodiscard]] tree new_label() const { return create_artificial_label(at_); }
  void place(tree label);
  void jump_unless(enum tree_code comparison, tree left, tree right, tree label);

  /// Returns the whole as one statement; the snippet is then empty.
  [[nodiscard]] gimple* take();

 private:
  tree new_variable(tree type);
  void add(gimple* statement);

  location_t at_;
  gimple_seq statements_ = nullptr;
  tree variables_ = NULL_TREE;
};

}  // namespace iosig::gcc
