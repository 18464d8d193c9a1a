// Compares the files that a replay of a trace left with what the trace says.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "iosig/base/text.h"
#include "iosig/replay/trace_replay.h"

namespace iosig {
namespace {

constexpr std::int64_t checked_at_once = 1 << 20;

class FileCheck {
 public:
  FileCheck(const TracePlan& plan, const FinalFile& file, const Fd& opened, TraceCheckMetrics& metrics)
      : plan_(plan), file_(file), opened_(opened), metrics_(metrics), bytes_(checked_at_once) {}

  /// Checks [begin, end) against what these origins wrote.
  Result<void> check(std::int64_t begin, std::int64_t end, std::span<const WriteOrigin> origins, WrongBytes& wrong) {
    while (begin < end) {
      const auto part = static_cast<std::size_t>(std::min(checked_at_once, end - begin));
      const ssize_t got = ::pread(opened_.get(), bytes_.data(), part, begin);
      if (got < 0) return system_failure("read", plan_.paths[file_.path].name);
      if (got == 0) return {};  // its size is wrong, which is told
      checker_.check(std::span(bytes_).first(static_cast<std::size_t>(got)), begin, origins, wrong);
      begin += got;
      metrics_.bytes += got;
    }
    return {};
  }

  Result<void> check_all(WrongBytes& wrong) {
    const auto& group = plan_.groups[plan_.paths[file_.path].group];
    std::vector<WriteOrigin> initial;  // bytes that no stream wrote are the initial ones, or a hole
    std::ranges::copy_if(group.origins, std::back_inserter(initial),
                         [](const WriteOrigin& origin) { return origin.rank == 0; });
    std::int64_t at = 0;
    for (const auto& [begin, range] : file_.owners) {
      if (auto checked = check(at, begin, initial, wrong); !checked) return checked;
      const std::span<const WriteOrigin> origins = range.origin == shared_origin
                                                       ? std::span<const WriteOrigin>(group.origins)
                                                       : std::span(&plan_.origins[range.origin], 1);
      if (auto checked = check(begin, range.end, origins, wrong); !checked) return checked;
      at = range.end;
    }
    return check(at, file_.size, initial, wrong);
  }

 private:
  const TracePlan& plan_;
  const FinalFile& file_;
  const Fd& opened_;
  TraceCheckMetrics& metrics_;
  std::vector<std::byte> bytes_;
  ContentChecker checker_;
};

void note_fault(TraceCheckMetrics& metrics, std::string text) {
  if (metrics.first_fault.empty()) metrics.first_fault = std::move(text);
}

}  // namespace

Result<TraceCheckMetrics> check_trace_replay(const TracePlan& plan, TargetTree& tree, const ReplayWatch& watch) {
  TraceCheckMetrics metrics;
  for (const FinalFile& file : plan.finals) {
    const std::string& name = plan.paths[file.path].name;
    const std::string shown = printable(fmt::format("{}/{}", tree.path(), name));
    ++metrics.files;
    const int opened = tree.open_file(name, O_RDONLY);
    if (opened < 0) {
      ++metrics.wrong_sizes;
      note_fault(metrics, fmt::format("'{}' is missing: {}", shown, std::strerror(-opened)));
      continue;
    }
    const Fd fd(opened);
    struct stat at {};
    if (::fstat(opened, &at) != 0) return system_failure("examine", shown);
    if (at.st_size != file.size) {
      ++metrics.wrong_sizes;
      note_fault(metrics, fmt::format("'{}' has {} bytes, and had {}", shown, at.st_size, file.size));
    }
    if (!file.is_known) {
      ++metrics.unchecked_files;
      continue;
    }
    WrongBytes wrong;
    if (auto checked = FileCheck(plan, file, fd, metrics).check_all(wrong); !checked) return pass_on(checked.error());
    if (wrong.count > 0)
      note_fault(metrics, fmt::format("'{}' has {} wrong bytes, the first at {}", shown, wrong.count, wrong.first));
    if (metrics.wrong.count == 0) metrics.wrong.first = wrong.first;
    metrics.wrong.count += wrong.count;
    if (!watch(static_cast<std::uint64_t>(metrics.bytes))) return fail(ErrorKind::system, "interrupted");
  }
  return metrics;
}

}  // namespace iosig
