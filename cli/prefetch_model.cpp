#include "prefetch_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/predictors.h"
#include "iosig/format/read_model.h"
#include "iosig/trace/access_streams.h"
#include "trace_source.h"

namespace iosig::cli {
namespace {

/// As the prefetch engine sees it: without symbolic links.
std::string real_path(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, failure);
  return failure ? path : real.string();
}

}  // namespace

Result<std::int64_t> checked(const ModelOptions& options) {
  if (options.block_bytes.empty()) return 0;
  if (options.file.empty()) return fail(ErrorKind::usage, "--markov needs --model, the file to be written");
  const auto bytes = parse_bytes(options.block_bytes);
  if (!bytes) return fail(ErrorKind::usage, "--markov: {}", bytes.error().message);
  constexpr std::uint64_t min_bytes = 512;
  if (*bytes < min_bytes || *bytes > GiB)
    return fail(ErrorKind::usage, "--markov={}: expected a size of blocks from 512 B to 1 GiB, e.g. 8KiB",
                printable(options.block_bytes));
  return static_cast<std::int64_t>(*bytes);
}

Result<void> write_model(const trace::Trace& trace, const trace::Selection& selection, const ModelOptions& options,
                         const Console& console) {
  const auto block_bytes = checked(options);
  if (!block_bytes) return pass_on(block_bytes.error());
  std::vector<Error> faults;
  auto found = trace::access_streams(trace, selection, trace::Moves::reads, faults, trace::InOrderOf::threads);
  if (!found) return pass_on(found.error());
  ReadModel model;
  std::uint64_t reads = 0;
  for (trace::AccessStream& stream : found->streams) {
    if (stream.path.empty() || observe::is_of_system(stream.path)) continue;
    const std::uint64_t count = stream.pattern.count();
    if (count > max_known_reads) {
      console.note(fmt::format("'{}' is left out: {} reads, and at most {} of a file are remembered",
                               printable(stream.path), count, max_known_reads));
      continue;
    }
    FileReads made{.path = real_path(stream.path), .model = {}};
    if (*block_bytes > 0) {
      const auto known = reads_of(stream.pattern);
      if (!known) return pass_on(known.error());
      made.model = transitions_of(*known, *block_bytes);
    } else {
      made.model = std::move(stream.pattern);
    }
    reads += count;
    model.files.push_back(std::move(made));
  }
  std::ranges::stable_sort(model.files, {}, &FileReads::path);
  const auto again = std::unique(model.files.begin(), model.files.end(),
                                 [](const FileReads& one, const FileReads& other) { return one.path == other.path; });
  if (again != model.files.end())
    console.note(fmt::format("{} left out: other names of a file that the model has",
                             model.files.end() - again == 1 ? "a path is" : "some paths are"));
  model.files.erase(again, model.files.end());
  const std::vector<std::uint8_t> bytes = read_model_bytes(model);
  if (auto written = write_output(options.file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !written)
    return written;
  console.note(fmt::format("'{}': a model of {} reads of {} file{}, {} bytes", printable(options.file), reads,
                           model.files.size(), model.files.size() == 1 ? "" : "s", bytes.size()));
  return {};
}

}  // namespace iosig::cli
