#include "associate.h"

#include "openers.h"
#include "sites.h"

namespace iosig::gcc {
namespace {

/// The operands of a control statement that come before its body, or -1 for any other tree. C++'s own tree codes have
/// no header that cc1 could load as well, hence the names.
int controlling_operands(tree statement) {
  if (TREE_CODE(statement) == COND_EXPR) return VOID_TYPE_P(TREE_TYPE(statement)) ? 1 : -1;
  const std::string_view name = get_tree_code_name(TREE_CODE(statement));
  for (const std::string_view one : {"if_stmt", "while_stmt", "switch_stmt", "switch_expr", "range_for_stmt"})
    if (name == one) return 1;
  return name == "for_stmt" ? 3 : -1;  // start, condition, step
}

/// Calls of openers below a tree. `skip_bodies`: of if, while, for and switch only what stands before the body.
struct Search {
  bool skip_bodies;
  std::vector<location_t> calls;
};

tree visit(tree* at, int* walk_below, void* data) {
  auto* search = static_cast<Search*>(data);
  const tree node = *at;
  if (TYPE_P(node) || DECL_P(node)) {
    *walk_below = 0;
    return NULL_TREE;
  }
  if (const int operands = search->skip_bodies ? controlling_operands(node) : -1; operands >= 0) {
    *walk_below = 0;
    for (int i = 0; i < operands; ++i)
      if (TREE_OPERAND(node, i) != NULL_TREE) walk_tree_without_duplicates(&TREE_OPERAND(node, i), visit, data);
    return NULL_TREE;
  }
  if (TREE_CODE(node) == DECL_EXPR) {
    const tree variable = DECL_EXPR_DECL(node);
    if (VAR_P(variable) && DECL_INITIAL(variable) != NULL_TREE)
      walk_tree_without_duplicates(&DECL_INITIAL(variable), visit, data);
  }
  // CALL_EXPR, and C++'s AGGR_INIT_EXPR with the same operands
  if (TREE_CODE_CLASS(TREE_CODE(node)) == tcc_vl_exp && TREE_OPERAND_LENGTH(node) > 1) {
    tree function = TREE_OPERAND(node, 1);
    if (function != NULL_TREE && TREE_CODE(function) == ADDR_EXPR) function = TREE_OPERAND(function, 0);
    const location_t place = EXPR_LOCATION(node);
    // one call may hang in a tree twice (SAVE_EXPR, C++ conditions)
    if (opener_of(function) && std::find(search->calls.begin(), search->calls.end(), place) == search->calls.end())
      search->calls.push_back(place);
  }
  return NULL_TREE;
}

/// In the order of the program's text. The controlling expression of a control statement goes before its body.
std::vector<location_t> opens_in(tree* statement) {
  Search search{.skip_bodies = true, .calls = {}};
  walk_tree_without_duplicates(statement, visit, &search);
  if (search.calls.empty()) {
    search.skip_bodies = false;
    walk_tree_without_duplicates(statement, visit, &search);
  }
  std::stable_sort(search.calls.begin(), search.calls.end(), is_before);
  return std::move(search.calls);
}

int site_of_marker(tree statement) {
  while (TREE_CODE(statement) == CLEANUP_POINT_EXPR || CONVERT_EXPR_P(statement))
    statement = TREE_OPERAND(statement, 0);
  if (TREE_CODE(statement) != ASM_EXPR || TREE_CODE(ASM_STRING(statement)) != STRING_CST) return -1;
  return marked_site(TREE_STRING_POINTER(ASM_STRING(statement)));
}

bool is_invisible(tree statement) {
  const tree_code code = TREE_CODE(statement);
  return code == DEBUG_BEGIN_STMT || code == LABEL_EXPR || code == CASE_LABEL_EXPR;
}

/// The node if it initialises the variable `data`, or constructs it as a stream.
tree find_initialisation(tree* at, int* walk_below, void* data) {
  const tree node = *at;
  const tree variable = static_cast<tree>(data);
  if (TYPE_P(node)) *walk_below = 0;
  if (TREE_CODE(node) == INIT_EXPR && TREE_OPERAND(node, 0) == variable) return node;
  if (TREE_CODE(node) != CALL_EXPR || call_expr_nargs(node) == 0 || !opener_of(get_callee_fndecl(node)))
    return NULL_TREE;
  const tree object = CALL_EXPR_ARG(node, 0);
  return TREE_CODE(object) == ADDR_EXPR && TREE_OPERAND(object, 0) == variable ? node : NULL_TREE;
}

/// C++ declares a variable in one statement and initialises it in the next, behind a guard if it is static.
bool initialises(tree statement, tree variable) {
  return walk_tree_without_duplicates(&statement, find_initialisation, variable) != NULL_TREE;
}

/// `next`: the statement after the site's marker.
void associate(Site& site, tree_stmt_iterator next) {
  while (!tsi_end_p(next) && is_invisible(tsi_stmt(next))) tsi_next(&next);
  const bool pragma_follows = !tsi_end_p(next) && site_of_marker(tsi_stmt(next)) >= 0;
  std::vector<location_t> calls;
  if (!tsi_end_p(next) && !pragma_follows) {
    calls = opens_in(tsi_stmt_ptr(next));
    if (const tree declaration = tsi_stmt(next); calls.empty() && TREE_CODE(declaration) == DECL_EXPR) {
      tsi_next(&next);
      if (!tsi_end_p(next) && initialises(tsi_stmt(next), DECL_EXPR_DECL(declaration)))
        calls = opens_in(tsi_stmt_ptr(next));
    }
  }
  const auto_diagnostic_group group;
  if (calls.empty()) {
    if (!site.visited &&
        warning_at(site.at, OPT_Wpragmas, "%<#pragma sig%> is not followed by a statement that opens a file")) {
      if (pragma_follows)
        inform(site.at, "another %<#pragma sig%> follows; name one signature with %<#pragma sigdef%> and override it");
      else
        inform(site.at, "put it directly before the statement, declaration or condition with the open");
    }
  } else {
    if (calls.size() > 1 && !site.visited &&
        warning_at(site.at, OPT_Wpragmas,
                   "the statement after %<#pragma sig%> opens %d files; only the first gets the signature",
                   static_cast<int>(calls.size())))
      for (const location_t call : calls)
        inform(call, call == calls.front() ? "this one gets it" : "this one does not");
    site.call = calls.front();
  }
  site.visited = true;
}

tree visit_statements(tree* at, int* walk_below, void*) {
  if (TYPE_P(*at)) *walk_below = 0;
  if (TREE_CODE(*at) != STATEMENT_LIST) return NULL_TREE;
  for (tree_stmt_iterator i = tsi_start(*at); !tsi_end_p(i);) {
    const int site = site_of_marker(tsi_stmt(i));
    tsi_next(&i);
    if (site >= 0) associate(sites[site], i);
  }
  return NULL_TREE;
}

}  // namespace

void associate_sites(tree function) {
  if (sites.empty() || TREE_CODE(function) != FUNCTION_DECL || DECL_SAVED_TREE(function) == NULL_TREE) return;
  walk_tree_without_duplicates(&DECL_SAVED_TREE(function), visit_statements, nullptr);
}

}  // namespace iosig::gcc
