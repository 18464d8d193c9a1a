// What a reader keeps for the next: as good as the droppings, never older than they are, and nothing without them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/index_snapshot.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

using Shared = std::shared_ptr<const ContainerDirectory>;

constexpr std::int64_t writers = 6, each = 10, bytes = 16;

std::string piece(std::int64_t writer, std::int64_t n) {
  std::string text = std::to_string(writer * 1000 + n);
  text.resize(bytes, '-');
  return text;
}

void write_as(const Shared& directory, std::int64_t offset, const std::string& text) {
  auto writer = ContainerWriter::open(directory);
  REQUIRE(writer);
  REQUIRE((*writer)->write(offset, std::as_bytes(std::span(text))));
  REQUIRE((*writer)->close());
}

/// Strided, by several writers that have ended; and what that makes.
Shared write_all_of(const std::string& path, std::string& plain) {
  auto made = create_container(path);
  REQUIRE(made);
  plain.resize(writers * each * bytes);
  for (std::int64_t w = 0; w < writers; ++w) {
    auto writer = ContainerWriter::open(*made);
    REQUIRE(writer);
    for (std::int64_t n = 0; n < each; ++n) {
      const std::string text = piece(w, n);
      REQUIRE((*writer)->write((n * writers + w) * bytes, std::as_bytes(std::span(text))));
      plain.replace(static_cast<std::size_t>((n * writers + w) * bytes), text.size(), text);
    }
    REQUIRE((*writer)->close());
  }
  return *made;
}

std::string all_of(ContainerView& view) {
  std::string text(static_cast<std::size_t>(view.size()), '?');
  const auto got = view.read(0, std::as_writable_bytes(std::span(text)));
  REQUIRE(got);
  return text;
}

/// What a reader finds, and whether it had to look into the droppings.
std::string read_anew(const Shared& directory, bool& from_kept) {
  auto view = ContainerView::open(directory);
  REQUIRE(view);
  from_kept = (*view)->content().writers.empty();
  return all_of(**view);
}
std::string read_anew(const Shared& directory) {
  bool ignored = false;
  return read_anew(directory, ignored);
}

void wait_for_times_to_grow_old() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

/// A container whose index is kept.
Shared kept_container(const std::string& path, std::string& plain) {
  Shared directory = write_all_of(path, plain);
  wait_for_times_to_grow_old();
  (void)read_anew(directory);
  REQUIRE(std::filesystem::exists(path + "/" + std::string(index_snapshot_name)));
  return directory;
}

}  // namespace

TEST_CASE("the second reader looks into no dropping and sees the same") {
  const Directory directory;
  std::string plain;
  const Shared container = write_all_of(directory / "file", plain);
  wait_for_times_to_grow_old();
  bool from_kept = true;
  CHECK(read_anew(container, from_kept) == plain);
  CHECK_FALSE(from_kept);
  auto before = status_of(*container);
  CHECK(read_anew(container, from_kept) == plain);
  CHECK(from_kept);
  std::filesystem::remove(directory / "file/.iosig-index");
  const auto after = status_of(*container);
  REQUIRE(before);
  REQUIRE(after);
  before->accessed_unix_ns = after->accessed_unix_ns;  // looking is an access
  CHECK(*before == *after);
  CHECK(before->size == static_cast<std::int64_t>(plain.size()));
  CHECK(before->blocks > 0);
}

TEST_CASE("keeping an index changes no time of the file") {
  const Directory directory;
  std::string plain;
  const Shared container = write_all_of(directory / "file", plain);
  wait_for_times_to_grow_old();
  const auto before = status_of(*container);
  (void)read_anew(container);
  REQUIRE(std::filesystem::exists(directory / "file/.iosig-index"));
  const auto after = status_of(*container);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(after->modified_unix_ns == before->modified_unix_ns);
  CHECK(after->changed_unix_ns == before->changed_unix_ns);
}

TEST_CASE("whatever happens after an index was kept, readers see it") {
  const Directory directory;
  std::string plain;
  const Shared container = kept_container(directory / "file", plain);
  SUBCASE("a write") {
    write_as(container, 5, "new");
    plain.replace(5, 3, "new");
  }
  SUBCASE("a write by somebody who has not ended") {
    auto writer = ContainerWriter::open(container);
    REQUIRE(writer);
    (void)read_anew(container);
    const std::string text = "new";
    REQUIRE((*writer)->write(7, std::as_bytes(std::span(text))));
    plain.replace(7, 3, "new");
    CHECK(read_anew(container) == plain);
    wait_for_times_to_grow_old();
    CHECK(read_anew(container) == plain);
    REQUIRE((*writer)->write(70, std::as_bytes(std::span(text))));
    plain.replace(70, 3, "new");
    CHECK(read_anew(container) == plain);
  }
  SUBCASE("cut short") {
    REQUIRE(truncate_container(container, 33));
    plain.resize(33);
  }
  SUBCASE("cut to nothing and written again") {
    REQUIRE(truncate_container(container, 0));
    write_as(container, 0, "again");
    plain = "again";
  }
  CHECK(read_anew(container) == plain);
  wait_for_times_to_grow_old();
  bool from_kept = false;
  CHECK(read_anew(container) == plain);
  CHECK(read_anew(container, from_kept) == plain);
}

TEST_CASE("readers that come at any moment between writes see every write that had ended") {
  const Directory directory;
  std::string plain;
  const Shared container = write_all_of(directory / "file", plain);
  std::mt19937 random(5);
  int kept = 0;
  for (int n = 0; n < 40; ++n) {
    const auto at = static_cast<std::size_t>(random() % plain.size());
    const std::string text = std::to_string(n);
    write_as(container, static_cast<std::int64_t>(at), text);
    if (plain.size() < at + text.size()) plain.resize(at + text.size());
    plain.replace(at, text.size(), text);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3 == 0 ? 0 : random() % 30'000));
    bool from_kept = false;
    REQUIRE(read_anew(container, from_kept) == plain);
    REQUIRE(read_anew(container, from_kept) == plain);
    kept += from_kept ? 1 : 0;
  }
  CHECK(kept > 0);
}

TEST_CASE("an index snapshot that is damaged or another container's is not used") {
  const Directory directory;
  std::string plain;
  const Shared container = kept_container(directory / "file", plain);
  const std::string path = directory / "file/.iosig-index";
  const std::string sound = iosig::test::read(path);
  for (std::size_t at = 0; at < sound.size(); at += 3) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    iosig::test::write(path, damaged);
    REQUIRE_FALSE(read_index_snapshot(*container));
  }
  iosig::test::write(path, sound.substr(0, sound.size() / 2));
  CHECK(read_anew(container) == plain);  // and is kept again
  std::string other_plain;
  const Shared other = kept_container(directory / "other", other_plain);
  iosig::test::write(directory / "other/.iosig-index", sound);
  CHECK_FALSE(read_index_snapshot(*other));
  std::filesystem::remove(path);
  std::filesystem::create_symlink(directory / "other/.iosig-index", path);
  CHECK_FALSE(read_index_snapshot(*container));
}

TEST_CASE("nothing is kept while a tail is there, and a draft of a reader who died is in nobody's way for long") {
  const Directory directory;
  std::string plain;
  const Shared container = write_all_of(directory / "file", plain);
  const std::string kept = directory / "file/.iosig-index", draft = directory / "file/.iosig-index-new";
  {
    auto writer = ContainerWriter::open(container);
    REQUIRE(writer);
    wait_for_times_to_grow_old();
    CHECK(read_anew(container) == plain);
    CHECK_FALSE(std::filesystem::exists(kept));
    REQUIRE((*writer)->close());
  }
  wait_for_times_to_grow_old();
  iosig::test::write(draft, "half");
  CHECK(read_anew(container) == plain);
  CHECK_FALSE(std::filesystem::exists(kept));
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, draft.c_str(), long_ago, 0) == 0);
  CHECK(read_anew(container) == plain);
  CHECK(std::filesystem::exists(kept));
  CHECK_FALSE(std::filesystem::exists(draft));
}

TEST_CASE("a view goes to another process as bytes") {
  const Directory directory;
  std::string plain;
  const Shared container = write_all_of(directory / "file", plain);
  const auto view = ContainerView::open(container);
  REQUIRE(view);
  const auto index = (*view)->index();
  REQUIRE(index);
  CHECK(index->size() < 200);  // six writers, sixty writes: one pattern
  auto there = ContainerView::open(container, *index);
  REQUIRE(there);
  CHECK(all_of(**there) == plain);
  const auto other = create_container(directory / "other");
  REQUIRE(other);
  const auto refused = ContainerView::open(*other, *index);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::bad_input);
  for (std::size_t size = 0; size < index->size(); ++size)
    REQUIRE_FALSE(ContainerView::open(container, std::span(*index).first(size)));
}

namespace {

constexpr std::int64_t many = 1 << 19, length = 8;  ///< writes whose indices take more than 1 MiB

/// Writes the file in random order, by two writers that are still open.
std::vector<std::unique_ptr<ContainerWriter>> write_at_random(const Shared& container, std::string& plain) {
  std::vector<std::int64_t> order(many);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937_64(3));
  plain.resize(many * length);
  std::vector<std::unique_ptr<ContainerWriter>> open;
  for (int n = 0; n < 2; ++n) open.push_back(*ContainerWriter::open(container));
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::string text = fmt::format("{:08}", n);
    REQUIRE(open[n % 2]->write(order[n] * length, std::as_bytes(std::span(text))));
    plain.replace(static_cast<std::size_t>(order[n] * length), length, text);
  }
  return open;
}

}  // namespace

TEST_CASE("the last of the writers with large indices leaves an index snapshot") {
  const Directory directory;
  const Shared container = *create_container(directory / "file");
  const std::string snapshot = directory / "file/.iosig-index";
  std::string plain;
  const auto open = write_at_random(container, plain);
  REQUIRE(open[0]->close());
  CHECK_FALSE(std::filesystem::exists(snapshot));  // the other one may write more
  REQUIRE(open[1]->close());
  CHECK(std::filesystem::exists(snapshot));
  bool from_kept = false;
  CHECK(read_anew(container, from_kept) == plain);
  CHECK(from_kept);

  write_as(container, 0, "anew");
  plain.replace(0, 4, "anew");
  CHECK(read_anew(container, from_kept) == plain);
  CHECK_FALSE(from_kept);
}

TEST_CASE("beside the writers of another node, or a killed one, the last writer leaves no index snapshot") {
  const Directory directory;
  const Shared container = *create_container(directory / "file");
  std::string plain;
  const auto open = write_at_random(container, plain);
  SUBCASE("another node") { std::ofstream(directory / "file/order.another-node") << ""; }
  SUBCASE("a killed writer") {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto writer = ContainerWriter::open(container);
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  }
  for (const auto& each : open) REQUIRE(each->close());
  CHECK_FALSE(std::filesystem::exists(directory / "file/.iosig-index"));
  CHECK(read_anew(container) == plain);
}
