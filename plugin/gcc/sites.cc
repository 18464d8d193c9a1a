#include "sites.h"

namespace iosig::gcc {

namespace {

vec<tree, va_gc>* kept;

/// Maps the operand of each marker to its site. The operand is the number PRED_NO_PREDICTION as a separate tree per
/// marker; copies of a marker share it.
std::unordered_map<tree, int> site_of_operand;

tree no_prediction() { return build_int_cst(integer_type_node, PRED_NO_PREDICTION); }

}  // namespace

tree keep(tree node) {
  vec_safe_push(kept, node);
  return node;
}

void register_kept_trees(const char* plugin_name) {
  static const ggc_root_tab roots[] = {{&kept, 1, sizeof kept, &gt_ggc_mx_vec_tree_va_gc_, &gt_pch_nx_vec_tree_va_gc_},
                                       LAST_GGC_ROOT_TAB};
  register_callback(plugin_name, PLUGIN_REGISTER_GGC_ROOTS, nullptr, const_cast<ggc_root_tab*>(roots));
}

tree build_marker(std::size_t site, location_t at) {
  const tree operand = keep(copy_node(no_prediction()));
  site_of_operand.emplace(operand, static_cast<int>(site));
  const tree marker = build1(PREDICT_EXPR, void_type_node, operand);
  SET_EXPR_LOCATION(marker, at);
  return marker;
}

int marked_site(tree statement) {
  if (TREE_CODE(statement) != PREDICT_EXPR) return -1;
  const auto found = site_of_operand.find(TREE_OPERAND(statement, 0));
  return found == site_of_operand.end() ? -1 : found->second;
}

void neutralise_marker(tree statement) { TREE_OPERAND(statement, 0) = no_prediction(); }

bool is_marker(const gimple* statement) {
  return gimple_code(statement) == GIMPLE_PREDICT && gimple_predict_predictor(statement) == PRED_NO_PREDICTION;
}

bool is_before(location_t a, location_t b) {
  const expanded_location first = expand_location(a);
  const expanded_location second = expand_location(b);
  return first.line != second.line ? first.line < second.line : first.column < second.column;
}

}  // namespace iosig::gcc
