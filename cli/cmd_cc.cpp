#include "commands.h"
namespace iosig::cli {
void add_cc(CLI::App&, Action&) {}
}  // namespace iosig::cli
