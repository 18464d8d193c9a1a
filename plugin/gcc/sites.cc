#include "sites.h"

namespace iosig::gcc {

// The predictor of a marker is -1 - site, which is none of the compiler's, until the marker is neutralised.

tree build_marker(std::size_t site, location_t at) {
  const tree marker =
      build1(PREDICT_EXPR, void_type_node, build_int_cst(integer_type_node, -1 - static_cast<HOST_WIDE_INT>(site)));
  SET_EXPR_LOCATION(marker, at);
  return marker;
}

int marked_site(tree statement) {
  if (TREE_CODE(statement) != PREDICT_EXPR) return -1;
  const HOST_WIDE_INT predictor = tree_to_shwi(TREE_OPERAND(statement, 0));
  return predictor < 0 ? static_cast<int>(-1 - predictor) : -1;
}

void neutralise_marker(tree statement) {
  TREE_OPERAND(statement, 0) = build_int_cst(integer_type_node, PRED_NO_PREDICTION);
}

bool is_marker(const gimple* statement) {
  return gimple_code(statement) == GIMPLE_PREDICT && gimple_predict_predictor(statement) == PRED_NO_PREDICTION;
}

bool is_before(location_t a, location_t b) {
  const expanded_location first = expand_location(a);
  const expanded_location second = expand_location(b);
  return first.line != second.line ? first.line < second.line : first.column < second.column;
}

}  // namespace iosig::gcc
