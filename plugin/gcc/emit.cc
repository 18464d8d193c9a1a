#include "emit.h"

#include <fcntl.h>

namespace iosig::gcc {

tree outside_function(const char* name, tree type, bool weak) {
  const tree assembler_name = get_identifier(name);
  if (const symtab_node* known = symtab_node::get_for_asmname(assembler_name))
    if (TREE_CODE(known->decl) == FUNCTION_DECL) return known->decl;
  const tree function = build_fn_decl(name, type);
  SET_DECL_ASSEMBLER_NAME(function, assembler_name);
  TREE_NOTHROW(function) = 1;
  if (weak) declare_weak(function);
  return function;
}

tree char_pointer_type() { return build_pointer_type(build_qualified_type(char_type_node, TYPE_QUAL_CONST)); }
tree string_constant(const std::string& text) { return build_string_literal(text.size() + 1, text.c_str()); }
tree int_constant(int value) { return build_int_cst(integer_type_node, value); }

tree OpenCall::argument(int index, tree otherwise) const {
  if (index < 0 || static_cast<unsigned>(index) >= gimple_call_num_args(call)) return otherwise;
  return unshare_expr(gimple_call_arg(call, index));
}

tree OpenCall::path(Snippet& code) const {
  const tree given = argument(opener.path);
  if (!opener.path_is_object) return given;
  const tree first_word = build2(MEM_REF, char_pointer_type(), given, build_zero_cst(ptr_type_node));
  return code.assign(char_pointer_type(), first_word);
}

tree OpenCall::mode(Snippet& code) const {
  const tree given = argument(opener.mode);
  if (given == NULL_TREE) return int_constant(opener.mode_bits);
  if (tree_fits_shwi_p(given)) return int_constant(static_cast<int>(tree_to_shwi(given)) | opener.mode_bits);
  const tree as_int = code.assign(integer_type_node, NOP_EXPR, given, NULL_TREE);
  if (opener.mode_bits == 0) return as_int;
  return code.assign(integer_type_node, BIT_IOR_EXPR, as_int, int_constant(opener.mode_bits));
}

tree OpenCall::dirfd() const { return argument(opener.dirfd, int_constant(AT_FDCWD)); }

}  // namespace iosig::gcc
