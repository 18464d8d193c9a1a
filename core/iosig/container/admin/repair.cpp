#include "iosig/container/admin/repair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/layout/target_owner.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/index_snapshot.h"

namespace iosig {
namespace {

constexpr std::size_t max_ranges = 16;

class Repair {
 public:
  Repair(const ContainerDirectory& directory, bool dry_run) : directory_(directory), dry_run_(dry_run) {}

  Result<std::vector<RepairStep>> run() {
    // Writers may begin and end meanwhile. Those that are not in the listing are not looked at; the tails of dead ones
    // are locked, so that what is read then stays; and who has a tail that is not locked here lives, or did.
    const ContainerDirectory::Listing listing = directory_.list();
    for (const std::int64_t id : listing.tail) {
      Fd tail = directory_.open_dropping(Dropping::tail, id, O_RDWR);
      if (tail && !is_alive(tail)) dead_.emplace(id, std::move(tail));
    }
    const ContainerContent content = read_content(directory_);
    if (!content.lost_writes.empty() && read_index_snapshot(directory_))
      return fail(
          ErrorKind::infeasible,
          "'{}': its index snapshot still describes writes that the writers' indices have lost: copy the file by iosig "
          "container export first; then remove '{}/{}'",
          printable(directory_.path()), printable(directory_.path()), index_snapshot_name);
    std::map<std::int64_t, const WriterContent*> sound;
    for (const WriterContent& writer : content.writers) sound[writer.id] = &writer;
    std::vector<std::int64_t> ids;
    std::ranges::set_union(listing.index, listing.data, std::back_inserter(ids));
    for (const std::int64_t id : ids) {
      if (lives(id)) continue;
      auto done = sound.contains(id) ? mend(*sound[id], content) : discard_if_lost(id, content);
      if (!done) return pass_on(std::move(done.error()));
    }
    for (const std::int64_t id : listing.tail)
      if (!std::ranges::binary_search(ids, id) && !lives(id) && !directory_.open_dropping(Dropping::index, id, O_PATH))
        if (auto done = quarantine(Dropping::tail, id, "there is no index that it continues"); !done)
          return pass_on(std::move(done.error()));
    for (const std::string& name : listing.foreign_names)
      if (auto done = move_stranger(name); !done) return pass_on(std::move(done.error()));
    return std::move(steps_);
  }

 private:
  [[nodiscard]] bool lives(std::int64_t id) const {
    return !dead_.contains(id) && directory_.open_dropping(Dropping::tail, id, O_PATH);
  }
  void did(std::string what) { steps_.push_back({std::move(what)}); }

  /// The directory for what is moved away, made when it is needed.
  Result<const Fd*> quarantine() {
    if (!quarantine_) {
      quarantine_name_ = fmt::format("{}{}", quarantine_prefix, unix_ns() / 1000);
      if (::mkdirat(directory_.fd().get(), quarantine_name_.c_str(), 0700) != 0)
        return write_failure("make", directory_.path() + "/" + quarantine_name_, errno);
      quarantine_ = Fd(
          ::openat(directory_.fd().get(), quarantine_name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      if (!quarantine_) return system_failure("open", directory_.path() + "/" + quarantine_name_);
    }
    return &quarantine_;
  }

  Result<void> quarantine(Dropping kind, std::int64_t id, std::string_view why) {
    const std::string shown = directory_.shown(kind, id), name = dropping_name(kind, id);
    const auto subdirectory = directory_.open_subdirectory(kind, id);
    struct stat status {};
    if (!subdirectory || ::fstatat(subdirectory->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
    did(fmt::format("quarantined '{}': {}", shown, why));
    if (dry_run_) return {};
    const auto place = quarantine();
    if (!place) return pass_on(place.error());
    if (::renameat(subdirectory->get(), name.c_str(), (*place)->get(), name.c_str()) == 0) return {};
    // A target is another file system: there it stays, under a name that no reader takes for a dropping.
    const std::string hidden = fmt::format("{}{}", quarantine_prefix, name);
    if (errno != EXDEV || ::renameat(subdirectory->get(), name.c_str(), subdirectory->get(), hidden.c_str()) != 0)
      return system_failure("quarantine", shown);
    return {};
  }

  Result<void> move_stranger(const std::string& name) {
    did(fmt::format("quarantined '{}/{}': it is no part of the container", printable(directory_.path()),
                    printable(name)));
    if (dry_run_) return {};
    const auto place = quarantine();
    if (!place) return pass_on(place.error());
    std::string flat = name;
    std::ranges::replace(flat, '/', '.');
    if (::renameat(directory_.fd().get(), name.c_str(), (*place)->get(), flat.c_str()) != 0 && errno != ENOENT)
      return system_failure("quarantine", directory_.path() + "/" + name);
    return {};
  }

  /// A writer whose index says nothing, if there is anything to lose: one that is about to begin has no data yet.
  Result<void> discard_if_lost(std::int64_t id, const ContainerContent& content) {
    const bool is_problem = std::ranges::any_of(content.problems, [&](const ContainerProblem& problem) {
      return problem.id == id && (problem.kind == ContainerProblem::Kind::foreign ||
                                  (problem.kind == ContainerProblem::Kind::lost && problem.bytes > 0));
    });
    if (!is_problem && std::ranges::find(content.lost_writes, id, &LostWrites::id) == content.lost_writes.end())
      return {};
    constexpr std::string_view why = "no sound index says where its bytes belong";
    for (const Dropping kind : {Dropping::data, Dropping::tail, Dropping::index})
      if (auto done = quarantine(kind, id, why); !done) return done;
    return {};
  }

  /// The index of a dead writer with all that is known, and nothing else. What it has lost is noted in it.
  Result<void> mend(const WriterContent& writer, const ContainerContent& content) {
    if (writer.has_tail && !dead_.contains(writer.id)) return {};  // it was at work when it was read
    const bool is_lost =
        std::ranges::find(content.lost_writes, writer.id, &LostWrites::id) != content.lost_writes.end();
    if (writer.damage.empty() && !writer.has_tail && !is_lost) return {};
    const std::string shown = directory_.shown(Dropping::index, writer.id);
    std::vector<IndexLoss> losses = writer.unindexed();
    if (is_lost && losses.empty()) losses.push_back({writer.physical_end(), 0});
    if (is_lost)  // of a damaged tail nobody knows how many writes did end
      for (IndexLoss& loss : losses) loss.was_unfinished = false;
    if (writer.tail_writes > 0)
      did(fmt::format("put {} write{} of '{}' into its index", writer.tail_writes, writer.tail_writes == 1 ? "" : "s",
                      directory_.shown(Dropping::tail, writer.id)));
    if (!writer.damage.empty()) did(fmt::format("made '{}' anew without what is unsound", shown));
    for (const IndexLoss& loss : losses)
      if (!loss.was_unfinished)
        did(fmt::format("left bytes {} to {} of '{}' out: nobody knows where they belong", loss.physical,
                        loss.physical + loss.length, directory_.shown(Dropping::data, writer.id)));
    if (dry_run_) return {};
    if (auto written = rewrite(writer, losses); !written) return written;
    if (!writer.has_tail) return {};
    if (is_lost) return quarantine(Dropping::tail, writer.id, "some of it may be of use to somebody");
    if (directory_.unlink_dropping(Dropping::tail, writer.id) != 0 && errno != ENOENT)
      return system_failure("remove", directory_.shown(Dropping::tail, writer.id));
    return {};
  }

  Result<void> rewrite(const WriterContent& writer, const std::vector<IndexLoss>& losses) {
    const std::string shown = directory_.shown(Dropping::index, writer.id),
                      name = dropping_name(Dropping::index, writer.id);
    const std::string draft = fmt::format("{}{}", quarantine_prefix, name);
    const auto subdirectory = directory_.open_subdirectory(Dropping::index, writer.id);
    if (!subdirectory) return pass_on(subdirectory.error());
    ::unlinkat(subdirectory->get(), draft.c_str(), 0);
    const Fd fd(
        ::openat(subdirectory->get(), draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return write_failure("make", shown, errno);
    if (auto shared = directory_.share_piece(fd.get(), shown); !shared) {
      ::unlinkat(subdirectory->get(), draft.c_str(), 0);
      return shared;
    }
    std::vector<std::uint8_t> bytes = index_frame(writer.head);
    const auto add = [&](const std::vector<std::uint8_t>& frame) {
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    };
    for (const IndexMark& mark : writer.marks) add(index_frame(mark));
    for (const IndexedWrites& writes : writer.writes) add(index_frame(writes));
    for (const auto* each : {&writer.losses, &losses})
      for (const IndexLoss& loss : *each) add(index_frame(loss));
    auto written = write_all(fd.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, shown);
    if (written && ::fsync(fd.get()) != 0) written = system_failure("sync", shown);
    if (!written) {
      ::unlinkat(subdirectory->get(), draft.c_str(), 0);
      return written;
    }
    if (!writer.damage.empty()) {
      const auto place = quarantine();
      if (!place) return pass_on(place.error());
      if (::linkat(subdirectory->get(), name.c_str(), (*place)->get(), name.c_str(), 0) != 0)
        return system_failure("keep a copy of", shown);
    }
    if (::renameat(subdirectory->get(), draft.c_str(), subdirectory->get(), name.c_str()) != 0 ||
        ::fsync(subdirectory->get()) != 0)
      return system_failure("replace", shown);
    return {};
  }

  const ContainerDirectory& directory_;
  bool dry_run_;
  std::map<std::int64_t, Fd> dead_;  ///< tails of dead writers, locked
  std::vector<RepairStep> steps_;
  Fd quarantine_;
  std::string quarantine_name_;
};

/// Finds ids without droppings. Ids are given in turn, so each one below the greatest belonged to a writer; a writer
/// that truncates the file to 0 deletes the droppings of writers with smaller ids.
std::vector<ContainerProblem> absent_in(const ContainerDirectory::Listing& listing, const ContainerContent& content) {
  std::set<std::int64_t> ids;
  for (const auto* each : {&listing.index, &listing.data, &listing.tail}) ids.insert(each->begin(), each->end());
  for (const ContainerDirectory::Quarantined& quarantine : listing.quarantined) ids.insert(quarantine.id);
  std::vector<ContainerProblem> absent;
  std::int64_t next = 0;
  for (const WriterContent& writer : content.writers)
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::truncate && mark.offset == 0) next = writer.id;
  for (const std::int64_t id : ids) {
    if (id > next)
      absent.push_back({ContainerProblem::Kind::absent, next,
                        fmt::format("nothing is left of {}: all their droppings are gone, or they could make none",
                                    id - next == 1 ? fmt::format("writer {}", next)
                                                   : fmt::format("writers {} to {}", next, id - 1))});
    next = std::max(next, id + 1);
  }
  return absent;
}

}  // namespace

Result<ContainerCheck> check_container(const std::shared_ptr<const ContainerDirectory>& directory) {
  auto view = ContainerView::open(directory, ContainerView::Source::droppings);
  if (!view) return pass_on(std::move(view.error()));
  ContainerCheck check;
  check.size = (*view)->size();
  check.problems = (*view)->problems();
  const bool is_short = std::ranges::any_of((*view)->content().writers, [](const WriterContent& writer) {
    return writer.data_bytes < writer.physical_end();
  });
  for (std::size_t n = 0; n < directory->manifest().targets.size(); ++n)
    if (const auto owner = other_owner(*directory, n))
      check.problems.push_back(
          {ContainerProblem::Kind::foreign, -1,
           fmt::format("this is a copy: the data on '{}' are those of the container that was made as '{}'",
                       printable(directory->manifest().targets[n]), printable(owner->path))});
  std::ranges::move(absent_in(directory->list(), (*view)->content()), std::back_inserter(check.problems));
  if (!is_short) return check;
  (*view)->find(0, check.size, [&](const Piece& piece) {
    if (piece.is_hole) return;
    const std::int64_t kept = (*view)->content().bytes_there(piece.id, piece.physical, piece.length);
    if (kept == piece.length) return;
    const LostRange range{piece.logical + kept, piece.length - kept};
    check.lost_bytes += range.length;
    if (!check.lost.empty() && check.lost.back().offset + check.lost.back().length == range.offset)
      check.lost.back().length += range.length;
    else if (check.lost.size() < max_ranges)
      check.lost.push_back(range);
  });
  return check;
}

Result<std::vector<RepairStep>> repair_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                                 const RepairOptions& options) {
  std::vector<RepairStep> claimed;
  if (const auto may = may_be_written(*directory); !may) {
    if (!options.claim) return pass_on(may.error());
    if (auto claim = may_be_claimed(*directory); !claim) return pass_on(std::move(claim.error()));
    claimed.push_back({"made the data on its targets its own"});
    if (!options.dry_run)
      if (auto done = claim_targets(*directory); !done) return pass_on(std::move(done.error()));
  }
  auto steps = Repair(*directory, options.dry_run).run();
  if (steps) steps->insert(steps->begin(), claimed.begin(), claimed.end());
  return steps;
}

}  // namespace iosig
