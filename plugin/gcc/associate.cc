#include "associate.h"

#include "declaration.h"
#include "openers.h"
#include "sites.h"

namespace iosig::gcc {
namespace {

// The tree codes of C++ are compared by name, because their header cannot be used in a plugin that cc1 also loads.
bool is_called(tree node, std::string_view name) { return name == get_tree_code_name(TREE_CODE(node)); }

/// Returns how many of the first operands of a control statement are its condition, or -1 for any other tree.
int controlling_operands(tree statement) {
  if (TREE_CODE(statement) == COND_EXPR) return VOID_TYPE_P(TREE_TYPE(statement)) ? 1 : -1;
  for (const char* one : {"if_stmt", "while_stmt", "do_stmt", "switch_stmt", "switch_expr", "range_for_stmt"})
    if (is_called(statement, one)) return 1;
  return is_called(statement, "for_stmt") ? 3 : -1;  // start, condition, step
}

/// An open in the parser's tree.
struct Call {
  tree node;
  tree* statement;                      ///< the statement that contains it
  location_t place = UNKNOWN_LOCATION;  ///< location in the source without its range; may be unknown
};

/// Finds calls of openers below a tree. `skip_bodies`: only in the conditions of control statements.
struct Search {
  bool skip_bodies;
  tree* statement;
  std::vector<Call> calls = {};
  tree temporary = NULL_TREE;  ///< the last visited TARGET_EXPR
};

/// Returns the callee of a CALL_EXPR, or of C++'s AGGR_INIT_EXPR, which has the same operands; else NULL_TREE.
tree callee_of(tree node) {
  if (TREE_CODE_CLASS(TREE_CODE(node)) != tcc_vl_exp || TREE_OPERAND_LENGTH(node) < 2) return NULL_TREE;
  const tree function = TREE_OPERAND(node, 1);
  return function != NULL_TREE && TREE_CODE(function) == ADDR_EXPR ? TREE_OPERAND(function, 0) : function;
}

void add_call(Search& search, tree node) {
  Call call{node, search.statement, EXPR_LOCATION(node)};
  if (call.place == UNKNOWN_LOCATION && search.temporary != NULL_TREE && TARGET_EXPR_INITIAL(search.temporary) == node)
    call.place = EXPR_LOCATION(search.temporary);
  call.place = get_pure_location(call.place);
  for (const Call& other : search.calls)  // a call may be in a tree twice (SAVE_EXPR, C++ conditions)
    if (other.node == node || (call.place != UNKNOWN_LOCATION && other.place == call.place)) return;
  search.calls.push_back(call);
}

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
  if (TREE_CODE(node) == TARGET_EXPR) search->temporary = node;
  if (opener_of(callee_of(node))) add_call(*search, node);
  return NULL_TREE;
}

/// Returns the opens in source order. If the condition of a control statement has any, ignores its body.
std::vector<Call> opens_in(tree* statement) {
  Search search{.skip_bodies = true, .statement = statement};
  walk_tree_without_duplicates(statement, visit, &search);
  if (search.calls.empty()) {
    search.skip_bodies = false;
    walk_tree_without_duplicates(statement, visit, &search);
  }
  std::stable_sort(search.calls.begin(), search.calls.end(),
                   [](const Call& a, const Call& b) { return is_before(a.place, b.place); });
  return std::move(search.calls);
}

void append(std::vector<Call>& calls, const std::vector<Call>& more) {
  for (const Call& call : more)
    if (std::none_of(calls.begin(), calls.end(), [&](const Call& other) { return other.node == call.node; }))
      calls.push_back(call);
}

bool contains(tree* tree_at, tree wanted) {
  const auto is_wanted = [](tree* at, int*, void* node) { return *at == node ? *at : NULL_TREE; };
  return walk_tree_without_duplicates(tree_at, is_wanted, wanted) != NULL_TREE;
}

/// Sets the location `data->second` on all trees that contain the call. In C++ the constructor call of an object that
/// is constructed in place has no location and later gets that of an enclosing tree.
tree locate(tree* at, int* walk_below, void* data) {
  const auto [call, place] = *static_cast<std::pair<tree, location_t>*>(data);
  if (TYPE_P(*at) || DECL_P(*at) || !contains(at, call))
    *walk_below = 0;
  else if (CAN_HAVE_LOCATION_P(*at))
    SET_EXPR_LOCATION(*at, place);
  return NULL_TREE;
}

/// Wraps a call that is an argument, as in `check(open(...))`. The gimplifier sets the location of an argument to that
/// of the enclosing call; here it sets that of the wrapper, and the call keeps its own location.
tree shield_argument(tree* at, int* walk_below, void* data) {
  auto* shield = static_cast<std::pair<tree, tree>*>(data);  // the call and its wrapper
  const tree node = *at;
  if (TYPE_P(node)) *walk_below = 0;
  if (TREE_CODE(node) == DECL_EXPR) {
    const tree variable = DECL_EXPR_DECL(node);
    if (VAR_P(variable) && DECL_INITIAL(variable) != NULL_TREE)
      walk_tree_without_duplicates(&DECL_INITIAL(variable), shield_argument, data);
  }
  if (callee_of(node) == NULL_TREE) return NULL_TREE;
  for (int i = 3; i < TREE_OPERAND_LENGTH(node); ++i) {  // the arguments follow length, callee and chain
    if (TREE_OPERAND(node, i) != shield->first) continue;
    if (shield->second == NULL_TREE) {
      shield->second = build1(SAVE_EXPR, TREE_TYPE(shield->first), shield->first);
      TREE_SIDE_EFFECTS(shield->second) = 1;
    }
    TREE_OPERAND(node, i) = shield->second;
  }
  return NULL_TREE;
}

/// Returns where the call stands: its own location, else that of its statement, else that of the pragma.
location_t place_of(const Call& call, const Site& site) {
  for (const location_t place : {EXPR_LOCATION(call.node), EXPR_LOCATION(*call.statement), site.at})
    if (get_pure_location(place) != UNKNOWN_LOCATION) return get_pure_location(place);
  return UNKNOWN_LOCATION;
}

/// Warns that the site gets only the first of these calls.
void warn_of_others(Site& site, const std::vector<Call>& calls) {
  if (site.told) return;
  site.told = true;
  const auto_diagnostic_group group;
  if (!warning_at(site.at, OPT_Wpragmas,
                  "the statement after %<#pragma sig%> opens %d files; only the first gets the signature",
                  static_cast<int>(calls.size())))
    return;
  for (const Call& call : calls) {
    const location_t shown = call.place != UNKNOWN_LOCATION ? call.place : site.at;
    inform(shown, call.node == calls.front().node ? "this one gets it" : "this one does not");
  }
}

/// Assigns the first call to the site. Sets the call's location if it has none, or to `place` if that is given. Returns
/// the call's location, by which inject.cc finds the call again:
///
///   #pragma sig persist
///   check(open(path, O_RDWR));            // the call has its own location and keeps it
///
///   #pragma sig temp
///   auto out = std::ofstream("log.dat");  // the constructor's call has none: it gets that of the statement
location_t choose(Site& site, const std::vector<Call>& calls, location_t place = UNKNOWN_LOCATION) {
  const Call& call = calls.front();
  if (place == UNKNOWN_LOCATION) place = place_of(call, site);
  site.in_place = place != get_pure_location(EXPR_LOCATION(call.node));
  if (site.in_place) {
    std::pair<tree, location_t> located{call.node, place};
    walk_tree_without_duplicates(call.statement, locate, &located);
  } else if (!VOID_TYPE_P(TREE_TYPE(call.node))) {
    std::pair<tree, tree> shield{call.node, NULL_TREE};
    walk_tree_without_duplicates(call.statement, shield_argument, &shield);
  }
  site.found = true;
  site_of_call.insert_or_assign(place, &site - sites.data());
  if (calls.size() > 1) warn_of_others(site, calls);
  return place;
}

/// Iterates over the statements of a block. After a C++ object with a destructor, the rest of the block is nested below
/// that object's cleanup.
class Statements {
 public:
  explicit Statements(tree_stmt_iterator next) : next_(next) { enter_cleanup(); }
  [[nodiscard]] bool at_end() const { return tsi_end_p(next_); }
  [[nodiscard]] tree operator*() const { return tsi_stmt(next_); }
  [[nodiscard]] tree* place() { return tsi_stmt_ptr(next_); }
  void advance() {
    tsi_next(&next_);
    enter_cleanup();
  }

 private:
  void enter_cleanup() {
    while (!at_end() && is_called(tsi_stmt(next_), "cleanup_stmt")) {
      const tree body = TREE_OPERAND(tsi_stmt(next_), 0);
      if (body == NULL_TREE || TREE_CODE(body) != STATEMENT_LIST) return;
      next_ = tsi_start(body);
    }
  }
  tree_stmt_iterator next_;
};

bool is_invisible(tree statement) {
  const tree_code code = TREE_CODE(statement);
  return code == DEBUG_BEGIN_STMT || code == LABEL_EXPR || code == CASE_LABEL_EXPR ||
         (code == PREDICT_EXPR && marked_site(statement) < 0);
}

/// Returns the variable to which `part` belongs. C++ initialises an aggregate (for example a lambda with captures) part
/// by part.
tree variable_of(tree part) {
  while (handled_component_p(part)) part = TREE_OPERAND(part, 0);
  return part;
}

/// Returns the variable that this tree constructs in place, or NULL_TREE.
tree constructed_by(tree node) {
  if (TREE_CODE(node) != CALL_EXPR || call_expr_nargs(node) == 0) return NULL_TREE;
  const tree function = get_callee_fndecl(node);
  const tree object = CALL_EXPR_ARG(node, 0);
  if (function == NULL_TREE || !DECL_CXX_CONSTRUCTOR_P(function) || TREE_CODE(object) != ADDR_EXPR) return NULL_TREE;
  const tree variable = variable_of(TREE_OPERAND(object, 0));
  return VAR_P(variable) ? variable : NULL_TREE;
}

/// C++ initialises an array of objects through an internal pointer. Returns the array to which this tree sets that
/// pointer, or NULL_TREE.
tree array_walked_by(tree initialisation) {
  const tree pointer = TREE_OPERAND(initialisation, 0);
  if (!VAR_P(pointer) || !DECL_ARTIFICIAL(pointer) || DECL_NAME(pointer) != NULL_TREE) return NULL_TREE;
  const tree address = tree_strip_nop_conversions(TREE_OPERAND(initialisation, 1));
  return TREE_CODE(address) == ADDR_EXPR ? variable_of(TREE_OPERAND(address, 0)) : NULL_TREE;
}

/// Returns the node if it initialises or constructs the variable `data`.
tree find_initialisation(tree* at, int* walk_below, void* data) {
  const tree node = *at;
  const tree variable = static_cast<tree>(data);
  if (TYPE_P(node)) *walk_below = 0;
  if (TREE_CODE(node) == INIT_EXPR)
    return variable_of(TREE_OPERAND(node, 0)) == variable || array_walked_by(node) == variable ? node : NULL_TREE;
  return constructed_by(node) == variable ? node : NULL_TREE;
}

/// Returns the variable that this statement declares, or NULL_TREE. Of a variable that is initialised part by part, the
/// declaration contains the constant parts.
tree declared_by(tree statement) {
  if (TREE_CODE(statement) == CLEANUP_POINT_EXPR) statement = TREE_OPERAND(statement, 0);
  return TREE_CODE(statement) == DECL_EXPR ? DECL_EXPR_DECL(statement) : NULL_TREE;
}

/// Returns the opens of a declaration. Each variable has its own statement; in C++ its initialisation is a further
/// statement, inside a guard if the variable is static.
std::vector<Call> opens_in_declaration(Statements at) {
  std::vector<Call> calls;
  const location_t first = DECL_SOURCE_LOCATION(declared_by(*at));
  tree variable = NULL_TREE;
  for (; !at.at_end(); at.advance()) {
    const tree statement = *at;
    if (is_invisible(statement)) continue;
    if (const tree declared = declared_by(statement); declared != NULL_TREE) {
      if (variable != NULL_TREE && !in_one_declaration(first, DECL_SOURCE_LOCATION(declared))) break;
      variable = declared;
    } else if (walk_tree_without_duplicates(at.place(), find_initialisation, variable) == NULL_TREE) {
      break;
    }
    append(calls, opens_in(at.place()));
  }
  return calls;
}

/// In C the start of `for (i = 0; ...)` is a separate statement before the loop. Returns the loop of such a statement,
/// or nullptr.
tree* loop_behind(Statements start) {
  const location_t place = EXPR_LOCATION(*start);
  for (start.advance(); !start.at_end() && is_invisible(*start);) start.advance();
  const bool is_loop = !start.at_end() && is_called(*start, "for_stmt");
  return is_loop && is_before(EXPR_LOCATION(*start), place) ? start.place() : nullptr;
}

/// A marker and the statements after it.
struct Marked {
  int site;
  tree marker;
  tree_stmt_iterator next;  ///< at the end if nothing follows
};

/// The first location behind a pragma in a tree.
struct Beginning {
  location_t pragma;
  location_t first = UNKNOWN_LOCATION;
  void add(location_t at) {
    at = get_start(at);
    if (get_pure_location(at) == UNKNOWN_LOCATION) return;
    if (is_before(pragma, at) && (first == UNKNOWN_LOCATION || is_before(at, first))) first = at;
  }
};

tree find_beginning(tree* at, int* walk_below, void* data) {
  auto* beginning = static_cast<Beginning*>(data);
  if (TYPE_P(*at) || DECL_P(*at)) {
    *walk_below = 0;
    return NULL_TREE;
  }
  if (TREE_CODE(*at) == DECL_EXPR) beginning->add(DECL_SOURCE_LOCATION(DECL_EXPR_DECL(*at)));
  if (CAN_HAVE_LOCATION_P(*at)) beginning->add(EXPR_LOCATION(*at));
  return NULL_TREE;
}

/// Whether the pragma stands before a statement that has no tree, and `next` follows that one.
bool is_behind_another(const Site& site, Statements next) {
  Beginning beginning{.pragma = site.at};
  walk_tree_without_duplicates(next.place(), find_beginning, &beginning);
  return beginning.first != UNKNOWN_LOCATION && is_statement_between(site.at, beginning.first);
}

/// Returns the opens of the statement, declaration or loop at `next`.
std::vector<Call> opens_at(Statements next) {
  std::vector<Call> calls = declared_by(*next) != NULL_TREE ? opens_in_declaration(next) : opens_in(next.place());
  if (!calls.empty()) return calls;
  tree* const loop = loop_behind(next);
  return loop != nullptr ? opens_in(loop) : calls;
}

void warn_of_no_open(Site& site, bool pragma_follows) {
  if (site.told) return;
  site.told = true;
  const auto_diagnostic_group group;
  if (!warning_at(site.at, OPT_Wpragmas, "%<#pragma sig%> is not followed by a statement that opens a file")) return;
  if (pragma_follows)
    inform(site.at, "another %<#pragma sig%> follows; name one signature with %<#pragma sigdef%> and override it");
  else
    inform(site.at, "put it directly before the statement, declaration or condition with the open");
}

/// Opens of a function by location.
using CallsByPlace = std::map<location_t, std::set<tree>>;

tree visit_calls(tree* at, int* walk_below, void* data) {
  if (TYPE_P(*at)) *walk_below = 0;
  if (opener_of(callee_of(*at))) (*static_cast<CallsByPlace*>(data))[get_pure_location(EXPR_LOCATION(*at))].insert(*at);
  if (TREE_CODE(*at) == DECL_EXPR && VAR_P(DECL_EXPR_DECL(*at)) && DECL_INITIAL(DECL_EXPR_DECL(*at)) != NULL_TREE)
    walk_tree_without_duplicates(&DECL_INITIAL(DECL_EXPR_DECL(*at)), visit_calls, data);
  return NULL_TREE;
}

/// Returns the opens that share their location with others: with -ftrack-macro-expansion=0 all calls of a macro are
/// where it is used, so that inject.cc cannot find one of them again.
CallsByPlace crowded_calls(tree function) {
  CallsByPlace calls;
  if (cpp_get_options(parse_in)->track_macro_expansion != 0) return calls;
  walk_tree_without_duplicates(&DECL_SAVED_TREE(function), visit_calls, &calls);
  for (auto each = calls.begin(); each != calls.end();)
    each = each->first == UNKNOWN_LOCATION || each->second.size() < 2 ? calls.erase(each) : std::next(each);
  return calls;
}

void warn_of_crowd(Site& site, location_t place) {
  if (site.told) return;
  site.told = true;
  warning_at(place, OPT_Wpragmas,
             "this macro opens several files, which cannot be told apart with %<-ftrack-macro-expansion=0%>; none gets "
             "the signature of %<#pragma sig%>");
}

/// Finds the open for one pragma in a function, among the statements after it. `taken`: the locations of opens that
/// have their own pragma, deeper in the statement. associate_marked calls this for the last pragma first:
///
///   #pragma sig persist  // second: the first open of the loop is taken, so this gets the other one
///   while (has_more()) {
///     #pragma sig temp   // first: gets the open of the scratch file
///     a = open(scratch, O_CREAT | O_RDWR, 0600);
///     b = open(result, O_CREAT | O_WRONLY, 0600);
///   }
void associate(Site& site, Statements next, const CallsByPlace& crowded, std::vector<location_t>& taken) {
  while (!next.at_end() && is_invisible(*next)) next.advance();
  const bool pragma_follows = !next.at_end() && marked_site(*next) >= 0;
  std::vector<Call> calls;
  if (!next.at_end() && !pragma_follows && !is_behind_another(site, next)) calls = opens_at(next);
  if (!calls.empty() && crowded.count(calls.front().place) != 0) return warn_of_crowd(site, calls.front().place);
  const auto is_taken = [&](const Call& call) {
    return call.place != UNKNOWN_LOCATION && std::find(taken.begin(), taken.end(), call.place) != taken.end();
  };
  calls.erase(std::remove_if(calls.begin(), calls.end(), is_taken), calls.end());
  if (calls.empty())
    warn_of_no_open(site, pragma_follows);
  else
    taken.push_back(choose(site, calls));
}

struct Markers {
  std::vector<Marked> found;
  [[nodiscard]] bool has(tree marker) const {
    return std::any_of(found.begin(), found.end(), [&](const Marked& one) { return one.marker == marker; });
  }
  std::vector<tree> functions;  ///< bodies of coroutines and nested functions, for which there is no plugin event
};

/// Returns the nested function (GNU C) that this statement defines, or NULL_TREE.
tree nested_function(tree node) {
  const tree function = TREE_CODE(node) == DECL_EXPR ? DECL_EXPR_DECL(node) : NULL_TREE;
  const bool is_defined = function != NULL_TREE && TREE_CODE(function) == FUNCTION_DECL &&
                          DECL_SAVED_TREE(function) != NULL_TREE && decl_function_context(function) != NULL_TREE;
  return is_defined ? function : NULL_TREE;
}

/// Whether the node is the body of a coroutine. C++ moves the body into a separate function, which the coroutine
/// starts.
bool is_coroutine_body(tree node) {
  return TREE_CODE(node) == ADDR_EXPR && TREE_CODE(TREE_OPERAND(node, 0)) == FUNCTION_DECL &&
         DECL_ARTIFICIAL(TREE_OPERAND(node, 0)) && DECL_SAVED_TREE(TREE_OPERAND(node, 0)) != NULL_TREE &&
         std::string_view(IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(TREE_OPERAND(node, 0)))).ends_with(".actor");
}

tree find_markers(tree* at, int* walk_below, void* data) {
  auto* markers = static_cast<Markers*>(data);
  if (TYPE_P(*at)) *walk_below = 0;
  if (is_coroutine_body(*at)) markers->functions.push_back(TREE_OPERAND(*at, 0));
  if (const tree nested = nested_function(*at); nested != NULL_TREE) markers->functions.push_back(nested);
  // A block of a single statement has no statement list.
  if (const int site = marked_site(*at); site >= 0 && !markers->has(*at))
    markers->found.push_back({site, *at, tree_stmt_iterator{}});
  if (TREE_CODE(*at) != STATEMENT_LIST) return NULL_TREE;
  for (tree_stmt_iterator i = tsi_start(*at); !tsi_end_p(i);) {
    const tree statement = tsi_stmt(i);
    tsi_next(&i);
    if (const int site = marked_site(statement); site >= 0) markers->found.push_back({site, statement, i});
  }
  return NULL_TREE;
}

void associate_marked(tree function) {
  Markers markers;
  walk_tree_without_duplicates(&DECL_SAVED_TREE(function), find_markers, &markers);
  const CallsByPlace crowded = markers.found.empty() ? CallsByPlace() : crowded_calls(function);
  std::vector<location_t> taken;
  // From last to first: pragmas inside of a statement are handled before the pragma in front of it.
  for (std::size_t i = markers.found.size(); i-- > 0;)
    associate(sites[markers.found[i].site], Statements(markers.found[i].next), crowded, taken);
  for (const Marked& marked : markers.found) {
    sites[marked.site].seen = true;
    neutralise_marker(marked.marker);
  }
  for (const tree inner : markers.functions)
    if (inner != function) associate_marked(inner);
}

/// Whether the open of a member is written in the function that initialises the member, and is not its default
/// initialiser. A default is copied into each constructor, with the location of that constructor.
bool is_written_here(const Call& call) {
  if (!EXPR_HAS_LOCATION(call.node)) return call.place != UNKNOWN_LOCATION;
  return get_start(EXPR_LOCATION(call.node)) != get_pure_location(EXPR_LOCATION(call.node));
}

struct Declared {
  tree function;
  tree* statement = nullptr;  ///< the last visited expression statement
  tree* full_expression = nullptr;
  std::map<Site*, std::vector<Call>> calls;
};

/// Adds the opens in the initialisation of a static variable to those of the site. More may follow: C++ initialises an
/// aggregate part by part, and a variable template once for each instance.
void add_opens_of_variable(Declared& declared, Site& site, std::vector<Call> calls) {
  for (Call& call : calls)
    if (declared.full_expression != nullptr && contains(declared.full_expression, call.node))
      call.statement = declared.full_expression;
  std::vector<Call>& known = declared.calls[&site];
  const auto is_known = [&](const Call& call) {
    return call.place != UNKNOWN_LOCATION &&
           std::any_of(known.begin(), known.end(), [&](const Call& other) { return other.place == call.place; });
  };
  calls.erase(std::remove_if(calls.begin(), calls.end(), is_known), calls.end());
  append(known, calls);
}

/// Assigns the open of a member's default initialiser to the site.
void choose_for_member(const Declared& declared, Site& site, tree member, std::vector<Call> calls) {
  calls.erase(std::remove_if(calls.begin(), calls.end(), is_written_here), calls.end());
  if (calls.empty()) return;
  Call& call = calls.front();
  if (!EXPR_HAS_LOCATION(call.node) && !DECL_CXX_CONSTRUCTOR_P(declared.function)) {
    if (!site.told)
      warning_at(site.at, OPT_Wpragmas,
                 "%<#pragma sig%> has no effect where %qD is initialised without a constructor; give its class one",
                 member);
    site.told = true;
    return;
  }
  if (declared.statement != nullptr && contains(declared.statement, call.node)) call.statement = declared.statement;
  choose(site, calls, get_pure_location(DECL_SOURCE_LOCATION(member)));
}

/// Finds the pragma before the declaration of `variable`, which may be a member, and gives it the opens of the
/// variable's initialisation. An automatic variable has a pragma with a marker instead.
///
///   #pragma sig persist
///   static std::ofstream out("out.dat");  // initialised by a function that GCC makes for the whole unit
///   struct Job {
///     #pragma sig temp
///     int fd = open("job.log", O_RDWR);   // copied into each constructor of Job
///   };
void add_declared(Declared& declared, tree variable, tree* initialisation) {
  const bool is_member = TREE_CODE(variable) == FIELD_DECL;
  if (!is_member && !TREE_STATIC(variable)) return;
  for (Site& site : sites) {
    if (site.marked || !in_one_declaration(site.at, DECL_SOURCE_LOCATION(variable))) continue;
    if (is_member)
      choose_for_member(declared, site, variable, opens_in(initialisation));
    else
      add_opens_of_variable(declared, site, opens_in(initialisation));
  }
}

tree visit_initialisations(tree* at, int* walk_below, void* data) {
  auto* declared = static_cast<Declared*>(data);
  if (TYPE_P(*at)) *walk_below = 0;
  if (TREE_CODE(*at) == CLEANUP_POINT_EXPR) declared->full_expression = at;
  if (TREE_CODE(*at) == CLEANUP_POINT_EXPR || is_called(*at, "expr_stmt")) declared->statement = at;
  if (TREE_CODE(*at) == CONSTRUCTOR) {
    unsigned i = 0;
    tree member = NULL_TREE, value = NULL_TREE;
    FOR_EACH_CONSTRUCTOR_ELT(CONSTRUCTOR_ELTS(*at), i, member, value)
    if (member != NULL_TREE && TREE_CODE(member) == FIELD_DECL)
      add_declared(*declared, member, &(*CONSTRUCTOR_ELTS(*at))[i].value);
  }
  if (TREE_CODE(*at) == INIT_EXPR) {
    const tree target = TREE_OPERAND(*at, 0);
    if (TREE_CODE(target) == COMPONENT_REF) add_declared(*declared, TREE_OPERAND(target, 1), at);
    if (VAR_P(variable_of(target))) add_declared(*declared, variable_of(target), at);
    const tree array = array_walked_by(*at);
    if (array != NULL_TREE && VAR_P(array) && declared->full_expression != nullptr)
      add_declared(*declared, array, declared->full_expression);
  } else if (const tree variable = constructed_by(*at); variable != NULL_TREE) {
    add_declared(*declared, variable, at);
  }
  return NULL_TREE;
}

void associate_declared(tree function) {
  Declared declared{.function = function, .calls = {}};
  walk_tree_without_duplicates(&DECL_SAVED_TREE(function), visit_initialisations, &declared);
  for (auto& [site, calls] : declared.calls)
    if (!calls.empty()) choose(*site, calls);
}

/// Whether the site belongs to a member with a default initialiser that may be used in another unit, because this unit
/// constructs no object of the class: the initialiser opens a file or depends on a template.
bool may_be_used_elsewhere(const Site& site) {
  if (site.class_type == NULL_TREE) return false;
  const bool in_template = uses_template_parms(site.class_type) != 0;
  for (tree member = TYPE_FIELDS(site.class_type); member != NULL_TREE; member = DECL_CHAIN(member)) {
    if (TREE_CODE(member) != FIELD_DECL && !VAR_P(member)) continue;
    if (!in_one_declaration(site.at, DECL_SOURCE_LOCATION(member))) continue;
    if (in_template || (DECL_INITIAL(member) != NULL_TREE && !opens_in(&DECL_INITIAL(member)).empty())) return true;
  }
  return false;
}

}  // namespace

void associate_sites(tree function) {
  if (sites.empty() || TREE_CODE(function) != FUNCTION_DECL || DECL_SAVED_TREE(function) == NULL_TREE) return;
  associate_marked(function);
  if (std::any_of(sites.begin(), sites.end(), [](const Site& site) { return !site.marked; }))
    associate_declared(function);
}

void report_unused_sites() {
  if (flag_syntax_only || seen_error()) return;
  for (const Site& site : sites)
    if (site.marked && !site.seen && !site.in_template)
      warning_at(site.at, OPT_Wpragmas, "%<#pragma sig%> has no effect: GCC compiles no code for this statement");
    else if (!site.marked && !site.found && !site.told && !may_be_used_elsewhere(site))
      warning_at(site.at, OPT_Wpragmas, "%<#pragma sig%> is not followed by a declaration that opens a file");
}

}  // namespace iosig::gcc
