#include "commands.h"
namespace iosig::cli {
void add_storage(CLI::App&, Action&) {}
}  // namespace iosig::cli
