// Reads the pieces that a request consists of with as few system calls as their droppings allow: what lies side by side
// in one is read at once, wherever it belongs in the request.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "iosig/analyze/lookup.h"

namespace iosig {

/// What could not be read, and why: an errno; ENODATA where the dropping ends before; EINVAL where none has such a
/// byte. 0: nothing.
struct PieceFailure {
  int error = 0;
  Piece piece;
};

/// As read_piece(), from the beginning: where the first try gave less.
[[nodiscard]] PieceFailure read_piece_again(int fd, const Piece& piece, std::byte* out);

/// Reads a piece, not a hole, from its open data dropping; a negative `fd`: -errno of opening it.
[[nodiscard]] inline PieceFailure read_piece(int fd, const Piece& piece, std::byte* out) {
  if (fd >= 0 && ::pread(fd, out, static_cast<std::size_t>(piece.length), piece.physical) == piece.length) return {};
  return read_piece_again(fd, piece, out);
}

/// Makes `count` bytes zeros; false: they are not the caller's to write.
using FillHole = bool (*)(std::byte* out, std::size_t count);
/// Trusts that they are.
bool fill_with_zeros(std::byte* out, std::size_t count);

class PieceReader {
 public:
  /// fd_of(id): an open data dropping, or -errno.
  using FdOf = std::function<int(std::int64_t id)>;
  explicit PieceReader(FdOf fd_of, FillHole fill = fill_with_zeros) : fd_of_(std::move(fd_of)), fill_(fill) {}

  /// Reads it, or keeps it to be read with others. `out`, which must have room for it, is written by the kernel alone,
  /// so that an address that is not there is EFAULT. Holes are filled at once.
  void add(const Piece& piece, std::byte* out);
  /// Reads what was kept. The first failure of all; what follows it was not read.
  [[nodiscard]] PieceFailure finish();

 private:
  /// A piece, and where it goes. Not set by itself: clearing room for a few takes as long as finding a piece.
  struct Placed {
    std::int64_t logical, length, id, physical;
    std::byte* out;
    [[nodiscard]] Piece piece() const { return {logical, length, id, physical, false}; }
  };
  static constexpr std::size_t few = 4, many = 4096;
  void read(std::span<Placed> placed);
  void read_run(std::span<const Placed> run);

  FdOf fd_of_;
  FillHole fill_;
  std::array<Placed, few> first_;  // NOLINT(cppcoreguidelines-pro-type-member-init): most requests have no more
  std::size_t firsts_ = 0;
  std::vector<Placed> more_;
  PieceFailure failure_;
};

}  // namespace iosig
