// The report for the user: how many prefetched bytes of which files came in time, and why the others were left alone.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/prefetch/stream.h"

namespace iosig::prefetch {

struct FileSummary {
  std::string path;
  Counts counts;
  std::string why_left_alone = {};
  bool was_prefetched = false;
  std::string note = {};  ///< what the user should know of how it was predicted; may be empty
};

class Report {
 public:
  /// Adds an open file. Of one path there is one line. Files that were prefetched or read more than a few times get
  /// lines, those with the most bytes.
  void add(const FileSummary& file);
  /// Returns lines that end with newlines: this process's name, its number and the total, then each file, those with
  /// the most bytes first, and how many have no line.
  [[nodiscard]] std::string text() const;
  /// Whether a file has a line.
  [[nodiscard]] bool is_of_note() const;
  [[nodiscard]] const Counts& total() const { return total_; }

 private:
  static constexpr std::size_t max_lines = 32, max_kept = 1024;
  std::vector<FileSummary> files_;
  Counts total_;
  std::size_t prefetched_ = 0, left_alone_ = 0, unnamed_ = 0;
};

/// Returns the first line of a process whose planner had nothing to do, with a newline, in `room`. Allocates nothing.
std::string_view empty_report(std::span<char> room);

/// Passes the lines of a report to `say`, without their newlines: terminals and logs take one at a time. Allocates
/// nothing.
template <class Say>
void for_each_line(std::string_view report, const Say& say) {
  while (!report.empty()) {
    const std::string_view line = report.substr(0, report.find('\n'));
    say(line);
    report.remove_prefix(std::min(line.size() + 1, report.size()));
  }
}

}  // namespace iosig::prefetch
