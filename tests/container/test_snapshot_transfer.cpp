// CachedView::export_index_snapshot: what one process read is what another shows, and nothing that was written
// since is missed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "iosig/container/admin/container.h"
#include "iosig/container/shared/shared_container.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

/// As if each were another process: none knows of the others but through the container.
std::shared_ptr<SharedContainer> opened(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto container = SharedContainer::open(directory.get(), [](const std::string& message) { FAIL_CHECK(message); });
  REQUIRE(container);
  return *container;
}

void put(SharedContainer& container, OpenWriter* by, std::int64_t offset, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  REQUIRE(container.writers().write(*by, offset, bytes, false) == static_cast<std::int64_t>(text.size()));
}

std::string shown_by(SharedContainer& container, std::size_t length = 100) {
  std::string text(length, '?');
  const std::int64_t got = container.view().read(0, std::as_writable_bytes(std::span(text)));
  REQUIRE(got >= 0);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

/// A container with "one two", of two writers who have ended.
std::string written(const std::string& directory) {
  std::string path = directory + "/file";
  REQUIRE(create_container(path));
  const auto container = opened(path);
  for (const auto& [offset, text] : {std::pair{0, "one "}, std::pair{4, "two"}}) {
    OpenWriter* const writer = container->writers().add();
    put(*container, writer, offset, text);
    CHECK(container->writers().remove(writer) == 0);
  }
  return path;
}

void remove_indices(const std::string& path) {
  for (const int id : {0, 1})
    REQUIRE(::unlink((path + "/d" + std::to_string(id) + "/index." + std::to_string(id)).c_str()) == 0);
}

}  // namespace

TEST_CASE("index snapshot: another process shows the same without the indices") {
  const Directory directory;
  const std::string path = written(directory.path());
  const auto first = opened(path);
  const auto known = first->view().export_index_snapshot();
  REQUIRE(known);
  const auto second = opened(path), third = opened(path);
  REQUIRE(second->view().import_index_snapshot(*known));
  CHECK_FALSE(second->view().import_index_snapshot(*known));  // it knows already
  struct stat status {};
  CHECK(second->status().get(status, 60) == 0);
  CHECK(status.st_size == 7);
  remove_indices(path);
  CHECK(shown_by(*second) == "one two");
  CHECK(shown_by(*first) == "one two");
}

TEST_CASE("index snapshot: what is written later is noticed, and what was written before it was taken") {
  const Directory directory;
  const std::string path = written(directory.path());
  const auto first = opened(path), writing = opened(path), early = opened(path), late = opened(path);
  OpenWriter* const writer = writing->writers().add();
  const auto known = first->view().export_index_snapshot();
  REQUIRE(known);
  REQUIRE(early->view().import_index_snapshot(*known));
  CHECK(shown_by(*early) == "one two");
  put(*writing, writer, 4, "TWO");
  REQUIRE(late->view().import_index_snapshot(*known));
  for (const auto& reader : {first, early, late}) CHECK(shown_by(*reader) == "one TWO");
  put(*writing, writer, 0, "ONE");
  for (const auto& reader : {first, early, late}) CHECK(shown_by(*reader) == "ONE TWO");
  const auto newer = first->view().export_index_snapshot();  // while the writer has it open
  REQUIRE(newer);
  const auto last = opened(path);
  REQUIRE(last->view().import_index_snapshot(*newer));
  CHECK(shown_by(*last) == "ONE TWO");
  CHECK(writing->writers().remove(writer) == 0);
}

TEST_CASE("index snapshot: from another node it is taken, and what was written since is found when it is looked for") {
  const Directory directory;
  const std::string path = written(directory.path());
  auto known = opened(path)->view().export_index_snapshot();
  REQUIRE(known);
  std::memcpy(known->data() + 8, "order.another", 13);  // the name of the node's table
  const auto reader = opened(path), writing = opened(path);
  REQUIRE(reader->view().import_index_snapshot(*known));
  CHECK(shown_by(*reader) == "one two");
  OpenWriter* const writer = writing->writers().add();
  put(*writing, writer, 0, "ONE");
  CHECK(writing->writers().remove(writer) == 0);
  CHECK(reader->status().refresh_if_older_than(0) == 0);
  CHECK(shown_by(*reader) == "ONE two");
}

TEST_CASE("index snapshot: of another container, cut or changed anywhere, it is of no use") {
  const Directory directory, other;
  const std::string path = written(directory.path());
  const auto known = opened(path)->view().export_index_snapshot();
  REQUIRE(known);
  CHECK_FALSE(opened(written(other.path()))->view().import_index_snapshot(*known));
  for (std::size_t length = 0; length < known->size(); ++length)
    CHECK_FALSE(opened(path)->view().import_index_snapshot(std::span(*known).first(length)));
  constexpr std::size_t head_bytes = 8 + 64 + 8 + 8;  // any node, any number of changes and any state may stand there
  for (std::size_t at = head_bytes; at < known->size(); ++at) {
    auto changed = *known;
    changed[at] ^= std::byte{1};
    CHECK_FALSE(opened(path)->view().import_index_snapshot(changed));
  }
}

TEST_CASE("index snapshot: a traditional index is not handed on") {
  const Directory directory;
  const std::string path = directory.path() + "/file";
  REQUIRE(create_container(path, {.index = IndexKind::traditional, .targets = {}}));
  CHECK(opened(path)->view().export_index_snapshot().error().kind == ErrorKind::infeasible);
}
