#include "iosig/container/read/container_view.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "iosig/base/text.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/read/merged_index.h"

namespace iosig {
namespace {

constexpr std::size_t max_open_data = 512;
constexpr std::size_t min_writers_for_snapshot = 4;  ///< whose indices are worth keeping as one

/// Without what is in the merged index.
ContainerContent without_writes(ContainerContent content) {
  for (WriterContent& writer : content.writers)
    for (IndexedWrites& writes : writer.writes) {
      writes.pattern = {};
      writes.entries = {};
    }
  return content;
}

}  // namespace

Result<std::unique_ptr<ContainerView>> ContainerView::open(std::shared_ptr<const ContainerDirectory> directory,
                                                           Source source) {
  std::unique_ptr<ContainerView> view(new ContainerView(std::move(directory), source));
  if (auto read = view->refresh(); !read) return pass_on(std::move(read.error()));
  return view;
}

Result<std::unique_ptr<ContainerView>> ContainerView::open(std::shared_ptr<const ContainerDirectory> directory,
                                                           std::span<const std::uint8_t> index) {
  auto merged = read_merged_index(index, "the index of '" + printable(directory->path()) + "'");
  if (!merged) return pass_on(std::move(merged.error()));
  if (merged->container != directory->manifest().id)
    return fail(ErrorKind::bad_input, "'{}': the index is another container's", printable(directory->path()));
  std::unique_ptr<ContainerView> view(new ContainerView(std::move(directory), Source::kept));
  if (auto taken = view->take(*std::move(merged), {}); !taken) return pass_on(std::move(taken.error()));
  return view;
}

/// Shows this index from now on.
Result<void> ContainerView::take(MergedIndex merged, ContainerContent content) {
  auto pattern = std::make_unique<Pattern>(std::move(merged.pattern));
  auto lookup = PatternLookup::of(*pattern);
  if (!lookup)
    return fail(lookup.error().kind, "'{}': the index: {}", printable(directory_->path()), lookup.error().message);
  lookup_ = std::make_unique<PatternLookup>(*std::move(lookup));
  pattern_ = std::move(pattern);
  content_ = std::move(content);
  status_ = merged.status;
  return {};
}

MergedIndex ContainerView::merged() const { return {directory_->manifest().id, 0, status_, *pattern_}; }

Result<std::vector<std::uint8_t>> ContainerView::index() const {
  if (!lookup_) return fail(ErrorKind::infeasible, "'{}' has a traditional index", printable(directory_->path()));
  if (!content_.lost_writes.empty())
    return fail(ErrorKind::infeasible, "'{}' is damaged: {}", printable(directory_->path()),
                content_.lost_writes.front().message);
  return index_frame(merged());
}

Result<void> ContainerView::refresh() {
  const bool is_traditional = directory_->manifest().index == IndexKind::traditional;
  const DirectoryState before =
      is_traditional || source_ == Source::droppings ? DirectoryState{} : state_of(*directory_);
  if (!is_traditional && source_ == Source::kept)
    if (auto kept = read_index_snapshot(*directory_); kept && take(*std::move(kept), {})) return {};
  ContainerContent content = read_content(*directory_);
  const auto failed = [&](const Error& error) {
    return fail(error.kind, "'{}': the index: {}", printable(directory_->path()), error.message);
  };
  content.status.size = content.size();
  if (is_traditional) {
    auto extents = extents_of(content);
    if (!extents) return failed(extents.error());
    extents_ = *std::move(extents);
    status_ = content.status;
    content_ = without_writes(std::move(content));
    return {};
  }
  auto pattern = merged_index(content);
  if (!pattern) return failed(pattern.error());
  const bool is_settled = content.problems.empty() && std::ranges::none_of(content.writers, &WriterContent::has_tail);
  const bool is_worth_it = content.writers.size() >= min_writers_for_snapshot;
  MergedIndex merged{directory_->manifest().id, 0, content.status, *std::move(pattern)};
  if (auto taken = take(std::move(merged), without_writes(std::move(content))); !taken) return taken;
  if (source_ == Source::kept && is_settled && is_worth_it) keep_index(*directory_, before, this->merged());
  return {};
}

Piece ContainerView::piece_at(std::int64_t offset) const {
  Piece piece = lookup_ ? lookup_->piece_at(offset) : extents_.piece_at(offset);
  if (piece.id == hole_id) piece = {piece.logical, piece.length, 0, 0, true};
  return piece;
}

Result<int> ContainerView::data_fd(std::int64_t id) {
  if (const auto found = data_.find(id); found != data_.end()) return found->second.get();
  Fd fd = directory_->open_dropping(Dropping::data, id, O_RDONLY);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    const int failure = errno;
    const std::string shown = directory_->shown(Dropping::data, id);
    if (failure == ENOENT)
      return fail(ErrorKind::bad_input, "'{}' is missing: what it held is lost; see iosig container check", shown);
    if (auto subdirectory = directory_->open_subdirectory(Dropping::data, id); failure == ENXIO && !subdirectory)
      return pass_on(std::move(subdirectory.error()));  // its target is not there
    return system_failure("open", shown, failure);
  }
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::bad_input, "'{}' is no ordinary file", directory_->shown(Dropping::data, id));
  if (data_.size() >= max_open_data) data_.clear();
  return data_.emplace(id, std::move(fd)).first->second.get();
}

Result<void> ContainerView::failed_at(const PieceFailure& failure) const {
  if (failure.error == 0) return {};
  const std::string shown = directory_->shown(Dropping::data, failure.piece.id);
  switch (failure.error) {
    case EINVAL:
      return fail(ErrorKind::bad_input, "'{}': the index speaks of byte {}; see iosig container check", shown,
                  failure.piece.physical);
    case ENODATA:
      return fail(ErrorKind::bad_input, "'{}' ends before byte {}: it was cut; see iosig container check", shown,
                  failure.piece.physical + failure.piece.length);
    default: return system_failure("read", shown, failure.error);
  }
}

Result<std::int64_t> ContainerView::read(std::int64_t offset, std::span<std::byte> bytes) {
  if (offset < 0) return fail(ErrorKind::usage, "'{}': no file has a byte {}", printable(directory_->path()), offset);
  std::int64_t done = 0;
  const LostWrites* lost = nullptr;
  std::optional<Error> unopened;
  PieceReader reader([&](std::int64_t id) {
    auto fd = data_fd(id);
    if (fd) return *fd;
    unopened = std::move(fd.error());
    return -EIO;
  });
  find(offset, static_cast<std::int64_t>(bytes.size()), [&](const Piece& piece) {
    if (lost == nullptr) lost = lost_over(piece);
    if (lost != nullptr) return;
    reader.add(piece, bytes.data() + done);
    done += piece.length;
  });
  if (lost == nullptr && done == 0 && !bytes.empty()) lost = lost_at_end();
  const auto read = failed_at(reader.finish());
  if (lost != nullptr)
    return fail(ErrorKind::bad_input, "'{}': what is at byte {} may not be what was written last: {}",
                printable(directory_->path()), offset + done, lost->message);
  if (unopened) return pass_on(std::move(*unopened));
  if (!read) return pass_on(read.error());
  return done;
}

std::size_t ContainerView::memory_bytes() const {
  const Pattern& it = *pattern_;
  return extents_.memory_bytes() + (lookup_ ? lookup_->memory_bytes() : 0) + it.terms.size() * sizeof(Term) +
         it.nodes.size() * sizeof(Node) + it.numbers.size() * sizeof(std::int64_t) + it.literals.size() +
         (it.exception_positions.size() + it.exception_values.size()) * sizeof(std::int64_t);
}

}  // namespace iosig
