#include "iosig/replay/replay_prefetch.h"

#include <fcntl.h>

#include <utility>

#include "iosig/base/text.h"

namespace iosig {
namespace {

// One for each process: its threads use it until the process ends.
constinit prefetch::Observer observer;
prefetch::Settings settings;

}  // namespace

ReplayPrefetch::ReplayPrefetch(PredictorKind kind, ReadsOfFiles coming) : kind_(kind), coming_(std::move(coming)) {
  if (!is_on()) return;
  settings.make_predictor = [this](const std::string& path) { return prefetch::MadePredictor{make(path)}; };
  settings.begins_at_first_read = needs_reads(kind_);
  observer.start(settings);
}

std::unique_ptr<ReadPredictor> ReplayPrefetch::make(const std::string& path) const {
  if (kind_ == PredictorKind::pattern) return pattern_predictor();
  if (kind_ == PredictorKind::paper) return paper_predictor();
  const auto file = longest_path_end(coming_.begin(), coming_.end(), path,
                                     [](const auto& each) -> std::string_view { return each.first; });
  if (file == coming_.end()) return nullptr;
  if (kind_ == PredictorKind::markov)
    return markov_predictor(
        std::make_shared<const BlockTransitions>(transitions_of({file->second}, default_markov_block_bytes)));
  return remembered_predictor(std::make_shared<const KnownReads>(KnownReads{file->second}));
}

void ReplayPrefetch::opened(int fd) const {
  if (kind_ == PredictorKind::none) (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

void ReplayPrefetch::closed(int fd) {
  if (is_on()) observer.closed(fd);
}

ReplayPrefetch::Reading ReplayPrefetch::begin(int fd, std::int64_t offset, std::int64_t length) {
  return is_on() ? observer.begin(fd, offset, length) : Reading{};
}

void ReplayPrefetch::end(Reading& reading, std::int64_t result) { observer.end(reading, result); }

prefetch::Counts ReplayPrefetch::finish() {
  if (!is_on()) return {};
  const bool is_told = !observer.report().empty();
  const prefetch::Counts counts = is_told ? observer.reported_counts() : prefetch::Counts{};
  observer.stop();
  return counts;
}

}  // namespace iosig
