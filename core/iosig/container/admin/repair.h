// Checks and repairs a container. check_container() names what is lost. repair_container() completes the indices of
// dead writers, and quarantines what no sound index describes.
//
// **Data loss: run one repair of a container at a time, and none while a program on another node writes it, unless
// flock(2) works across nodes.** A writer is alive if its tail is locked by flock(2). Two repairs do not exclude each
// other: they use the same names for their drafts.
// **Lost writes are given up:** reads of a damaged container fail where the lost writes may have been. After repair
// they succeed, as if these writes had never been made. Export the file first if you need the bytes that are left.
//
// The steps, in this order. Steps 4 to 6 are made for each writer in turn, by id. A dry run makes all decisions and
// changes nothing.
//
// Step 1: claim the data on targets. If the container is a copy: fails, unless `claim` is set and the original is gone.
//   Replaces the manifest copy on each target; each replacement is atomic. A crash leaves some targets claimed. The
//   next repair with `claim` claims the others.
// Step 2: lock the tails of dead writers, with a shared flock(2) that lasts to the end. Changes nothing on disk.
//   Writers that are alive, and writers that begin from now on, are left alone: a new tail that repair has locked
//   makes its writer take another id.
// Step 3: read all droppings. Fails if an index has lost writes that the index snapshot still has. Changes nothing.
// Step 4: complete the index of a writer that is dead or closed. If its index is sound in parts, and is damaged, has a
//   tail beside it, or has lost writes: the new index holds all sound frames, the tail's writes, and the losses. If it
//   is not what the writer had when it was closed: the new index is that of the record
//   (container/layout/closed_writers). After a power failure, the writes of a dead writer whose data were not synced
//   and never reached the device are left out.
//   4a: write it to the draft `.iosig-aside-index.<id>`, and fsync it. After a crash, the next repair replaces the
//       draft. Readers ignore it.
//   4b: if the index is damaged, link it into the quarantine. After a crash, it has two names and is still in use.
//   4c: rename the draft, which has the old index's times, over the index, and fsync the directory. Readers find the
//       old index or the new one, both with the tail. They leave out what the tail repeats, by its place in the data
//       dropping.
//   4d: record the writer as closed, with the new index. After a crash before, readers of a writer that was closed use
//       the former record, and the next repair repeats step 4.
// Step 5: retire the tail, which step 4 has made superfluous: delete it, or quarantine it if some of its records are
//   lost. After a crash, the tail is still there, and the next repair repeats steps 4 and 5.
// Step 6: quarantine the droppings of a writer without a sound index, if it has data, had synced, or belongs to another
//   container:
//   data, then tail, then index; then record that the writer was given up. Each is one rename. Data on a target stay
//   there, as `.iosig-aside-data.<id>`. After a crash, the rest stays where it is. Readers find no data for it, and
//   check_container() names the data that were moved.
// Step 7: quarantine tails that have no index. As step 6.
// Step 8: quarantine files that are no part of a container. As step 6.
// Step 9: if a file with records of closed writers is damaged, quarantine it as in step 6, and record all closed
// writers
//   again. After a crash, some have no record: their indices have no replica.
//
// The quarantine is a directory `.iosig-aside-<microseconds>` of the container, made when it is needed.
//
// Repair never writes to a data dropping and never deletes one, never changes an index in place, never replaces an
// index by one that holds less of what is sound and has its data, never deletes a tail before its writes are durable in
// an index, and never changes a dropping of a writer that is alive. The names in the quarantine are not synced: after a
// loss of power, a file of steps 6 to 9 may be where it was, and the damaged index of 4b may be gone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iosig/container/read/content.h"
#include "iosig/container/read/data_verifier.h"

namespace iosig {

/// Bytes of the logical file that cannot be read: a dropping that should hold them is missing, or was cut.
struct LostRange {
  std::int64_t offset = 0, length = 0;
};

struct ContainerCheck {
  std::int64_t size = 0;
  std::vector<ContainerProblem> problems;
  std::vector<LostRange> lost;    ///< the first ones, in order
  std::int64_t lost_bytes = 0;    ///< of the logical file, in all; what lost its index is not among them
  std::optional<DataCheck> data;  ///< if the data were read
};

struct CheckOptions {
  bool data = false;                                   ///< read all data, too, and compare them with their checksums
  std::function<void(std::int64_t)> on_progress = {};  ///< receives the number of bytes read so far
};

/// Reads the indices and looks at the droppings' sizes; of the data nothing is read, unless `options.data` is set.
[[nodiscard]] Result<ContainerCheck> check_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                                     const CheckOptions& options = {});

struct RepairStep {
  std::string done;  ///< what was, or would be, done
};

struct RepairOptions {
  bool dry_run = false;  ///< only report what would be done
  bool claim = false;    ///< step 1: a copy takes the data on the targets from the container that they belong to
};
/// Repairs the container by the steps above, and returns what was done. If a step fails, the steps before it remain
/// done; the caller may repeat the call.
[[nodiscard]] Result<std::vector<RepairStep>> repair_container(
    const std::shared_ptr<const ContainerDirectory>& directory, const RepairOptions& options = {});

}  // namespace iosig
