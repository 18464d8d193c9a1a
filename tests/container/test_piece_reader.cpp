// Many pieces with few calls: the same bytes as one by one, and the first failure.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>

#include "iosig/base/files.h"
#include "iosig/container/read/piece_reader.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

struct Droppings {
  Directory directory;
  std::map<std::int64_t, std::string> content;
  std::map<std::int64_t, Fd> fds;

  void add(std::int64_t id, std::string bytes) {
    const std::string path = directory / std::to_string(id);
    iosig::test::write(path, bytes);
    fds[id] = Fd(::open(path.c_str(), O_RDONLY));
    content[id] = std::move(bytes);
  }
  [[nodiscard]] PieceReader reader() const {
    return PieceReader([this](std::int64_t id) { return fds.contains(id) ? fds.at(id).get() : -EIO; });
  }
};

std::byte* place(std::string& text, std::size_t at) { return reinterpret_cast<std::byte*>(text.data()) + at; }

}  // namespace

TEST_CASE("pieces: as read one by one, whatever lies side by side") {
  Droppings droppings;
  std::mt19937 random(3);
  for (std::int64_t id = 0; id < 5; ++id) {
    std::string bytes(30'000, '\0');
    for (char& c : bytes) c = static_cast<char>('a' + random() % 26);
    droppings.add(id, std::move(bytes));
  }
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = round < 20 ? random() % 6 : random() % 12'000;  // more than are kept at once
    const bool is_strided = random() % 2 == 0;
    std::vector<Piece> pieces;
    std::map<std::int64_t, std::int64_t> next;
    std::size_t size = 0;
    for (std::size_t n = 0; n < count; ++n) {
      Piece piece{static_cast<std::int64_t>(size), static_cast<std::int64_t>(1 + random() % 4),
                  static_cast<std::int64_t>(random() % 5), 0, random() % 50 == 0};
      if (is_strided) {
        piece.length = 2;
        piece.id = static_cast<std::int64_t>(n % 5);
      }
      std::int64_t& at = next[piece.id];
      if (at + piece.length > 30'000) at = 0;
      piece.physical = is_strided || random() % 2 == 0 ? at : static_cast<std::int64_t>(random() % 29'000);
      at = piece.physical + piece.length;
      size += static_cast<std::size_t>(piece.length);
      pieces.push_back(piece);
    }
    std::string found(size, '?'), expected(size, '\0');
    PieceReader reader = droppings.reader();
    for (const Piece& piece : pieces) {
      if (!piece.is_hole)
        expected.replace(static_cast<std::size_t>(piece.logical), static_cast<std::size_t>(piece.length),
                         droppings.content[piece.id], static_cast<std::size_t>(piece.physical),
                         static_cast<std::size_t>(piece.length));
      reader.add(piece, place(found, static_cast<std::size_t>(piece.logical)));
    }
    REQUIRE(reader.finish().error == 0);
    REQUIRE(found == expected);
  }
}

TEST_CASE("pieces: a dropping that was cut, is missing, or has no such byte; an address that is not there") {
  Droppings droppings;
  droppings.add(0, "0123456789");
  std::string out(100, '?');
  const auto failure_of = [&](std::initializer_list<Piece> pieces, std::byte* to) {
    PieceReader reader = droppings.reader();
    for (const Piece& piece : pieces) reader.add(piece, to + piece.logical);
    return reader.finish();
  };
  CHECK(failure_of({{0, 4, 0, 6}}, place(out, 0)).error == 0);
  CHECK(out.starts_with("6789?"));
  CHECK(failure_of({{0, 4, 0, 8}}, place(out, 0)).error == ENODATA);
  const PieceFailure second = failure_of({{0, 4, 0, 4}, {4, 4, 0, 8}}, place(out, 0));  // side by side
  CHECK(second.error == ENODATA);
  CHECK(second.piece.physical == 8);
  CHECK(failure_of({{0, 4, 7, 0}}, place(out, 0)).error == EIO);
  CHECK(failure_of({{0, 4, 0, -1}}, place(out, 0)).error == EINVAL);
  CHECK(failure_of({{0, 4, 0, INT64_MAX - 3}}, place(out, 0)).error == EINVAL);
  void* const nowhere = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(nowhere != MAP_FAILED);
  CHECK(failure_of({{0, 2, 0, 0}, {2, 2, 0, 2}, {4, 2, 0, 6}}, static_cast<std::byte*>(nowhere)).error == EFAULT);
  ::munmap(nowhere, 4096);
}
