// Adds to a view what the writers of this node have written since the view was read, without reading their indices
// again.
//
// A write is in its writer's tail before it is counted in the sequencer (SlotState::changes), so the follower reads the
// tails of the writers whose counts have changed, from where it stopped. It does not follow:
//   marks (truncate, extend, punch), which are in the index only;
//   a writer that moved writes to its index before they were seen: its tail then begins behind the known data;
//   a writer whose slot another writer has taken meanwhile;
//   writes whose order to those of the view is not known.
// In these cases the view must be read again.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/read/container_view.h"

namespace iosig {

/// Used by one thread at a time.
class Follower {
 public:
  /// `keeper` decides whether the tails stay open.
  explicit Follower(FdKeeper& keeper) : keeper_(keeper) {}
  /// Begins at the writes that `view` shows. `slots` were read before the view was; empty: nothing can be followed.
  void start(const ContainerView& view, SlotStates slots);
  /// Adds the writes that ended before the call, and perhaps later ones. false: the view must be read again, and
  /// start() called; until then it may show some of the new writes.
  [[nodiscard]] bool follow(ContainerView& view, const SequencerWatch& watch);
  /// Closes the tails. Returns their number.
  std::size_t close_fds();

 private:
  struct Writer {
    Fd tail;
    std::int64_t end = 0;      ///< of the data that the view shows
    std::int64_t first = -1;   ///< physical offset of the tail's first record when it was last read
    std::size_t position = 0;  ///< of the last record that was read since then
  };
  bool follow(ContainerView& view, std::int64_t id, Writer& writer);
  bool add(ContainerView& view, std::int64_t id, Writer& writer, const TailRecord& record);

  FdKeeper& keeper_;
  SlotStates known_;
  std::vector<std::size_t> changed_;  ///< slots; kept for its memory
  std::map<std::int64_t, Writer> writers_;
};

}  // namespace iosig
