#include "commands.h"

namespace iosig::cli {

/// Adds the verb to the list of verbs only: main() treats `iosig help VERB` as `iosig VERB --help`.
void add_help(Verb app) {
  const Verb verb = app.add_verb("help", "Show the help of a command");
  verb.describe_option("VERB", "a command, e.g. choose or container ls").takes(0, 2);
  verb.footer("Example: iosig help container ls");
}

}  // namespace iosig::cli
