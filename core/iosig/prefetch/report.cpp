#include "iosig/prefetch/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "iosig/base/text.h"

namespace iosig::prefetch {
namespace {

double mb(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string amounts(const Counts& counts) {
  return fmt::format("useful {:.1f} MB, late {:.1f}, wasted {:.1f}, in memory before {:.1f}, of {:.1f} MB in {} reads",
                     mb(counts.useful_bytes), mb(counts.late_bytes), mb(counts.wasted_bytes), mb(counts.cached_bytes),
                     mb(counts.read_bytes), counts.reads);
}

}  // namespace

void Report::add(const FileSummary& file) {
  total_ += file.counts;
  ++(file.was_prefetched ? prefetched_ : left_alone_);
  if (file.path.empty()) return;  // it was read too rarely to be opened
  const auto known = std::ranges::find(files_, file.path, &FileSummary::path);
  if (known != files_.end()) {
    known->counts += file.counts;
    known->was_prefetched = known->was_prefetched || file.was_prefetched;
    known->why_left_alone = file.why_left_alone;
    known->note = file.note;
    return;
  }
  if (files_.size() < max_files) {
    files_.push_back(file);
    return;
  }
  const auto least =
      std::ranges::min_element(files_, {}, [](const FileSummary& each) { return each.counts.read_bytes; });
  if (least->counts.read_bytes < file.counts.read_bytes) *least = file;
}

std::string Report::text() const {
  std::string text =
      fmt::format("prefetch: {} open files prefetched, {} left alone; {}\n", prefetched_, left_alone_, amounts(total_));
  std::vector<FileSummary> sorted = files_;
  std::ranges::sort(sorted, std::ranges::greater(), [](const FileSummary& each) { return each.counts.read_bytes; });
  for (const FileSummary& file : sorted) {
    fmt::format_to(std::back_inserter(text), "prefetch: {}: {}", printable(file.path), amounts(file.counts));
    if (!file.why_left_alone.empty())
      text += (file.was_prefetched ? "; in the end left alone, " : "; left alone, ") + file.why_left_alone;
    if (!file.note.empty()) text += "; " + file.note;
    text += '\n';
  }
  return text;
}

}  // namespace iosig::prefetch
