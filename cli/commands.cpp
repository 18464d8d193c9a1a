#include "commands.h"

namespace iosig::cli {
namespace {

struct VerbRow {
  std::string_view name;
  void (*add)(Verb app, Action& action);
  bool describes_others = false;  ///< it needs all verbs
};

/// In the order of the help, that of the pipeline.
constexpr VerbRow verb_rows[] = {
    {"storage", add_storage},
    {"cc", add_cc},
    {"check", add_check},
    {"choose", add_choose},
    {"reliability", add_reliability},
    {"pattern", add_pattern},
    {"container", add_container},
    {"mount", add_mount},
    {"unmount", add_unmount},
    {"run", add_run},
    {"trace", add_trace},
    {"replay", add_replay},
    {"query", add_query},
    {"export", add_export},
    {"import", add_import},
    {"infer", add_infer},
    {"advise", add_advise},
    {"plan", add_plan},
    {"prepare", add_prepare},
    {"finalize", add_finalize},
    {"status", add_status},
    {"recover", add_recover},
    {"gc", add_gc},
    {"verify-file", add_verify_file},
    {"doctor", add_doctor},
    {"completion", add_completion, true},
    {"man", add_man, true},
    {"generate", add_generate},
    {"plot", add_plot},
    {"report", add_report},
    {"repro", add_repro},
    {"help", add_help, true},
};

}  // namespace

void add_verbs(Verb app, Action& action, std::string_view first) {
  for (const VerbRow& row : verb_rows)
    if (row.name == first && !row.describes_others) return row.add(app, action);
  for (const VerbRow& row : verb_rows) row.add(app, action);
}

/// Adds the verb to the list of verbs only: main() treats `iosig help VERB` as `iosig VERB --help`.
void add_help(Verb app, Action& /*action*/) {
  const Verb verb = app.add_verb("help", "Show the help of a command");
  verb.describe_option("VERB", "a command, e.g. choose or container ls").takes(0, 2);
  verb.footer("Example: iosig help container ls");
}

}  // namespace iosig::cli
