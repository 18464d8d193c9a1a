#include "iosig/container/read/container_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "iosig/base/text.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/container/read/regular_writers.h"

namespace iosig {
namespace {

/// Returns the content without the writes, which are in the merged index.
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
  auto merged = parse_index_snapshot(index, "the index of '" + printable(directory->path()) + "'");
  if (!merged) return pass_on(std::move(merged.error()));
  if (merged->container != directory->manifest().id)
    return fail(ErrorKind::bad_input, "'{}': the index is another container's", printable(directory->path()));
  std::unique_ptr<ContainerView> view(new ContainerView(std::move(directory), Source::snapshot));
  if (auto taken = view->show(*std::move(merged), {}); !taken) return pass_on(std::move(taken.error()));
  return view;
}

Result<void> ContainerView::show(IndexSnapshot merged, ContainerContent content) {
  auto shown = std::make_unique<Shown>();
  shown->table = std::move(merged.table);
  if (!shown->table) {
    shown->pattern = std::move(merged.pattern);
    auto lookup = PatternLookup::of(shown->pattern);
    if (!lookup)
      return fail(lookup.error().kind, "'{}': the index: {}", printable(directory_->path()), lookup.error().message);
    shown->lookup = *std::move(lookup);
  }
  shown->last_sequence = content.writers.empty() ? INT64_MAX : content.last_sequence();
  shown->content = std::move(content);
  shown->status = merged.status;
  shown_ = std::move(shown);
  return {};
}

IndexSnapshot ContainerView::merged() const {
  return {directory_->manifest().id, 0, shown_->status, shown_->pattern, shown_->table};
}

Result<std::vector<std::uint8_t>> ContainerView::index() const {
  if (!shown_->lookup && !shown_->table)
    return fail(ErrorKind::infeasible, "'{}' has a traditional index", printable(directory_->path()));
  if (!shown_->content.lost_writes.empty())
    return fail(ErrorKind::infeasible, "'{}' is damaged: {}", printable(directory_->path()),
                shown_->content.lost_writes.front().message);
  return index_frame(merged());
}

Result<void> ContainerView::refresh() {
  verifier_.forget();
  droppings_.close_all();  // a dropping may have been deleted or replaced by another file
  const bool is_traditional = directory_->manifest().index == IndexKind::traditional;
  const DirectoryState before =
      is_traditional || source_ == Source::droppings ? DirectoryState{} : state_of(*directory_);
  if (!is_traditional && source_ == Source::snapshot)
    if (auto kept = read_index_snapshot(*directory_); kept && show(*std::move(kept), {})) return {};
  std::optional<ContainerDirectory::Listing> listing;
  if (!is_traditional && source_ == Source::snapshot) {
    listing = directory_->list();
    if (auto regular = merge_regular_writers(*directory_, *listing)) {
      save_index_snapshot(*directory_, before, *regular);
      if (show(*std::move(regular), {})) return {};
    }
  }
  auto read = read_content(*directory_, source_ == Source::snapshot ? ContentSource::records : ContentSource::droppings,
                           std::move(listing));
  if (!read) return pass_on(std::move(read.error()));
  ContainerContent content = *std::move(read);
  const auto failed = [&](const Error& error) {
    return fail(error.kind, "'{}': the index: {}", printable(directory_->path()), error.message);
  };
  if (is_traditional) {
    auto pieces = piece_map_of(content);
    if (!pieces) return failed(pieces.error());
    auto shown = std::make_unique<Shown>();
    shown->pieces = *std::move(pieces);
    shown->status = content.status;
    shown->status.size = content.size();
    shown->last_sequence = content.last_sequence();
    shown->content = without_writes(std::move(content));
    shown_ = std::move(shown);
    return {};
  }
  // `iosig container index` shows the pattern.
  auto merged = merged_index(*directory_, content,
                             source_ == Source::snapshot ? MergedForm::pattern_or_table : MergedForm::pattern);
  if (!merged) return failed(merged.error());
  if (source_ == Source::snapshot) save_index_snapshot(*directory_, before, content, *merged);
  return show(*std::move(merged), without_writes(std::move(content)));
}

bool ContainerView::add_write(std::int64_t logical, std::int64_t length, std::int64_t id, std::int64_t physical,
                              std::int64_t sequence) {
  constexpr std::size_t max_added = 1 << 16;
  constexpr int max_below = 64;  ///< pieces of the merged index below one write
  if (shown_->added.count() >= max_added) return false;
  if (sequence <= shown_->last_sequence) {
    const std::int64_t end = std::min(logical + length, size());
    int below = 0;
    for (std::int64_t at = logical; at < end && below < max_below; ++below) {
      const Piece piece = merged_piece_at(at);
      if (!is_newer(sequence, id, piece)) return false;
      at = piece.length > end - at ? end : at + piece.length;
    }
    if (below == max_below) return false;
  }
  shown_->added.add(logical, length, id, physical, sequence);
  shown_->status.size = std::max(shown_->status.size, logical + length);
  return true;
}

/// Whether a write of writer `id` is certain to lie over a piece of the merged index: a later write of the same writer,
/// or one with a greater number than all writes of the piece's frame. A hole may be that of a mark.
bool ContainerView::is_newer(std::int64_t sequence, std::int64_t id, const Piece& than) const {
  if (!than.is_hole && than.id == id) return true;
  return sequence > shown_->content.last_sequence_at(than.is_hole ? -1 : than.id, than.physical);
}

Piece ContainerView::piece_at(std::int64_t offset) const {
  Piece piece = merged_piece_at(offset);
  if (!shown_->added.is_empty()) shown_->added.lay_over(piece);
  return piece;
}

Piece ContainerView::merged_piece_at(std::int64_t offset) const {
  if (shown_->table) return shown_->table->piece_at(offset);
  Piece piece = shown_->lookup ? shown_->lookup->piece_at(offset) : shown_->pieces.piece_at(offset);
  if (piece.id == hole_id) piece = {piece.logical, piece.length, 0, 0, true};
  return piece;
}

tl::unexpected<Error> ContainerView::read_error(const PieceFailure& failure) const {
  const std::string shown = directory_->shown(Dropping::data, failure.piece.id);
  switch (failure.error) {
    case EINVAL:
      return fail(ErrorKind::bad_input, "'{}': the index points to offset {}; see iosig container check", shown,
                  failure.piece.physical);
    case ENODATA:
      return fail(ErrorKind::bad_input, "'{}' ends before offset {}: it was truncated; see iosig container check",
                  shown, failure.piece.physical + failure.piece.length);
    case EBADMSG:
      return fail(ErrorKind::bad_input, "{}; see iosig container check --data",
                  message_of({failure.piece.id, failure.piece.physical, failure.piece.physical + failure.piece.length},
                             *directory_));
    default: return system_failure("read", shown, failure.error);
  }
}

Result<std::int64_t> ContainerView::read_pieces(std::int64_t offset, std::span<std::byte> bytes, FillHole fill) const {
  if (offset < 0) return fail(ErrorKind::usage, "'{}': offset {} is negative", printable(directory_->path()), offset);
  std::int64_t done = 0;
  const LostWrites* lost = nullptr;
  Fd temporary;
  std::optional<Error> unopened;
  PieceReader::ChecksumsOf checksums_of;
  if (verifies_ && bytes.size() >= static_cast<std::size_t>(checksum_block_bytes))
    checksums_of = [this](std::int64_t id) { return verifier_.of(id); };
  PieceReader reader(
      [&](std::int64_t id) {
        auto fd = droppings_.open(id, temporary);
        if (fd) return *fd;
        unopened = std::move(fd.error());
        return -EIO;
      },
      fill, std::move(checksums_of));
  find(offset, static_cast<std::int64_t>(bytes.size()), [&](const Piece& piece) {
    if (lost == nullptr) lost = lost_over(piece);
    if (lost != nullptr) return;
    reader.add(piece, bytes.data() + done);
    done += piece.length;
  });
  if (lost == nullptr && done == 0 && !bytes.empty()) lost = lost_at_end();
  if (lost != nullptr)
    return fail(ErrorKind::bad_input,
                "'{}': the bytes at offset {} may not be those that were written last: {}; see iosig container check",
                printable(directory_->path()), offset + done, lost->message);
  const PieceFailure failure = reader.finish();
  if (unopened) return pass_on(std::move(*unopened));
  if (failure.error != 0) return read_error(failure);
  return done;
}

std::int64_t ContainerView::length_before_loss(std::int64_t offset, std::int64_t length) const {
  const std::int64_t begin = offset, end = length < size() - offset ? offset + length : size();
  std::int64_t id = -1, data_bytes = 0;  // of the dropping that was inspected last
  Fd temporary;
  while (offset < end) {
    const Piece piece = piece_at(offset);
    if (lost_over(piece) != nullptr) break;
    const std::int64_t there = std::min(piece.length, end - offset);
    if (!piece.is_hole) {
      if (piece.id != id) {
        id = piece.id;
        const auto fd = droppings_.open(id, temporary);
        struct stat status {};
        data_bytes = fd && ::fstat(*fd, &status) == 0 ? status.st_size : 0;
      }
      if (piece.physical < 0 || data_bytes - piece.physical < there) {
        offset += piece.physical < 0 ? 0 : std::max<std::int64_t>(0, data_bytes - piece.physical);
        break;
      }
    }
    offset += there;
  }
  return std::max<std::int64_t>(0, offset - begin);
}

std::size_t ContainerView::memory_bytes() const {
  const Pattern& it = shown_->pattern;
  return shown_->pieces.memory_bytes() + shown_->added.memory_bytes() +
         (shown_->lookup ? shown_->lookup->memory_bytes() : 0) + (shown_->table ? shown_->table->memory_bytes() : 0) +
         it.terms.size() * sizeof(Term) + it.nodes.size() * sizeof(Node) + it.numbers.size() * sizeof(std::int64_t) +
         it.literals.size() + (it.exception_positions.size() + it.exception_values.size()) * sizeof(std::int64_t);
}

}  // namespace iosig
