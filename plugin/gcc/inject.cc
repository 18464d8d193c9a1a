#include "inject.h"

#include "emit.h"
#include "options.h"

namespace iosig::gcc {
namespace {

/// Emits the code before the call. Returns whether the signature could be used.
bool precede(gimple_stmt_iterator* at, gcall* call, const Opener& opener, const Site& site) {
  const auto open = OpenCall::of(call, opener);
  if (!open) return false;
  Snippet code(open->at());
  if (options.resolve == Resolve::compile) {
    if (!emit_link(code, *open, site)) return false;
  } else {
    emit_hint(code, *open, site);
  }
  gsi_insert_before(at, code.take(), GSI_SAME_STMT);
  return true;
}

/// The calls and sites of the current function that have their code.
struct Done {
  std::unordered_set<gimple*> calls;  ///< needed because the walk visits a call again after an insertion
  std::unordered_set<std::size_t> sites;
};

tree change(gimple_stmt_iterator* at, bool* handled, walk_stmt_info* walk) {
  auto& done = *static_cast<Done*>(walk->info);
  *handled = false;
  gimple* statement = gsi_stmt(*at);
  if (is_marker(statement)) {
    gsi_replace(at, gimple_build_nop(), false);
    gimple_set_location(gsi_stmt(*at), UNKNOWN_LOCATION);  // --coverage must not count the pragma as a line
    return NULL_TREE;
  }
  auto* call = dyn_cast<gcall*>(statement);
  if (call == nullptr) return NULL_TREE;
  const location_t place = gimple_location(call);
  const auto match = site_of_call.find(get_pure_location(place));
  if (match == site_of_call.end()) return NULL_TREE;
  const auto opener = opener_of(gimple_call_fndecl(call));
  if (!opener || !done.calls.insert(call).second) return NULL_TREE;
  const Site& site = sites[match->second];
  if (const bool is_first = done.sites.insert(match->second).second; !is_first) {
    if (site.in_place) return NULL_TREE;
    if (LOCATION_COLUMN(place) == 0) {  // GCC does not track columns in very long lines
      warning_at(place, OPT_Wpragmas,
                 "the calls in this line cannot be told apart, it is too long; only the first open gets the signature "
                 "of %<#pragma sig%>");
      return NULL_TREE;
    }
  }
  const auto_diagnostic_group group;
  if (precede(at, call, *opener, site) && options.verbose) {
    inform(place, "%qs gets the signature %qs", opener->name.c_str(), site.text.c_str());
    inform(site.at, "from this pragma");
  }
  return NULL_TREE;
}

constexpr pass_data inject_data = {GIMPLE_PASS, "iosig", OPTGROUP_NONE, TV_NONE, PROP_gimple_any, 0, 0, 0, 0};

class InjectPass final : public gimple_opt_pass {
 public:
  InjectPass() : gimple_opt_pass(inject_data, g) {}

  unsigned execute(function* fun) override {
    if (sites.empty()) return 0;
    Done done;
    walk_stmt_info walk{};
    walk.info = &done;
    gimple_seq body = gimple_body(fun->decl);
    walk_gimple_seq_mod(&body, change, nullptr, &walk);
    gimple_set_body(fun->decl, body);
    return 0;
  }
};

}  // namespace

opt_pass* new_inject_pass() { return new InjectPass; }

}  // namespace iosig::gcc
