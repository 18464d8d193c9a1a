// The servers that files can be striped over, as a table.
#pragma once

#include "console.h"
#include "iosig/model/storage.h"

namespace iosig::cli {

/// Prints one line for each class of servers, and the network; nothing if there are no servers. Returns the exit
/// status: that of the failure if servers of a class differ too much.
int say_servers(const Storage& storage, Console& console);

}  // namespace iosig::cli
