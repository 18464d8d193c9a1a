// A container is the file that a plain file would be, whoever writes what and in which order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "bytes.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

using Shared = std::shared_ptr<const ContainerDirectory>;

std::string content_of(const Shared& directory) {
  const auto view = ContainerView::open(directory);
  REQUIRE_MESSAGE(view, view.error().message);
  std::string text(static_cast<std::size_t>((*view)->size()), '?');
  const auto got = (*view)->read(0, std::as_writable_bytes(std::span(text)));
  REQUIRE_MESSAGE(got, got.error().message);
  CHECK(*got == (*view)->size());
  CHECK((*view)->problems().empty());
  return text;
}

void put(ContainerWriter& writer, std::int64_t offset, const std::string& text) {
  const auto done = writer.write(offset, bytes_of(text));
  REQUIRE_MESSAGE(done, done.error().message);
  REQUIRE(*done == static_cast<std::int64_t>(text.size()));
}

/// Holes as dots.
std::string shown(std::string text) {
  std::ranges::replace(text, '\0', '.');
  return text;
}

/// The oracle: one plain file in memory.
struct Plain {
  std::string bytes;
  void write(std::int64_t offset, const std::string& text) {
    const auto at = static_cast<std::size_t>(offset);
    if (text.empty()) return;
    if (bytes.size() < at + text.size()) bytes.resize(at + text.size(), '\0');
    std::memcpy(bytes.data() + at, text.data(), text.size());
  }
  void truncate(std::int64_t size) { bytes.resize(static_cast<std::size_t>(size), '\0'); }
  void punch(std::int64_t offset, std::int64_t length) {
    for (auto at = static_cast<std::size_t>(offset); at < bytes.size() && length > 0; ++at, --length) bytes[at] = '\0';
  }
};

}  // namespace

TEST_CASE("container: two writers' bytes are found where they were put, holes are zeros") {
  const Directory directory;
  const auto container = create_container(directory / "file");
  REQUIRE_MESSAGE(container, container.error().message);
  auto a = ContainerWriter::open(*container), b = ContainerWriter::open(*container);
  REQUIRE_MESSAGE(a, a.error().message);
  REQUIRE(b);
  put(**a, 0, "aaaa");
  put(**b, 6, "bbbb");
  put(**b, 2, "B");
  CHECK(content_of(*container) == std::string("aaBa\0\0bbbb", 10));  // while they write
  put(**a, 2, "AA");
  CHECK((*a)->close());
  CHECK((*b)->close());
  CHECK(content_of(*container) == std::string("aaAA\0\0bbbb", 10));
  CHECK(create_container(directory / "file").error().kind == ErrorKind::usage);
}

TEST_CASE("container: whatever several writers do in turn, it reads as a plain file would") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
    const Directory directory;
    ContainerOptions options;
    options.index = seed % 4 == 0 ? IndexKind::traditional : IndexKind::pattern;
    options.subdirectories = 1 + seed % 3;
    if (seed % 5 == 0) {
      for (const char* name : {"one", "two"}) {
        std::filesystem::create_directory(directory / name);
        options.targets.push_back(directory / name);
      }
    }
    const auto container = create_container(directory / "file", options);
    REQUIRE_MESSAGE(container, container.error().message);
    Plain plain;
    std::map<std::int64_t, std::unique_ptr<ContainerWriter>> writers;
    std::map<std::int64_t, std::int64_t> next;  // where a writer's strided stretch goes on
    char letter = 'a';
    const unsigned operations = 40 + random() % 400;
    for (unsigned n = 0; n < operations; ++n) {
      const std::int64_t who = below(4);
      auto& writer = writers[who];
      if (!writer) {
        auto opened = ContainerWriter::open(*container);
        REQUIRE_MESSAGE(opened, opened.error().message);
        writer = *std::move(opened);
      }
      letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
      const auto what = below(100);
      if (what < 55) {  // strided, as ranks write: with or without overlap
        const std::int64_t length = 1 + who, offset = next[who];
        const std::string text(static_cast<std::size_t>(length), letter);
        put(*writer, offset, text);
        plain.write(offset, text);
        next[who] = offset + 5 + who * (seed % 2);
      } else if (what < 75) {
        const std::string text(static_cast<std::size_t>(below(12)), letter);
        const std::int64_t offset = below(300);
        put(*writer, offset, text);
        plain.write(offset, text);
      } else if (what < 80) {
        next[who] = below(100);
      } else if (what < 83) {
        const std::string text(static_cast<std::size_t>(1 + below(6)), letter);
        std::int64_t written = 0;
        const auto at = writer->append(bytes_of(text), written);
        REQUIRE(at);
        CHECK(*at == static_cast<std::int64_t>(plain.bytes.size()));
        plain.write(*at, text);
      } else if (what < 85) {
        const std::int64_t size = below(400);
        REQUIRE(writer->truncate(size));
        plain.truncate(size);
      } else if (what < 87) {
        const std::int64_t size = below(400);
        REQUIRE(writer->extend(size));
        plain.truncate(std::max(size, static_cast<std::int64_t>(plain.bytes.size())));
      } else if (what < 90) {
        const std::int64_t offset = below(300), length = below(60);
        REQUIRE(writer->punch(offset, length));
        plain.punch(offset, length);
      } else if (what < 93) {
        if (seed % 8 == 0) REQUIRE(writer->sync());  // a disk takes its time
      } else if (what < 96) {
        const auto closed = writer->close();
        REQUIRE_MESSAGE(closed, closed.error().message);
        writer.reset();
      } else if (what < 97) {
        REQUIRE(truncate_container(*container, 0));
        plain.truncate(0);
      } else {
        REQUIRE(shown(content_of(*container)) == shown(plain.bytes));
      }
    }
    REQUIRE(shown(content_of(*container)) == shown(plain.bytes));
    writers.clear();
    REQUIRE(content_of(*container) == plain.bytes);
    CHECK(status_of(**container)->size == static_cast<std::int64_t>(plain.bytes.size()));
    CHECK(rename_container(directory / "file", directory / "other"));
    CHECK(content_of(*ContainerDirectory::open(directory / "other")) == plain.bytes);
    CHECK(remove_container(directory / "other"));
    for (const std::string& target : options.targets) CHECK(std::filesystem::is_empty(target));
  }
}
