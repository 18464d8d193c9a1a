#include "iosig/store/container_view.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "iosig/analyze/merge.h"
#include "iosig/base/text.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::size_t most_open_data = 512;
constexpr std::int64_t hole_id = -1;
constexpr std::size_t many_locals = 64;  ///< from here on threads are worth their start

/// The bytes that a mark makes a hole, as an access of nobody.
IndexEntry hole_of(const IndexMark& mark) {
  const std::int64_t length = mark.kind == IndexMark::Kind::punch ? mark.length : INT64_MAX - mark.offset;
  return {mark.offset, length, 0, mark.sequence, 0, 0, static_cast<std::int32_t>(hole_id)};
}

Pattern pattern_of(const IndexEntry& entry) {
  PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
  const std::int64_t vector[] = {entry.logical, entry.length, entry.physical, entry.sequence};
  builder.add_literal(vector);
  return builder.finish();
}

/// One access after the other, as PLFS 2.x does: every entry of all in order of sequence on top of those before.
ExtentMap extents_of(const ContainerContent& content) {
  std::vector<IndexEntry> entries;
  for (const WriterContent& writer : content.writers) {
    for (const IndexedWrites& writes : writer.writes) {
      entries.insert(entries.end(), writes.entries.begin(), writes.entries.end());
      std::array<std::int64_t, most_columns> v{};
      for (PatternCursor cursor(writes.pattern); cursor.next(v);)
        entries.push_back({v[logical_offset], v[write_length], v[physical_offset], v[write_sequence], 0, 0,
                           static_cast<std::int32_t>(writer.id)});
    }
    for (const IndexMark& mark : writer.marks)
      if (mark.kind != IndexMark::Kind::extend) entries.push_back(hole_of(mark));
  }
  std::ranges::stable_sort(entries, {}, &IndexEntry::sequence);
  ExtentMap extents;
  for (const IndexEntry& entry : entries)
    if (entry.length > 0) extents.put(entry.logical, entry.length, entry.id, entry.physical);
  return extents;
}

Result<Pattern> merged(const ContainerContent& content) {
  std::vector<LocalPattern> locals;
  std::vector<Pattern> holes;
  for (const WriterContent& writer : content.writers)
    for (const IndexMark& mark : writer.marks)
      if (const IndexEntry hole = hole_of(mark); mark.kind != IndexMark::Kind::extend && hole.length > 0)
        holes.push_back(pattern_of(hole));
  // Marks of several writers are in order of time, as parts of one process must be.
  std::ranges::sort(holes, {}, [](const Pattern& pattern) { return (*expanded(pattern))[write_sequence]; });
  for (const Pattern& hole : holes) locals.push_back({&hole, hole_id});
  for (const WriterContent& writer : content.writers)
    for (const IndexedWrites& writes : writer.writes)
      locals.push_back({&writes.pattern, writer.id, writes.opened, writes.closed});
  auto pattern = merge_patterns(locals, {.threads = locals.size() < many_locals ? 1u : 0u});
  if (!pattern) return pass_on(std::move(pattern.error()));
  return std::move(pattern->pattern);
}

}  // namespace

Result<std::unique_ptr<ContainerView>> ContainerView::open(std::shared_ptr<const ContainerFolder> folder) {
  std::unique_ptr<ContainerView> view(new ContainerView(std::move(folder)));
  if (auto read = view->refresh(); !read) return pass_on(std::move(read.error()));
  return view;
}

Result<void> ContainerView::refresh() {
  ContainerContent content = read_content(*folder_);
  auto pattern = std::make_unique<Pattern>();
  pattern->columns = 4;
  std::unique_ptr<PatternLookup> lookup;
  ExtentMap extents;
  if (folder_->manifest().index == IndexKind::traditional) {
    extents = extents_of(content);
  } else {
    auto all = merged(content);
    if (!all) return fail(all.error().kind, "'{}': the index: {}", printable(folder_->path()), all.error().message);
    *pattern = *std::move(all);
    auto made = PatternLookup::of(*pattern);
    if (!made) return fail(made.error().kind, "'{}': the index: {}", printable(folder_->path()), made.error().message);
    lookup = std::make_unique<PatternLookup>(*std::move(made));
  }
  size_ = content.size();
  for (WriterContent& writer : content.writers)
    for (IndexedWrites& writes : writer.writes) {
      writes.pattern = {};
      writes.entries = {};
    }
  content_ = std::move(content);
  lookup_ = std::move(lookup);
  pattern_ = std::move(pattern);
  extents_ = std::move(extents);
  return {};
}

Piece ContainerView::piece_at(std::int64_t offset) const {
  Piece piece = lookup_ ? lookup_->piece_at(offset) : extents_.piece_at(offset);
  if (piece.id == hole_id) piece = {piece.logical, piece.length, 0, 0, true};
  return piece;
}

Result<int> ContainerView::data_fd(std::int64_t id) {
  if (const auto found = data_.find(id); found != data_.end()) return found->second.get();
  Fd fd = folder_->open_dropping(Dropping::data, id, O_RDONLY);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    const int failure = errno;
    const std::string shown = folder_->shown(Dropping::data, id);
    if (failure == ENOENT)
      return fail(ErrorKind::bad_input, "'{}' is missing: what it held is lost; see iosig container check", shown);
    return system_failure("open", shown, failure);
  }
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::bad_input, "'{}' is no ordinary file", folder_->shown(Dropping::data, id));
  if (data_.size() >= most_open_data) data_.clear();
  return data_.emplace(id, std::move(fd)).first->second.get();
}

Result<void> ContainerView::read_piece(const Piece& piece, std::byte* out) {
  const auto fd = data_fd(piece.id);
  if (!fd) return pass_on(fd.error());
  for (std::int64_t done = 0; done < piece.length;) {
    const ssize_t got = ::pread(*fd, out + done, static_cast<std::size_t>(piece.length - done),
                                static_cast<off_t>(piece.physical + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", folder_->shown(Dropping::data, piece.id));
    if (got == 0)
      return fail(ErrorKind::bad_input, "'{}' ends before byte {}: it was cut; see iosig container check",
                  folder_->shown(Dropping::data, piece.id), piece.physical + done);
    done += got;
  }
  return {};
}

Result<std::int64_t> ContainerView::read(std::int64_t offset, std::span<std::byte> bytes) {
  if (offset < 0) return fail(ErrorKind::usage, "'{}': no file has a byte {}", printable(folder_->path()), offset);
  std::int64_t done = 0;
  Result<void> all{};
  find(offset, static_cast<std::int64_t>(bytes.size()), [&](const Piece& piece) {
    if (!all) return;
    if (piece.is_hole)
      std::memset(bytes.data() + done, 0, static_cast<std::size_t>(piece.length));
    else
      all = read_piece(piece, bytes.data() + done);
    done += piece.length;
  });
  if (!all) return pass_on(std::move(all.error()));
  return done;
}

std::size_t ContainerView::memory_bytes() const {
  const Pattern& it = *pattern_;
  return extents_.memory_bytes() + (lookup_ ? lookup_->memory_bytes() : 0) + it.terms.size() * sizeof(Term) +
         it.nodes.size() * sizeof(Node) + it.numbers.size() * sizeof(std::int64_t) + it.literals.size() +
         (it.exception_positions.size() + it.exception_values.size()) * sizeof(std::int64_t);
}

}  // namespace iosig
