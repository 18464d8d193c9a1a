// The verbs. Each cmd_*.cpp declares the options of its verb and sets the action to run.
#pragma once

#include <string_view>

#include "verb.h"

namespace iosig::cli {

/// Adds the verb called `first`, the first word of the command line, or all verbs if it does not suffice: for the help,
/// for a word that is no verb, and for verbs that describe the others. Declaring all of them takes longer than most
/// verbs run.
void add_verbs(Verb app, Action& action, std::string_view first);

void add_storage(Verb app, Action& action);
void add_cc(Verb app, Action& action);
void add_check(Verb app, Action& action);
void add_choose(Verb app, Action& action);
void add_reliability(Verb app, Action& action);
void add_pattern(Verb app, Action& action);
/// `iosig pattern trace`, below `iosig pattern`.
void add_pattern_trace(Verb pattern, Action& action);
void add_container(Verb app, Action& action);
void add_mount(Verb app, Action& action);
void add_unmount(Verb app, Action& action);
void add_run(Verb app, Action& action);
void add_trace(Verb app, Action& action);
void add_replay(Verb app, Action& action);
void add_query(Verb app, Action& action);
void add_export(Verb app, Action& action);
void add_import(Verb app, Action& action);
void add_infer(Verb app, Action& action);
void add_advise(Verb app, Action& action);
void add_plan(Verb app, Action& action);
/// `iosig trace info`, below `iosig trace`.
void add_trace_info(Verb trace, Action& action);
void add_prepare(Verb app, Action& action);
void add_finalize(Verb app, Action& action);
void add_status(Verb app, Action& action);
void add_recover(Verb app, Action& action);
void add_gc(Verb app, Action& action);
void add_doctor(Verb app, Action& action);
void add_verify_file(Verb app, Action& action);
void add_completion(Verb app, Action& action);
void add_man(Verb app, Action& action);
void add_plot(Verb app, Action& action);
void add_generate(Verb app, Action& action);
void add_report(Verb app, Action& action);
void add_repro(Verb app, Action& action);
void add_query_sql(Verb query);
void add_help(Verb app, Action& action);

}  // namespace iosig::cli
