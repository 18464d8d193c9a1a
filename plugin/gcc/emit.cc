#include "emit.h"

#include <fcntl.h>

namespace iosig::gcc {
namespace {

/// The flags of an open by a user's function without a declared mode: it is assumed to create its file.
constexpr int flags_of_unknown_mode = O_CREAT | O_WRONLY;

bool is_char_pointer(tree type) {
  return POINTER_TYPE_P(type) && TREE_CODE(type) != REFERENCE_TYPE &&
         TYPE_MAIN_VARIANT(TREE_TYPE(type)) == char_type_node;
}

/// Warns once per function and argument that a user's declaration does not match the function.
void warn_of_misfit(const OpenCall& open, int index, const char* expected) {
  static std::set<std::pair<std::string, int>> told;
  if (!told.emplace(open.opener.name, index).second) return;
  if (open.argument(index) == NULL_TREE)
    warning_at(open.at(), OPT_Wpragmas, "%qs has no argument %d: the file is not redirected; expected %s",
               open.opener.name.c_str(), index + 1, expected);
  else
    warning_at(open.at(), OPT_Wpragmas, "argument %d of %qs is of type %qT: the file is not redirected; expected %s",
               index + 1, open.opener.name.c_str(), TREE_TYPE(open.argument(index)), expected);
}

/// Returns the type of the parameter at `index`, or that of the argument if the parameter is not declared (`...`).
/// Returns NULL_TREE if the call has no such argument.
tree type_of_parameter(const OpenCall& open, int index) {
  const tree given = open.argument(index);
  if (given == NULL_TREE) return NULL_TREE;
  tree declared = TYPE_ARG_TYPES(TREE_TYPE(gimple_call_fndecl(open.call)));
  for (; index > 0 && declared != NULL_TREE; --index) declared = TREE_CHAIN(declared);
  return declared != NULL_TREE && TREE_VALUE(declared) != void_type_node ? TREE_VALUE(declared) : TREE_TYPE(given);
}

bool fit_path(OpenCall& open) {
  Opener& opener = open.opener;
  const tree path = type_of_parameter(open, opener.path);
  if (path == NULL_TREE || (!is_char_pointer(path) && !is_path_object(path))) {
    warn_of_misfit(open, opener.path, "a path: char*, std::string or std::filesystem::path");
    return false;
  }
  opener.path_is_object = !is_char_pointer(path);
  return true;
}

bool fit_mode(OpenCall& open) {
  Opener& opener = open.opener;
  if (opener.mode < 0) {
    opener.interface = OpenInterface::open;
    opener.mode_bits = flags_of_unknown_mode;
    return true;
  }
  const tree mode = type_of_parameter(open, opener.mode);
  if (mode != NULL_TREE && is_char_pointer(mode)) {
    opener.interface = OpenInterface::fopen;
  } else if (mode != NULL_TREE && is_openmode(mode)) {
    opener.interface = OpenInterface::fstream;
  } else if (mode != NULL_TREE && TREE_CODE(mode) == INTEGER_TYPE) {
    opener.interface = OpenInterface::open;
  } else {
    warn_of_misfit(open, opener.mode, "a mode: int as open's, char* as fopen's, or std::ios::openmode");
    return false;
  }
  return true;
}

/// Derives from the parameter types how a user's function takes its path and mode. Returns false, after a warning, if
/// the types do not match the declaration.
///
///   #pragma sigopen io_open(1, 2)
///   int io_open(const char *path, int flags);                    // like open
///   FILE *io_open(const char *path, const char *mode);           // like fopen
///   bool io_open(const std::string &path, std::ios::openmode);   // like fstream; the path is an object
///
///   #pragma sigopen io_create(1)
///   int io_create(const char *path);                             // like open with O_CREAT | O_WRONLY
bool fit_to_types(OpenCall& open) { return fit_path(open) && fit_mode(open); }

/// Returns the path without the file system prefix that ROMIO, the MPI-IO of MPICH, removes ("ufs:/scratch/file").
/// Paths with other prefixes are not redirected, because ROMIO refuses them. With Open MPI no path with a prefix is
/// redirected, because only one of its two MPI-IO layers removes the prefix.
tree without_prefix(Snippet& code, const OpenCall& open, tree path, tree skip) {
  const tree text = char_pointer_type();
  const tree known = code.assign(text, path);
  const bool is_mpich = INTEGRAL_TYPE_P(TREE_TYPE(open.argument(0)));  // in MPICH a communicator is a number
  for (const char* prefix : {"ufs:", "nfs:"}) {
    if (!is_mpich) break;
    const tree next = code.new_label();
    const tree compare = libc_function("strncmp", integer_type_node, {text, text, size_type_node});
    const tree length = build_int_cst(size_type_node, strlen(prefix));
    const tree differs = code.call(compare, {known, string_constant(prefix), length});
    code.jump_unless(EQ_EXPR, differs, integer_zero_node, next);
    code.store(known, build2(POINTER_PLUS_EXPR, text, known, length));
    code.place(next);
  }
  const tree find = libc_function("strchr", build_pointer_type(char_type_node), {text, integer_type_node});
  const tree colon = code.call(find, {known, int_constant(':')});
  code.jump_unless(EQ_EXPR, colon, build_zero_cst(TREE_TYPE(colon)), skip);
  return known;
}

/// Converts a library's mode to open's flags: whether the file is created, and whether an existing file is refused.
tree library_flags(Snippet& code, const Opener& opener, tree given) {
  constexpr int opens = O_RDWR;
  if (!opener.creates) return int_constant(opens);
  if (tree_fits_shwi_p(given)) {
    const HOST_WIDE_INT mode = tree_to_shwi(given);
    const bool creates = opener.creates_bit == 0 || (mode & opener.creates_bit) != 0;
    const bool excludes = (mode & opener.exclusive_bits) != 0;
    return int_constant(opens | (creates ? O_CREAT : 0) | (excludes ? O_EXCL : 0));
  }
  const tree mode = code.assign(integer_type_node, NOP_EXPR, given, NULL_TREE);
  const tree flags = code.assign(integer_type_node, int_constant(opener.creates_bit == 0 ? opens | O_CREAT : opens));
  const auto translate = [&](int bits, int flag) {
    const tree next = code.new_label();
    const tree set = code.assign(integer_type_node, BIT_AND_EXPR, mode, int_constant(bits));
    code.jump_unless(NE_EXPR, set, integer_zero_node, next);
    code.store(flags, build2(BIT_IOR_EXPR, integer_type_node, flags, int_constant(flag)));
    code.place(next);
  };
  if (opener.creates_bit != 0) translate(opener.creates_bit, O_CREAT);
  if (opener.exclusive_bits != 0) translate(opener.exclusive_bits, O_EXCL);
  return flags;
}

}  // namespace

tree libc_function(const char* name, tree result, std::initializer_list<tree> parameters) {
  auto_vec<tree> list;
  for (const tree parameter : parameters) list.safe_push(parameter);
  return outside_function(name, build_function_type_array(result, list.length(), list.address()));
}

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

std::optional<OpenCall> OpenCall::of(gcall* call, const Opener& opener) {
  OpenCall open{opener, call};
  if (opener.interface == OpenInterface::unknown && !fit_to_types(open)) return std::nullopt;
  if (open.argument(open.opener.path) == NULL_TREE) return std::nullopt;
  if (open.opener.mode >= 0 && open.argument(open.opener.mode) == NULL_TREE) return std::nullopt;
  return open;
}

tree OpenCall::path(Snippet& code, tree skip) const {
  tree path = argument(opener.path);
  if (opener.path_is_object)
    path = code.assign(char_pointer_type(), build2(MEM_REF, char_pointer_type(), path, build_zero_cst(ptr_type_node)));
  if (TREE_CODE(path) != ADDR_EXPR) code.jump_unless(NE_EXPR, path, build_zero_cst(TREE_TYPE(path)), skip);
  return opener.has_prefix ? without_prefix(code, *this, path, skip) : path;
}

tree OpenCall::mode(Snippet& code) const {
  const tree given = argument(opener.mode);
  if (opener.interface == OpenInterface::library) return library_flags(code, opener, given);
  if (given == NULL_TREE) return int_constant(opener.mode_bits);
  if (tree_fits_shwi_p(given)) return int_constant(static_cast<int>(tree_to_shwi(given)) | opener.mode_bits);
  const tree as_int = code.assign(integer_type_node, NOP_EXPR, given, NULL_TREE);
  if (opener.mode_bits == 0) return as_int;
  return code.assign(integer_type_node, BIT_IOR_EXPR, as_int, int_constant(opener.mode_bits));
}

tree OpenCall::dirfd() const { return argument(opener.dirfd, int_constant(AT_FDCWD)); }

}  // namespace iosig::gcc
