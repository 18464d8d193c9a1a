#include "inject.h"

#include "emit.h"
#include "options.h"

namespace iosig::gcc {
namespace {

/// How far below its pragma an open may stand that is found by lines alone.
constexpr int reach_lines = 4;

struct Found {
  std::vector<gcall*> opens;
  std::vector<int> markers;        ///< sites
  std::map<gimple*, int> site_of;  ///< opens that get a signature
};

const char* assembler_text(const gimple* statement) {
  const auto* assembler = dyn_cast<const gasm*>(statement);
  return assembler != nullptr ? gimple_asm_string(assembler) : "";
}

tree find(gimple_stmt_iterator* at, bool* handled, walk_stmt_info* walk) {
  auto* found = static_cast<Found*>(walk->info);
  *handled = false;
  gimple* statement = gsi_stmt(*at);
  if (const int site = marked_site(assembler_text(statement)); site >= 0) {
    found->markers.push_back(site);
  } else if (auto* call = dyn_cast<gcall*>(statement)) {
    if (opener_of(gimple_call_fndecl(call))) found->opens.push_back(call);
  }
  return NULL_TREE;
}

/// The first open after `from`, in its file.
gcall* nearest_after(const std::vector<gcall*>& opens, location_t from) {
  gcall* nearest = nullptr;
  for (gcall* open : opens) {
    const location_t at = gimple_location(open);
    const char* file = LOCATION_FILE(at);
    if (file == nullptr || strcmp(file, LOCATION_FILE(from)) != 0 || !is_before(from, at)) continue;
    if (nearest == nullptr || is_before(at, gimple_location(nearest))) nearest = open;
  }
  return nearest;
}

/// The open of a marked site in this function. Its location is exact, except that C++ has none for some objects that it
/// constructs in place, and that associate never sees the bodies of coroutines. An open that is not there any more, as
/// in `if (0)`, must not pass its signature on to the next one.
gcall* open_of_marked(const Site& site, const std::vector<gcall*>& opens) {
  if (site.visited && !site.call) return nullptr;  // nothing there, and it has been told
  const location_t wanted = site.call.value_or(UNKNOWN_LOCATION);
  for (gcall* open : opens)
    if (get_pure_location(gimple_location(open)) == get_pure_location(wanted)) return open;
  gcall* open = nearest_after(opens, site.at);
  if (open == nullptr) return nullptr;
  const int line = expand_location(gimple_location(open)).line;
  const bool fits = wanted != UNKNOWN_LOCATION ? line == expand_location(wanted).line
                                               : line - expand_location(site.at).line <= reach_lines;
  return fits ? open : nullptr;
}

/// The open of a site that could not be marked: initialisers at namespace scope, constexpr functions. (Initialisers of
/// members are beyond reach: GCC gives their calls the location of the class.)
gcall* open_of_unmarked(const Site& site, const std::vector<gcall*>& opens, tree function) {
  const location_t pragma = expansion_point_location_if_in_system_header(site.at);
  gcall* open = nearest_after(opens, pragma);
  if (open == nullptr) return nullptr;
  const location_t call = gimple_location(open);
  if (expand_location(call).line - expand_location(pragma).line > reach_lines) return nullptr;
  // The pragma stands before a function that the open is in: that is not "immediately after".
  const location_t start = DECL_SOURCE_LOCATION(function);
  if (!DECL_ARTIFICIAL(function) && is_before(pragma, start) && is_before(start, call)) return nullptr;
  for (const Site& other : sites)
    if (&other != &site && is_before(pragma, other.at) && is_before(other.at, call)) return nullptr;
  return open;
}

/// Whether the signature could be used.
bool precede(gimple_stmt_iterator* at, gcall* call, Site& site) {
  const OpenCall open{*opener_of(gimple_call_fndecl(call)), call};
  site.used = true;
  if (open.argument(open.opener.path) == NULL_TREE) return false;  // a call that does not fit its declaration
  Snippet code(open.at());
  if (options.resolve == Resolve::compile) {
    if (!emit_link(code, open, site)) return false;
  } else {
    emit_hint(code, open, site);
  }
  gsi_insert_before(at, code.take(), GSI_SAME_STMT);
  return true;
}

tree change(gimple_stmt_iterator* at, bool* handled, walk_stmt_info* walk) {
  auto* found = static_cast<Found*>(walk->info);
  *handled = false;
  gimple* statement = gsi_stmt(*at);
  if (marked_site(assembler_text(statement)) >= 0) {
    gsi_replace(at, gimple_build_nop(), false);
  } else if (const auto match = found->site_of.find(statement); match != found->site_of.end()) {
    Site& site = sites[match->second];
    found->site_of.erase(match);  // the walk comes by again after an insertion
    auto* call = as_a<gcall*>(statement);
    const location_t place = gimple_location(call);
    const auto_diagnostic_group group;
    if (precede(at, call, site) && options.verbose) {
      inform(place, "%qs gets the signature %qs", opener_of(gimple_call_fndecl(call))->name.c_str(), site.text.c_str());
      inform(site.at, "from this pragma");
    }
  }
  return NULL_TREE;
}

constexpr pass_data inject_data = {GIMPLE_PASS, "iosig", OPTGROUP_NONE, TV_NONE, PROP_gimple_any, 0, 0, 0, 0};

class InjectPass final : public gimple_opt_pass {
 public:
  InjectPass() : gimple_opt_pass(inject_data, g) {}

  unsigned execute(function* fun) override {
    if (sites.empty()) return 0;
    Found found;
    walk_stmt_info walk{};
    walk.info = &found;
    gimple_seq body = gimple_body(fun->decl);
    walk_gimple_seq_mod(&body, find, nullptr, &walk);
    for (const int site : found.markers)
      if (gcall* open = open_of_marked(sites[site], found.opens)) found.site_of[open] = site;
    for (std::size_t i = 0; i < sites.size(); ++i)
      if (!sites[i].marked)
        if (gcall* open = open_of_unmarked(sites[i], found.opens, fun->decl)) found.site_of[open] = static_cast<int>(i);
    walk_gimple_seq_mod(&body, change, nullptr, &walk);
    gimple_set_body(fun->decl, body);
    return 0;
  }
};

}  // namespace

opt_pass* new_inject_pass() { return new InjectPass; }

void report_unused_sites() {
  if (flag_syntax_only || seen_error()) return;
  for (const Site& site : sites)
    if (!site.marked && !site.used)
      warning_at(site.at, OPT_Wpragmas, "%<#pragma sig%> is not followed by a declaration that opens a file");
}

}  // namespace iosig::gcc
