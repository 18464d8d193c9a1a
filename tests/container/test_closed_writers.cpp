// The record of closed writers: what is appended is read, the last record of a writer counts, and damage stays small.
#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/base/crc32c.h"
#include "iosig/base/machine.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

using Bytes = std::vector<std::uint8_t>;

ClosedWriters records_of(const ContainerDirectory& directory) {
  auto read = ClosedWriters::read(directory, directory.list().closed_writers);
  REQUIRE(read);
  return *std::move(read);
}

/// The record of writer 7 with this index.
ClosedWriter closed_with(const Bytes& index) {
  return {.id = 7, .data_bytes = 10, .index_bytes = std::ssize(index), .index_checksum = crc32c(index), .index = index};
}

}  // namespace

TEST_CASE("a writer that is closed leaves its index") {
  const Directory directory;
  auto made = create_container(directory / "box");
  REQUIRE(made);
  for (std::int64_t id = 0; id < 3; ++id) {
    auto writer = ContainerWriter::open(*made);
    REQUIRE(writer);
    REQUIRE((*writer)->write(100 * id, std::as_bytes(std::span("0123456789", 10))));
    REQUIRE((*writer)->truncate(500));
    CHECK(records_of(**made).find(id) == nullptr);
    REQUIRE((*writer)->close());
  }
  const ClosedWriters records = records_of(**made);
  CHECK(records.ids() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(records.damaged().empty());
  const ClosedWriter* const record = records.find(1);
  REQUIRE(record != nullptr);
  CHECK(record->data_bytes == 10);
  const auto index = read_index(record->index);
  REQUIRE(index);
  CHECK(index->head.id == 1);
  CHECK(index->writes.size() == 1);
  CHECK(index->marks.size() == 1);
  remove_closed_writers(**made, 2);
  CHECK(records_of(**made).ids() == std::vector<std::int64_t>{2});
  CHECK(records_of(**made).find(2)->index.size() == static_cast<std::size_t>(records_of(**made).find(2)->index_bytes));
  remove_closed_writers(**made, 3);
  CHECK(records_of(**made).ids().empty());
}

TEST_CASE("a writer that syncs is recorded once, until it is closed") {
  const Directory directory;
  auto made = create_container(directory / "box");
  REQUIRE(made);
  auto writer = ContainerWriter::open(*made), other = ContainerWriter::open(*made);
  REQUIRE((writer && other));
  const auto write = [](ContainerWriter& by) {
    REQUIRE(by.write(0, std::as_bytes(std::span("0123456789", 10))));
    REQUIRE(by.sync());
  };
  write(**writer);
  CHECK(records_of(**made).last_id() == 0);
  write(**other);
  const auto size = [&] {
    std::int64_t bytes = 0;
    for (const std::string& name : (*made)->list().closed_writers)
      bytes += std::ssize(*read_file_in((*made)->fd(), name, "box", 1 << 20));
    return bytes;
  };
  const std::int64_t once = size();
  write(**writer);
  write(**other);
  CHECK(size() == once);
  {
    const ClosedWriters records = records_of(**made);
    CHECK(records.ids().empty());
    CHECK(records.damaged().empty());
    REQUIRE(records.synced().size() == 2);
    CHECK(records.find_synced(1)->data_bytes == 10);
    CHECK(records.find_synced(2) == nullptr);
    CHECK(records.last_id() == 1);
  }
  remove_closed_writers(**made, 1);
  CHECK(records_of(**made).find_synced(0) == nullptr);
  CHECK(records_of(**made).find_synced(1) != nullptr);
  write(**writer);  // recorded again
  write(**other);
  CHECK(records_of(**made).find_synced(0)->data_bytes == 30);
  CHECK(records_of(**made).find_synced(1)->data_bytes == 30);
  REQUIRE((*writer)->close());
  CHECK(records_of(**made).find_synced(0) == nullptr);
  CHECK(records_of(**made).ids() == std::vector<std::int64_t>{0});
}

TEST_CASE("a large index is read from its dropping") {
  const Directory directory;
  ContainerOptions options;
  options.index = IndexKind::traditional;
  auto made = create_container(directory / "box", options);
  REQUIRE(made);
  auto writer = ContainerWriter::open(*made);
  REQUIRE(writer);
  for (std::int64_t n = 0; n < 3000; ++n)  // 56 bytes each
    REQUIRE((*writer)->write(7 * n % 9000, std::as_bytes(std::span("0123456789", 10))));
  REQUIRE((*writer)->close());
  const ClosedWriters records = records_of(**made);
  const ClosedWriter* const record = records.find(0);
  REQUIRE(record != nullptr);
  CHECK(record->index_bytes > 3000 * 56);
  const auto index = read_index(record->index);
  REQUIRE(index);
  CHECK(index->damage.empty());
}

TEST_CASE("repair's record counts although the clock of the node that closed the writer was ahead") {
  const Directory directory;
  auto made = create_container(directory / "box");
  REQUIRE(made);
  const Bytes first{1, 2, 3}, second{4, 5};
  ClosedWriter ahead;
  ahead.recorded_unix_ns = unix_ns() + 3'600'000'000'000;
  record_closed_writer(**made, closed_with(first), &ahead);
  record_closed_writer(**made, closed_with(second));
  {
    const ClosedWriters records = records_of(**made);
    REQUIRE(records.find(7) != nullptr);
    CHECK(Bytes(records.find(7)->index.begin(), records.find(7)->index.end()) == first);
    record_closed_writer(**made, closed_with(second), records.find(7));
  }
  {
    const ClosedWriters records = records_of(**made);
    CHECK(Bytes(records.find(7)->index.begin(), records.find(7)->index.end()) == second);
    record_given_up_writer(**made, 7, 0, records.find(7));
  }
  CHECK(records_of(**made).ids().empty());
}

TEST_CASE("a damaged record leaves the others") {
  Bytes all;
  const Bytes index = index_frame(IndexHead{"0123", 0, -1, "host", 1, 2});
  std::vector<std::size_t> ends;
  for (std::int64_t id = 0; id < 4; ++id) {
    ClosedWriter closed;
    closed.container = "0123";
    closed.id = id;
    closed.index = index;
    closed.index_bytes = std::ssize(index);
    closed.index_checksum = 1;  // not that of the index: the copy is not used
    const Bytes frame = index_frame(closed);
    all.insert(all.end(), frame.begin(), frame.end());
    ends.push_back(all.size());
  }
  CHECK(read_closed_writers(all).writers.size() == 4);
  CHECK(read_closed_writers(all).writers.front().index.empty());
  for (std::size_t at = 0; at < all.size(); ++at) {
    Bytes damaged = all;
    damaged[at] ^= 0x10;
    const ClosedWriterRecords records = read_closed_writers(damaged);
    const auto hit = static_cast<std::int64_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    CHECK(records.damaged_bytes == all.size() / 4);
    REQUIRE(records.writers.size() == 3);
    for (std::int64_t n = 0; n < 3; ++n)
      CHECK(records.writers[static_cast<std::size_t>(n)].id == n + (n >= hit ? 1 : 0));
  }
  for (std::size_t size = 0; size < all.size(); ++size)
    CHECK(std::ssize(read_closed_writers(std::span(all).first(size)).writers) ==
          std::ranges::upper_bound(ends, size) - ends.begin());
}
