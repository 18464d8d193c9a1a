// GCC's headers in the only order that works, for every file of this directory.
//
// Standard and core headers come first because GCC's system.h poisons malloc and other names. lto1, f951 and other
// compilers load the plugin too, but lack the symbols of the C family. Those are declared weak: plugin_init checks one
// of them and does nothing if it is missing.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "iosig/base/result.h"

// gcc-plugin.h must be first; c-common.h must precede diagnostic.h
// clang-format off
#include "gcc-plugin.h"
#include "tree.h"
#include "c-family/c-common.h"
#include "c-family/c-pragma.h"
#include "cpplib.h"
#include "stringpool.h"
#include "attribs.h"
#include "basic-block.h"
#include "gimple.h"
#include "predict.h"
#include "gimple-predict.h"
#include "gimple-iterator.h"
#include "gimple-walk.h"
#include "gimple-expr.h"
#include "gimplify.h"
#include "tree-pass.h"
#include "context.h"
#include "cgraph.h"
#include "tree-iterator.h"
#include "fold-const.h"
#include "varasm.h"
#include "langhooks.h"
#include "diagnostic.h"
#include "gcc-rich-location.h"
// clang-format on

#define IOSIG_WEAK __attribute__((weak))
extern enum cpp_ttype pragma_lex(tree*, location_t*) IOSIG_WEAK;
extern void c_register_pragma(const char*, const char*, pragma_handler_1arg) IOSIG_WEAK;
extern void c_register_pragma_with_expansion(const char*, const char*, pragma_handler_1arg) IOSIG_WEAK;
extern struct cpp_reader* parse_in IOSIG_WEAK;
extern tree add_stmt(tree) IOSIG_WEAK;
extern stmt_tree current_stmt_tree(void) IOSIG_WEAK;
extern tree current_scope(void) IOSIG_WEAK;         // C++ only
extern int uses_template_parms(tree) IOSIG_WEAK;    // C++ only
extern bool in_template_function(void) IOSIG_WEAK;  // C++ only
extern enum c_language_kind c_language IOSIG_WEAK;
extern const char* pch_file IOSIG_WEAK;
extern const cpp_token* cpp_peek_token(cpp_reader*, int) IOSIG_WEAK;
extern const cpp_token* cpp_get_token_with_location(cpp_reader*, location_t*) IOSIG_WEAK;
extern unsigned char* cpp_token_as_text(cpp_reader*, const cpp_token*) IOSIG_WEAK;
extern cpp_options* cpp_get_options(cpp_reader*) IOSIG_WEAK;
// GCC 11 lacks these. They are weak, because plugin_init must still be able to report the unsupported compiler.
extern gcall* gimple_build_call_vec(tree, const vec<tree>&) IOSIG_WEAK;
extern void suppress_warning(gimple*, opt_code, bool) IOSIG_WEAK;
extern void copy_warning(location_t, location_t) IOSIG_WEAK;
#undef IOSIG_WEAK

/// Returns line `number` of the source file `file`, which converts to false if the file cannot be read.
inline char_span source_line(const char* file, int number) {
#if __GNUC__ >= 14  // the compiler is the one that loads the plugin
  return global_dc->get_file_cache().get_source_line(file, number);
#else
  return location_get_source_line(file, number);
#endif
}
