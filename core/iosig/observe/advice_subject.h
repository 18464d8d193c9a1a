// The subject of advice: the streams of a run, how their accesses are, and how long they take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "iosig/observe/infer.h"
#include "iosig/observe/stream_costs.h"

namespace iosig::observe {

struct Subject {
  InferredStream stream;
  StreamCosts costs;
  trace::Layer layer = trace::Layer::posix;
  bool is_new = true;            ///< the run has made its files, or emptied them
  bool follows_link = true;      ///< a link in the place of a file lasts until the end of the run
  bool may_refuse_link = false;  ///< opened with O_NOFOLLOW
  bool has_several_writers = false;
  std::uint64_t readers = 0, writers = 0;  ///< processes of each file, summed up over the files

  [[nodiscard]] const LayerCosts& moved() const { return costs.layers[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] bool has_word(std::string_view word) const {
    return std::ranges::any_of(stream.findings, [&](const Finding& each) { return each.word == word; });
  }
  /// How often a process began to write, or to read, one of the files: by an open, unless it had opened it before, or
  /// with a descriptor that it inherited.
  [[nodiscard]] std::uint64_t uses(bool writes) const {
    return std::max<std::uint64_t>(costs.opens.calls - costs.repeated_opens.calls, writes ? writers : readers);
  }
  [[nodiscard]] bool is_random() const { return stream.order == "random" || stream.order == "strided"; }
};

/// The streams with transfers, as infer() groups them; then the other files, each for itself.
[[nodiscard]] std::vector<Subject> subjects_of(const TracedRun& run, const RunCosts& costs);

}  // namespace iosig::observe
