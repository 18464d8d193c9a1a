// Globs that hold for the next run: which paths of a run belong together, and what of a name was true of that run only.
//
// Example: out/step0001.h5 to out/step0100.h5 become out/step[0-9]*.h5; log.4711, written by process 4711, becomes
// log.[0-9]*; three files that mkstemp(3) made, scratch.aB3xYz and so on, become scratch.??????.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace iosig::observe {

/// What is true of one run only: numbers in the names of its files that the next run has not.
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
  std::string glob;                  ///< for fnmatch(3) with FNM_PATHNAME
  std::vector<std::size_t> members;  ///< places in the list of paths, ascending
  bool has_open_end = false;         ///< the glob also matches names of quite another kind
  std::string why;                   ///< what the glob leaves open, and for what reason; empty: it is a path
};

/// Puts each path in one family. Families without a wildcard come first: where globs of two families match the same
/// path, the first that matches it is its own, unless both have wildcards.
[[nodiscard]] std::vector<PathFamily> families_of(std::span<const PathUse> paths);

/// Returns the glob that matches `path` alone.
[[nodiscard]] std::string escaped_glob(std::string_view path);

}  // namespace iosig::observe
