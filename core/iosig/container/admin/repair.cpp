#include "iosig/container/admin/repair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "iosig/base/crc32c.h"
#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/unstored_writes.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/layout/target_owner.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/index_snapshot.h"

namespace iosig {
namespace {

constexpr std::size_t max_ranges = 16;

/// The steps are those of repair.h.
class Repair {
 public:
  Repair(const ContainerDirectory& directory, const RepairOptions& options)
      : directory_(directory), options_(options) {}

  Result<std::vector<RepairStep>> run() {
    // Step 1: a copy takes the data on the targets.
    if (auto claimed = claim_targets_of_copy(); !claimed) return pass_on(std::move(claimed.error()));
    // Step 2: lock the tails of dead writers.
    lock_tails_of_dead_writers();
    // Step 3: read all droppings.
    if (auto read = read_droppings(); !read) return pass_on(std::move(read.error()));
    for (const std::int64_t id : ids_) {
      if (is_at_work(id)) continue;
      const auto writer = std::ranges::lower_bound(content_.writers, id, {}, &WriterContent::id);
      const bool is_sound = writer != content_.writers.end() && writer->id == id;
      // Steps 4 and 5: complete the index, then retire the tail. Step 6: there is no sound index.
      auto done = is_sound ? mend(*writer) : quarantine_lost_writer(id);
      if (!done) return pass_on(std::move(done.error()));
    }
    // Step 7: quarantine tails without an index.
    if (auto done = quarantine_tails_without_index(); !done) return pass_on(std::move(done.error()));
    // Step 8: quarantine foreign files.
    if (auto done = quarantine_foreign_files(); !done) return pass_on(std::move(done.error()));
    // Step 9: renew the record of closed writers.
    if (auto done = renew_records(); !done) return pass_on(std::move(done.error()));
    return std::move(steps_);
  }

 private:
  // Step 1

  Result<void> claim_targets_of_copy() {
    const auto may = may_be_written(directory_);
    if (may) return {};
    if (!options_.claim) return pass_on(may.error());
    if (auto claim = may_be_claimed(directory_); !claim) return claim;
    did("claimed the data on its targets");
    return options_.dry_run ? Result<void>() : claim_targets(directory_);
  }

  // Step 2

  /// Writers may begin and end meanwhile. Those that are not in the listing are not looked at. A locked tail does not
  /// change any more. A writer with a tail that is not locked here is alive, or was when the tail was tried.
  void lock_tails_of_dead_writers() {
    listing_ = directory_.list();
    for (const std::int64_t id : listing_.tail) {
      Fd tail = directory_.open_dropping(Dropping::tail, id, O_RDWR);
      if (tail && !is_alive(tail)) dead_.emplace(id, std::move(tail));
    }
    std::ranges::set_union(listing_.index, listing_.data, std::back_inserter(ids_));
  }
  [[nodiscard]] bool is_at_work(std::int64_t id) const {
    return !dead_.contains(id) && directory_.open_dropping(Dropping::tail, id, O_PATH);
  }

  // Step 3

  /// Fails if the index snapshot is the last to know what an index has lost: repair would make it void.
  Result<void> read_droppings() {
    auto content = read_content(directory_);
    if (!content) return pass_on(std::move(content.error()));
    content_ = *std::move(content);
    auto closed = ClosedWriters::read(directory_, listing_.closed_writers);
    if (!closed) return pass_on(std::move(closed.error()));
    closed_ = *std::move(closed);
    std::set<std::int64_t> ids(ids_.begin(), ids_.end());
    for (const WriterContent& writer : content_.writers) ids.insert(writer.id);
    for (const SyncedWriter& synced : closed_.synced())  // all its droppings may be missing
      if (has_lost_writes(synced.id)) ids.insert(synced.id);
    ids_.assign(ids.begin(), ids.end());
    if (!content_.lost_writes.empty() && read_index_snapshot(directory_))
      return fail(
          ErrorKind::infeasible,
          "'{}': its index snapshot still describes writes that the writers' indices have lost: copy the file by iosig "
          "container export first; then remove '{}/{}'",
          printable(directory_.path()), printable(directory_.path()), index_snapshot_name);
    return {};
  }
  [[nodiscard]] bool has_lost_writes(std::int64_t id) const {
    return std::ranges::find(content_.lost_writes, id, &LostWrites::id) != content_.lost_writes.end();
  }

  // Steps 4 and 5

  /// Completes the index of a dead writer, and retires its tail.
  Result<void> mend(WriterContent& writer) {
    if (writer.has_tail && !dead_.contains(writer.id)) return {};  // it was at work when it was read
    const bool has_lost = has_lost_writes(writer.id);
    const std::int64_t end = writer.physical_end();
    const bool has_synced_data = writer.data_bytes >= writer.synced_data(closed_.find_synced(writer.id));
    const std::uint64_t dropped = writer.has_tail && has_synced_data ? drop_unstored_writes(writer) : 0;
    if (dropped > 0)
      did(fmt::format("dropped the last {} write{} of '{}', not synced: their data did not reach the device", dropped,
                      dropped == 1 ? "" : "s", directory_.shown(Dropping::data, writer.id)));
    if (writer.damage.empty() && !writer.has_tail && !has_lost && !writer.is_restored) return {};
    const std::vector<IndexLoss> losses = losses_of(writer, end, has_lost);
    report(writer, losses);
    if (options_.dry_run) return {};
    // Step 4: rewrite the index.
    const std::vector<std::uint8_t> index = index_bytes(writer, losses);
    if (auto written = rewrite_index(writer, index); !written) return written;
    record(writer.id, std::max<std::int64_t>(writer.data_bytes, 0), index, writer.synced);
    // Step 5: retire the tail.
    return writer.has_tail ? retire_tail(writer.id, has_lost) : Result<void>();
  }

  /// Returns the losses that the new index records, in addition to those of the old one. `end`: where the data ended
  /// that were described before writes were dropped.
  static std::vector<IndexLoss> losses_of(const WriterContent& writer, std::int64_t end, bool has_lost) {
    std::vector<IndexLoss> losses = writer.unindexed();
    if (const std::int64_t kept = writer.physical_end(); kept < end) {
      std::erase_if(losses, [&](const IndexLoss& loss) { return loss.physical == kept; });
      losses.push_back({kept, end - kept, true});
    }
    if (has_lost && losses.empty()) losses.push_back({writer.physical_end(), 0});
    if (has_lost)  // a damaged tail does not tell how many writes had ended
      for (IndexLoss& loss : losses) loss.was_unfinished = false;
    return losses;
  }

  void report(const WriterContent& writer, const std::vector<IndexLoss>& losses) {
    if (writer.tail_writes > 0)
      did(fmt::format("put {} write{} of '{}' into its index", writer.tail_writes, writer.tail_writes == 1 ? "" : "s",
                      directory_.shown(Dropping::tail, writer.id)));
    if (writer.is_restored)
      did(fmt::format("restored '{}' from the record of closed writers", directory_.shown(Dropping::index, writer.id)));
    if (!writer.damage.empty())
      did(fmt::format("rewrote '{}' without its damaged frames", directory_.shown(Dropping::index, writer.id)));
    for (const IndexLoss& loss : losses)
      if (!loss.was_unfinished)
        did(fmt::format("gave up bytes {} to {} of '{}': their index is lost", loss.physical,
                        loss.physical + loss.length, directory_.shown(Dropping::data, writer.id)));
  }

  /// Replaces the index atomically by one with all sound frames, the tail's writes, and the losses. The new index keeps
  /// the old one's times: repair does not change the file's bytes.
  Result<void> rewrite_index(const WriterContent& writer, const std::vector<std::uint8_t>& bytes) {
    const std::string shown = directory_.shown(Dropping::index, writer.id),
                      name = dropping_name(Dropping::index, writer.id);
    const auto subdirectory = directory_.open_subdirectory(Dropping::index, writer.id, true);
    if (!subdirectory) return pass_on(subdirectory.error());
    // Step 4a, the draft, and step 4c, the rename, are replace_file_in()'s.
    return replace_file_in(*subdirectory, name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           {.draft = fmt::format("{}{}", quarantine_prefix, name),
                            .mode = 0600,
                            .shown = shown,
                            .before_sync = [&](int draft) -> Result<void> {
                              if (auto shared = directory_.share_piece(draft, shown); !shared) return shared;
                              struct stat old {};
                              if (::fstatat(subdirectory->get(), name.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0) {
                                const timespec times[2] = {old.st_atim, old.st_mtim};
                                (void)::futimens(draft, times);
                              }
                              return writer.damage.empty() && !writer.is_restored
                                         ? Result<void>()
                                         : keep_damaged_index(*subdirectory, name);
                            }});
  }

  /// Step 4b: the damaged index, if there is one, keeps a name, in the quarantine.
  Result<void> keep_damaged_index(const Fd& subdirectory, const std::string& name) {
    if (::faccessat(subdirectory.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return {};
    const auto place = quarantine();
    if (!place) return pass_on(place.error());
    if (::linkat(subdirectory.get(), name.c_str(), (*place)->get(), free_name(name).c_str(), 0) != 0)
      return system_failure("keep a copy of", directory_.path() + "/" + name);
    return {};
  }

  static std::vector<std::uint8_t> index_bytes(const WriterContent& writer, const std::vector<IndexLoss>& losses) {
    std::vector<std::uint8_t> bytes = index_frame(writer.head);
    const auto add = [&](std::vector<std::uint8_t> frame) { append_frame(std::move(frame), writer.head, bytes); };
    for (const IndexMark& mark : writer.marks) add(index_frame(mark));
    for (const IndexedWrites& writes : writer.writes) add(index_frame(writes));
    for (const auto* each : {&writer.losses, &losses})
      for (const IndexLoss& loss : *each) add(index_frame(loss));
    return bytes;
  }

  Result<void> retire_tail(std::int64_t id, bool has_lost) {
    if (has_lost) return quarantine(Dropping::tail, id, "some of its records are lost");
    if (directory_.unlink_dropping(Dropping::tail, id) != 0 && errno != ENOENT)
      return system_failure("remove", directory_.shown(Dropping::tail, id));
    return {};
  }

  // Step 6

  /// A writer without a sound index, if it has anything to lose: one that is about to begin has no data yet.
  Result<void> quarantine_lost_writer(std::int64_t id) {
    const bool is_problem = std::ranges::any_of(content_.problems, [&](const ContainerProblem& problem) {
      return problem.id == id && (problem.kind == ContainerProblem::Kind::foreign ||
                                  (problem.kind == ContainerProblem::Kind::lost && problem.bytes > 0));
    });
    if (!is_problem && !has_lost_writes(id)) return {};
    constexpr std::string_view why = "it has no valid index";
    for (const Dropping kind : {Dropping::data, Dropping::tail, Dropping::index})
      if (auto done = quarantine(kind, id, why); !done) return done;
    const SyncedWriter* const synced = closed_.find_synced(id);
    const bool has_data = std::ranges::binary_search(listing_.data, id);
    const std::int64_t lost_bytes = synced == nullptr || has_data ? 0 : synced->data_bytes;
    if (lost_bytes > 0) did(fmt::format("gave up writer {}: {} bytes that it had synced are missing", id, lost_bytes));
    given_up_.push_back({.id = id, .data_bytes = lost_bytes});
    if (!options_.dry_run) record_given_up_writer(directory_, id, lost_bytes, closed_.find(id));
    return {};
  }

  // Step 7

  Result<void> quarantine_tails_without_index() {
    for (const std::int64_t id : listing_.tail)
      if (!std::ranges::binary_search(ids_, id) && !is_at_work(id) &&
          !directory_.open_dropping(Dropping::index, id, O_PATH))
        if (auto done = quarantine(Dropping::tail, id, "its writer has no index"); !done) return done;
    return {};
  }

  // Step 8

  Result<void> quarantine_foreign_files() {
    for (const std::string& name : listing_.foreign_names)
      if (auto done = quarantine_foreign(name); !done) return done;
    return {};
  }

  Result<void> quarantine_foreign(const std::string& name) {
    did(fmt::format("quarantined '{}/{}': it is not part of the container", printable(directory_.path()),
                    printable(name)));
    if (options_.dry_run) return {};
    const auto place = quarantine();
    if (!place) return pass_on(place.error());
    std::string flat = name;
    std::ranges::replace(flat, '/', '.');
    if (::renameat(directory_.fd().get(), name.c_str(), (*place)->get(), free_name(std::move(flat)).c_str()) != 0 &&
        errno != ENOENT)
      return system_failure("quarantine", directory_.path() + "/" + name);
    return {};
  }

  // Step 9

  Result<void> renew_records() {
    if (closed_.damaged().empty()) return {};
    for (const std::string& name : closed_.damaged()) {
      did(fmt::format("renewed the record of closed writers, of which '{}/{}' was damaged",
                      printable(directory_.path()), name));
      if (options_.dry_run) continue;
      const auto place = quarantine();
      if (!place) return pass_on(place.error());
      if (::renameat(directory_.fd().get(), name.c_str(), (*place)->get(), free_name(name).c_str()) != 0)
        return system_failure("quarantine", directory_.path() + "/" + name);
    }
    for (const std::int64_t id : ids_)
      if (!options_.dry_run && !directory_.open_dropping(Dropping::tail, id, O_PATH)) record_again(id);
    if (options_.dry_run) return {};
    std::ranges::move(closed_.given_up(), std::back_inserter(given_up_));
    for (const ClosedWriter& each : given_up_) record_given_up_writer(directory_, each.id, each.data_bytes, &each);
    for (const SyncedWriter& each : closed_.synced())
      if (is_at_work(each.id)) SyncRecord().append(directory_, SyncRecord::open_file(directory_), each);
    return {};
  }

  /// Records a closed writer whose index is sound.
  void record_again(std::int64_t id) {
    constexpr std::uint64_t max_bytes = 1u << 30;
    const auto subdirectory = directory_.open_subdirectory(Dropping::index, id);
    const Fd data = directory_.open_dropping(Dropping::data, id, O_PATH);
    struct stat status {};
    if (!subdirectory || (data && ::fstat(data.get(), &status) != 0)) return;
    const std::string shown = directory_.shown(Dropping::index, id);
    const auto text = read_file_in(*subdirectory, dropping_name(Dropping::index, id), shown, max_bytes);
    if (!text) return;
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(text->data()), text->size());
    const auto index = read_index(bytes);
    if (index && index->damage.empty() && index->head.container == directory_.manifest().id && index->head.id == id)
      record(id, status.st_size, bytes);
  }

  /// Records a closed writer. The checksums of its data are those that are known: repair reads no data.
  void record(std::int64_t id, std::int64_t data_bytes, std::span<const std::uint8_t> index,
              const std::optional<SyncedBytes>& synced = {}) {
    const ClosedWriter* const former = closed_.find(id);
    ClosedWriter closed{.id = id,
                        .data_bytes = data_bytes,
                        .index_bytes = std::ssize(index),
                        .index_checksum = crc32c(index),
                        .index = index};
    std::array<std::uint8_t, 4> packed{};
    if (former != nullptr && former->data.bytes <= data_bytes) {
      closed.data = former->data;
    } else if (synced && synced->data > 0 && synced->data <= data_bytes) {
      packed = packed_checksum(synced->data_checksum);
      closed.data = {synced->data, synced->data, packed};
    }
    (void)record_closed_writer(directory_, closed, former);
  }

  // For all steps

  void did(std::string what) { steps_.push_back({std::move(what)}); }

  /// The directory for what is moved away, made when it is needed.
  Result<const Fd*> quarantine() {
    if (!quarantine_) {
      quarantine_name_ = fmt::format("{}{}", quarantine_prefix, unix_ns() / 1000);
      if (::mkdirat(directory_.fd().get(), quarantine_name_.c_str(), 0700) != 0)
        return write_failure("make", directory_.path() + "/" + quarantine_name_, errno);
      quarantine_ = open_file_at(directory_.fd().get(), quarantine_name_.c_str(), directory_flags);
      if (!quarantine_) return system_failure("open", directory_.path() + "/" + quarantine_name_);
    }
    return &quarantine_;
  }

  /// A name that this repair has not used in its quarantine yet: 'a/b' and 'a.b' both become 'a.b'.
  std::string free_name(std::string name) {
    while (!names_in_quarantine_.insert(name).second) name += '+';
    return name;
  }

  /// Moves a dropping that is there into the quarantine.
  Result<void> quarantine(Dropping kind, std::int64_t id, std::string_view why) {
    const std::string shown = directory_.shown(kind, id), name = dropping_name(kind, id);
    const auto subdirectory = directory_.open_subdirectory(kind, id);
    struct stat status {};
    if (!subdirectory || ::fstatat(subdirectory->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
    did(fmt::format("quarantined '{}': {}", shown, why));
    if (options_.dry_run) return {};
    const auto place = quarantine();
    if (!place) return pass_on(place.error());
    if (::renameat(subdirectory->get(), name.c_str(), (*place)->get(), free_name(name).c_str()) == 0) return {};
    // A target is another file system: there it stays, under a name that no reader takes for a dropping.
    const std::string hidden = fmt::format("{}{}", quarantine_prefix, name);
    if (errno != EXDEV || ::renameat(subdirectory->get(), name.c_str(), subdirectory->get(), hidden.c_str()) != 0)
      return system_failure("quarantine", shown);
    return {};
  }

  const ContainerDirectory& directory_;
  const RepairOptions& options_;
  ContainerDirectory::Listing listing_;
  std::map<std::int64_t, Fd> dead_;  ///< tails of dead writers, locked
  std::vector<std::int64_t> ids_;    ///< of writers with an index or data
  ContainerContent content_;
  ClosedWriters closed_;
  std::vector<RepairStep> steps_;
  std::vector<ClosedWriter> given_up_;
  Fd quarantine_;
  std::string quarantine_name_;
  std::set<std::string> names_in_quarantine_;
};

/// Finds ids without droppings. Ids are given in turn, so each one below the greatest belonged to a writer; a writer
/// that truncates the file to 0 deletes the droppings of writers with smaller ids.
std::vector<ContainerProblem> absent_in(const ContainerDirectory::Listing& listing, const ContainerContent& content) {
  std::set<std::int64_t> ids;
  for (const auto* each : {&listing.index, &listing.data, &listing.tail}) ids.insert(each->begin(), each->end());
  for (const ContainerProblem& problem : content.problems)
    if (problem.id >= 0) ids.insert(problem.id);
  for (const ContainerDirectory::Quarantined& quarantine : listing.quarantined) ids.insert(quarantine.id);
  for (const WriterContent& writer : content.writers) ids.insert(writer.id);
  std::vector<ContainerProblem> absent;
  std::int64_t next = 0;
  for (const WriterContent& writer : content.writers)
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::truncate && mark.offset == 0) next = writer.id;
  for (const std::int64_t id : ids) {
    if (id > next)
      absent.push_back({ContainerProblem::Kind::absent, next,
                        fmt::format("nothing is left of {}: the droppings are gone or were never created",
                                    id - next == 1 ? fmt::format("writer {}", next)
                                                   : fmt::format("writers {} to {}", next, id - 1))});
    next = std::max(next, id + 1);
  }
  return absent;
}

/// Lists the bytes of the file whose data are missing, or are in a changed block.
void list_lost_ranges(const ContainerView& view, ContainerCheck& check) {
  const auto lose = [&](std::int64_t offset, std::int64_t length) {
    check.lost_bytes += length;
    if (!check.lost.empty() && check.lost.back().offset + check.lost.back().length == offset)
      check.lost.back().length += length;
    else if (check.lost.size() < max_ranges)
      check.lost.push_back({offset, length});
  };
  view.find(0, check.size, [&](const Piece& piece) {
    if (piece.is_hole) return;
    const std::int64_t there = view.content().bytes_there(piece.id, piece.physical, piece.length);
    if (check.data) {
      const auto& changed = check.data->changed;
      const auto ends_before = [&](const ChangedData& each) {
        return std::tuple(each.id, each.end) <= std::tuple(piece.id, piece.physical);
      };
      for (auto each = std::ranges::partition_point(changed, ends_before);
           each != changed.end() && each->id == piece.id && each->begin < piece.physical + there; ++each) {
        const std::int64_t begin = std::max(each->begin, piece.physical),
                           end = std::min(each->end, piece.physical + there);
        lose(piece.logical + (begin - piece.physical), end - begin);
      }
    }
    if (there < piece.length) lose(piece.logical + there, piece.length - there);
  });
}

}  // namespace

Result<ContainerCheck> check_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                       const CheckOptions& options) {
  auto view = ContainerView::open(directory, ContainerView::Source::droppings);
  if (!view) return pass_on(std::move(view.error()));
  const ContainerContent& content = (*view)->content();
  ContainerCheck check;
  check.size = (*view)->size();
  check.problems = (*view)->problems();
  if (options.data) {
    auto data = check_data(*directory, content, options.on_progress);
    if (!data) return pass_on(std::move(data.error()));
    for (const ChangedData& changed : data->changed)
      check.problems.push_back(
          {ContainerProblem::Kind::lost, changed.id, message_of(changed, *directory), changed.end - changed.begin});
    check.data = *std::move(data);
  }
  for (std::size_t n = 0; n < directory->manifest().targets.size(); ++n)
    if (const auto owner = other_owner(*directory, n))
      check.problems.push_back(
          {ContainerProblem::Kind::foreign, -1,
           fmt::format("this is a copy: the data on '{}' are those of the container that was made as '{}'",
                       printable(directory->manifest().targets[n]), printable(owner->path))});
  std::ranges::move(absent_in(directory->list(), content), std::back_inserter(check.problems));
  const bool is_short = std::ranges::any_of(
      content.writers, [](const WriterContent& writer) { return writer.data_bytes < writer.physical_end(); });
  if (is_short || (check.data && !check.data->changed.empty())) list_lost_ranges(**view, check);
  return check;
}

Result<std::vector<RepairStep>> repair_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                                 const RepairOptions& options) {
  return Repair(*directory, options).run();
}

}  // namespace iosig
