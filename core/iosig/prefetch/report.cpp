#include "iosig/prefetch/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

bool is_file_of_note(const FileSummary& file) {
  constexpr std::uint64_t many_reads = 32, many_bytes = 1 << 20;
  return file.was_prefetched || !file.note.empty() || file.counts.reads >= many_reads ||
         file.counts.read_bytes >= many_bytes;
}

}  // namespace

void Report::add(const FileSummary& file) {
  total_ += file.counts;
  ++(file.was_prefetched ? prefetched_ : left_alone_);
  if (file.path.empty()) {  // it was read too rarely to be opened
    ++unnamed_;
    return;
  }
  const auto known = std::ranges::find(files_, file.path, &FileSummary::path);
  if (known != files_.end()) {
    known->counts += file.counts;
    known->was_prefetched = known->was_prefetched || file.was_prefetched;
    known->why_left_alone = file.why_left_alone;
    known->note = file.note;
    return;
  }
  files_.push_back(file);
  if (files_.size() <= max_kept) return;
  const auto least =
      std::ranges::min_element(files_, {}, [](const FileSummary& each) { return each.counts.read_bytes; });
  files_.erase(least);
  ++unnamed_;
}

bool Report::is_of_note() const { return std::ranges::any_of(files_, is_file_of_note); }

std::string Report::text() const {
  std::vector<FileSummary> shown;
  std::ranges::copy_if(files_, std::back_inserter(shown), is_file_of_note);
  std::ranges::sort(shown, std::ranges::greater(), [](const FileSummary& each) { return each.counts.read_bytes; });
  if (shown.size() > max_lines) shown.resize(max_lines);
  std::string text = fmt::format("prefetch: {} ({}): {} open file{} prefetched, {} left alone; {}\n",
                                 printable(program_invocation_short_name), ::getpid(), prefetched_,
                                 prefetched_ == 1 ? "" : "s", left_alone_, amounts(total_));
  for (const FileSummary& file : shown) {
    fmt::format_to(std::back_inserter(text), "prefetch: {}: {}", printable(file.path), amounts(file.counts));
    if (!file.why_left_alone.empty())
      text += (file.was_prefetched ? "; in the end left alone, " : "; left alone, ") + file.why_left_alone;
    if (!file.note.empty()) text += "; " + file.note;
    text += '\n';
  }
  if (const std::size_t others = files_.size() - shown.size() + unnamed_; others > 0)
    fmt::format_to(std::back_inserter(text), "prefetch: {} other{} of few reads\n", others,
                   others == 1 ? " file" : " files");
  return text;
}

std::string_view empty_report(std::span<char> room) {
  const auto written =
      fmt::format_to_n(room.data(), room.size(), "prefetch: {} ({}): nothing was prefetched: too few reads\n",
                       program_invocation_short_name, ::getpid());
  return {room.data(), std::min(written.size, room.size())};
}

}  // namespace iosig::prefetch
