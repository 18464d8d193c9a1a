// Finds globs that match the files of the next run, too: groups paths that differ in numbers, and replaces numbers and
// letters that change with every run.
//
// Example: out/step1.h5 to out/step20.h5 become out/step[0-9]*.h5, step01.h5 to step20.h5 step[0-9][0-9].h5; log.4711,
// written by process 4711, becomes log.[0-9]*; scratch.aB3xYz, which mkstemp(3) made, scratch. and six times
// [A-Za-z0-9_].
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace iosig::observe {

/// Numbers in the names of files that change with every run.
struct RunNumbers {
  std::set<std::string> words = {};         ///< process ids and ids of batch jobs, as they are in names
  std::int64_t started_s = 0, ended_s = 0;  ///< seconds since 1970; 0 and 0: not known
  std::int64_t seconds_east = 0;            ///< of UTC: the time zone in which names have their date
};

struct PathUse {
  std::string path;
  /// Only paths of one kind belong together, e.g. those that are written.
  int kind = 0;
  bool may_be_random = false;  ///< made by open(2) with O_EXCL, as mkstemp(3) does
  const RunNumbers* run = nullptr;
};

struct PathFamily {
  std::string glob = {};                  ///< for fnmatch(3) with FNM_PATHNAME
  std::vector<std::size_t> members = {};  ///< places in the list of paths, ascending
  bool has_open_end = false;              ///< the glob also matches names of quite another kind
  std::string why = {};                   ///< the reason for the wildcards; empty: the glob is a path
};

/// Puts each path in one family. Families without a wildcard come first: where globs of two families match the same
/// path, the first that matches it is its own, unless both have wildcards.
[[nodiscard]] std::vector<PathFamily> families_of(std::span<const PathUse> paths);

}  // namespace iosig::observe
