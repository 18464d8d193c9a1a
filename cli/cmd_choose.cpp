#include "commands.h"
namespace iosig::cli {
void add_choose(CLI::App&, Action&) {}
}  // namespace iosig::cli
