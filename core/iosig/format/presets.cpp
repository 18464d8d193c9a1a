#include "iosig/format/presets.h"

#include <algorithm>

namespace iosig {
namespace {

constexpr Preset all[] = {
    {"hot-data", "random persist size-per-IO(4KB)", "read and changed all the time, a page here and a page there"},
    {"warm-data", "persist size-per-IO(256KB)", "used now and then, in pieces"},
    {"cold-data", "persist archive size-per-IO(16MB)", "seldom used, in large pieces"},
    {"transaction-log", "sequential persist size-per-IO(4KB)", "a database's log or journal: small records, appended"},
    {"rollback-log", "sequential persist size-per-IO(1MB)", "what undoes a transaction, appended in larger pieces"},
    {"database-table", "random persist size-per-IO(16KB)", "pages that are changed in place"},
    {"versioned-store", "sequential persist size-per-IO(1MB)",
     "data that grow by new versions, never changed in place"},
    {"checkpoint", "sequential persist size-per-IO(16MB)", "a program's state, written at once, read after a failure"},
    {"scratch", "temp read-share(0.5)", "written and read back by one job, then worthless"},
    {"long-term-archive", "sequential persist archive size-per-IO(16MB)", "written once, kept, hardly ever read"},
};

}  // namespace

std::span<const Preset> presets() { return all; }

const Preset* find_preset(std::string_view name) {
  const auto* found = std::ranges::find(all, name, &Preset::name);
  return found == std::end(all) ? nullptr : found;
}

}  // namespace iosig
