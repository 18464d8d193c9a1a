#include "commands.h"
namespace iosig::cli {
void add_prepare(CLI::App&, Action&) {}
}  // namespace iosig::cli
