#include "iosig/container/read/piece_reader.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "iosig/base/crc32c.h"

namespace iosig {
namespace {

constexpr std::size_t max_parts = 256;  ///< of one call; limited because the stack may be small

bool is_possible(const Piece& piece) { return piece.physical >= 0 && piece.physical <= INT64_MAX - piece.length; }

}  // namespace

PieceFailure read_piece_again(int fd, const Piece& piece, std::byte* out) {
  if (!is_possible(piece)) return {EINVAL, piece};
  if (fd < 0) return {-fd, piece};
  for (std::int64_t done = 0; done < piece.length;) {
    const ssize_t got = ::pread(fd, out + done, static_cast<std::size_t>(piece.length - done), piece.physical + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {got < 0 ? errno : ENODATA, piece};
    done += got;
  }
  return {};
}

bool fill_with_zeros(std::byte* out, std::size_t count) {
  std::fill_n(out, count, std::byte{0});
  return true;
}

void PieceReader::add(const Piece& piece, std::byte* out) {
  if (failure_.error != 0) return;
  const Placed placed{piece.logical, piece.length, piece.id, piece.physical, out};
  if (piece.is_hole) {
    if (!fill_(out, static_cast<std::size_t>(piece.length))) failure_ = {EFAULT, piece};
  } else if (!is_possible(piece)) {
    failure_ = {EINVAL, piece};
  } else if (firsts_ < few) {
    first_[firsts_++] = placed;
  } else {
    if (more_.empty()) {
      more_.reserve(many);
      more_.assign(first_.begin(), first_.end());
    }
    more_.push_back(placed);
    if (more_.size() < many) return;
    read(more_);
    more_.clear();
    firsts_ = 0;
  }
}

PieceFailure PieceReader::finish() {
  if (failure_.error == 0) read(more_.empty() ? std::span(first_).first(firsts_) : std::span(more_));
  more_.clear();
  firsts_ = 0;
  return failure_;
}

void PieceReader::read(std::span<Placed> placed) {
  std::ranges::sort(placed, {}, [](const Placed& each) { return std::tuple(each.id, each.physical); });
  for (std::size_t begin = 0; begin < placed.size() && failure_.error == 0;) {
    std::size_t end = begin + 1;
    while (end < placed.size() && placed[end].id == placed[begin].id &&
           placed[end].physical == placed[end - 1].physical + placed[end - 1].length)
      ++end;
    for (std::size_t at = begin; at < end && failure_.error == 0; at += max_parts)
      read_run(placed.subspan(at, std::min(max_parts, end - at)));
    if (checksums_of_ && failure_.error == 0) verify(placed.subspan(begin, end - begin));
    begin = end;
  }
}

/// Compares the blocks that the pieces, which are adjacent in one dropping and have been read, hold completely.
void PieceReader::verify(std::span<const Placed> run) {
  const std::int64_t begin = run.front().physical, end = run.back().physical + run.back().length;
  const DataChecksums* const checksums = checksums_of_(run.front().id);
  if (checksums == nullptr) return;
  auto part = run.begin();
  for (std::int64_t block = begin == 0 ? 0 : (begin - 1) / checksums->block_bytes + 1;
       block < checksums->count() && checksums->end_of(block) <= end; ++block) {
    std::uint32_t checksum = 0;
    for (std::int64_t at = checksums->begin_of(block); at < checksums->end_of(block);) {
      while (part->physical + part->length <= at) ++part;
      const std::int64_t count = std::min(part->physical + part->length, checksums->end_of(block)) - at;
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(part->out + (at - part->physical));
      checksum = crc32c({bytes, static_cast<std::size_t>(count)}, checksum);
      at += count;
    }
    if (checksum == checksums->of(block) || !is_changed(run.front().id, *checksums, block)) continue;
    const std::int64_t at = checksums->begin_of(block);
    failure_ = {EBADMSG, {run.front().logical, checksums->end_of(block) - at, run.front().id, at, false}};
    return;
  }
}

/// Whether the block really differs from its checksum: other threads of the program may have changed the memory that it
/// was read into.
bool PieceReader::is_changed(std::int64_t id, const DataChecksums& checksums, std::int64_t block) {
  const std::int64_t begin = checksums.begin_of(block), length = checksums.end_of(block) - begin;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(length));
  const PieceFailure failure =
      read_piece(fd_of_(id), {0, length, id, begin, false}, reinterpret_cast<std::byte*>(bytes.data()));
  return failure.error == 0 && crc32c(bytes) != checksums.of(block);
}

/// Reads pieces that are adjacent in one dropping.
void PieceReader::read_run(std::span<const Placed> run) {
  const int fd = fd_of_(run.front().id);
  if (fd < 0 || run.size() == 1) {
    failure_ = read_piece(fd, run.front().piece(), run.front().out);
    return;
  }
  std::array<iovec, max_parts> parts;  // NOLINT(cppcoreguidelines-pro-type-member-init): only used elements are set
  std::size_t at = 0;                  // the first piece that is not completely read
  std::int64_t done = 0;               // bytes of that piece that are read
  while (at < run.size()) {
    int count = 0;
    for (std::size_t n = at; n < run.size(); ++n) {
      const std::int64_t skipped = n == at ? done : 0;
      parts[static_cast<std::size_t>(count++)] = {run[n].out + skipped,
                                                  static_cast<std::size_t>(run[n].length - skipped)};
    }
    ssize_t got = ::preadv(fd, parts.data(), count, run[at].physical + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      failure_ = {got < 0 ? errno : ENODATA, run[at].piece()};
      return;
    }
    for (got += done; at < run.size() && got >= run[at].length; ++at) got -= run[at].length;
    done = got;
  }
}

}  // namespace iosig
