// Reads the pieces of a request with few system calls: pieces that are adjacent in a dropping are read by one preadv,
// wherever they belong in the request.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "iosig/analyze/lookup.h"
#include "iosig/container/layout/data_checksums.h"

namespace iosig {

/// The piece that could not be read, and why: 0 if there is none, else an errno; ENODATA if the dropping ends before
/// it, EINVAL if its offset is impossible, EBADMSG if the block that begins at its physical offset was changed.
struct PieceFailure {
  int error = 0;
  Piece piece;
};

/// Reads the piece from its beginning, after read_piece() got fewer bytes or an error.
[[nodiscard]] PieceFailure read_piece_again(int fd, const Piece& piece, std::byte* out);

/// Reads a piece that is not a hole from its data dropping `fd`, or -errno of the failure to open it.
[[nodiscard]] inline PieceFailure read_piece(int fd, const Piece& piece, std::byte* out) {
  if (fd >= 0 && ::pread(fd, out, static_cast<std::size_t>(piece.length), piece.physical) == piece.length) return {};
  return read_piece_again(fd, piece, out);
}

/// Zeroes `count` bytes. Returns false if they are not writable memory.
using FillHole = bool (*)(std::byte* out, std::size_t count);
/// The FillHole of a caller whose buffer is known to be writable.
bool fill_with_zeros(std::byte* out, std::size_t count);

class PieceReader {
 public:
  /// Returns the descriptor of a writer's data dropping, or -errno.
  using FdOf = std::function<int(std::int64_t id)>;
  /// Returns the checksums of a writer's data, or nullptr.
  using ChecksumsOf = std::function<const DataChecksums*(std::int64_t id)>;
  /// `checksums_of`: blocks that are read whole are compared with these; none: no comparison.
  explicit PieceReader(FdOf fd_of, FillHole fill = fill_with_zeros, ChecksumsOf checksums_of = {})
      : fd_of_(std::move(fd_of)), fill_(fill), checksums_of_(std::move(checksums_of)) {}

  /// Adds a piece, whose bytes go to `out`. Only the kernel writes there, so a bad address fails with EFAULT. Holes are
  /// filled at once; other pieces are read in batches.
  void add(const Piece& piece, std::byte* out);
  /// Reads the remaining pieces. Returns the first failure; later pieces were not read.
  [[nodiscard]] PieceFailure finish();

 private:
  /// A piece and its destination. Has no initialisers: clearing a few of them takes as long as finding a piece.
  struct Placed {
    std::int64_t logical, length, id, physical;
    std::byte* out;
    [[nodiscard]] Piece piece() const { return {logical, length, id, physical, false}; }
  };
  static constexpr std::size_t few = 4, many = 4096;
  void read(std::span<Placed> placed);
  void read_run(std::span<const Placed> run);
  void verify(std::span<const Placed> run);
  bool is_changed(std::int64_t id, const DataChecksums& checksums, std::int64_t block);

  FdOf fd_of_;
  FillHole fill_;
  ChecksumsOf checksums_of_;
  std::array<Placed, few> first_;  // NOLINT(cppcoreguidelines-pro-type-member-init): most requests have no more
  std::size_t firsts_ = 0;
  std::vector<Placed> more_;
  PieceFailure failure_;
};

}  // namespace iosig
