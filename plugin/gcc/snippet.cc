#include "snippet.h"

namespace iosig::gcc {

tree Snippet::new_variable(tree type) {
  const tree variable = create_tmp_var_raw(type, "iosig");
  DECL_CONTEXT(variable) = current_function_decl;
  DECL_SEEN_IN_BIND_EXPR_P(variable) = 1;
  DECL_CHAIN(variable) = variables_;
  return variables_ = variable;
}

void Snippet::add(gimple* statement) {
  gimple_set_location(statement, at_);
  gimple_seq_add_stmt(&statements_, statement);
}

tree Snippet::assign(tree type, tree value) {
  const tree variable = new_variable(type);
  add(gimple_build_assign(variable, value));
  return variable;
}

tree Snippet::assign(tree type, enum tree_code operation, tree left, tree right) {
  const tree variable = new_variable(type);
  add(gimple_build_assign(variable, operation, left, right));
  return variable;
}

void Snippet::store(tree target, tree value) { add(gimple_build_assign(target, value)); }

tree Snippet::call(tree function, std::initializer_list<tree> arguments) {
  auto_vec<tree> list;
  for (const tree argument : arguments) list.safe_push(unshare_expr(argument));
  gcall* call = gimple_build_call_vec(function, list);
  const tree type = TREE_TYPE(TREE_TYPE(function));
  const tree result = VOID_TYPE_P(type) ? NULL_TREE : new_variable(type);
  if (result != NULL_TREE) gimple_call_set_lhs(call, result);
  add(call);
  return result;
}

void Snippet::place(tree label) { add(gimple_build_label(label)); }

void Snippet::jump_unless(enum tree_code comparison, tree left, tree right, tree label) {
  const tree go_on = new_label();
  gcond* condition = gimple_build_cond(comparison, left, right, go_on, label);
  // A path may be declared as never null, for example a reference to an array. No warning about the inserted check.
  suppress_warning(condition, OPT_Wnonnull_compare);
  add(condition);
  place(go_on);
}

gimple* Snippet::take() { return gimple_build_bind(variables_, statements_, NULL_TREE); }

}  // namespace iosig::gcc
