// `iosig reliability`: how long data of a size last on a mount point. mttdl computes it; simulate (cmd_simulate.cpp)
// plays it through.

#include "commands.h"
#include "reliability_source.h"

namespace iosig::cli {

void add_reliability(CLI::App& app, Action& action) {
  CLI::App* reliability = app.add_subcommand("reliability", "How long data last on a mount point");
  reliability->require_subcommand(1);
  reliability->footer("Example: iosig reliability mttdl --mount-point /mnt/raid --size 1TB");
  (void)action;
}

}  // namespace iosig::cli
