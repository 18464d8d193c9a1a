// Changed data are noticed: where a block is read whole, and by check_data() everywhere.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "iosig/base/crc32c.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/admin/flatten.h"
#include "iosig/container/admin/repair.h"
#include "iosig/container/layout/data_checksums.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

constexpr std::int64_t block = checksum_block_bytes;
using Directories = std::shared_ptr<const ContainerDirectory>;

std::vector<std::byte> numbered(std::int64_t count, unsigned first = 0) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::byte>((n * 2654435761u >> 13) + first);
  return bytes;
}

Directories make(const std::string& path) {
  auto made = create_container(path);
  REQUIRE(made);
  return *std::move(made);
}

void write_once(const Directories& directory, std::int64_t offset, std::span<const std::byte> bytes) {
  auto writer = ContainerWriter::open(directory);
  REQUIRE(writer);
  REQUIRE((*writer)->write(offset, bytes));
  REQUIRE((*writer)->close());
}

void flip(const Directories& directory, std::int64_t id, std::int64_t at) {
  const Fd fd = directory->open_dropping(Dropping::data, id, O_RDWR);
  char byte = 0;
  REQUIRE(::pread(fd.get(), &byte, 1, at) == 1);
  byte = static_cast<char>(byte ^ 4);
  REQUIRE(::pwrite(fd.get(), &byte, 1, at) == 1);
}

DataCheck data_of(const Directories& directory) {
  auto check = check_container(directory, {.data = true});
  REQUIRE(check);
  REQUIRE(check->data);
  return *check->data;
}

}  // namespace

TEST_CASE("the checksums of a log do not depend on how it was written") {
  const std::vector<std::byte> bytes = numbered(3 * block + 1234);
  for (const std::size_t step : {std::size_t{1000}, std::size_t{65536}, std::size_t{100'000}, bytes.size()}) {
    LogChecksums log;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      log.add(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
      (void)log.blocks();  // may be asked for at any time
    }
    const std::span all(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    CHECK(log.whole() == crc32c(all));
    const DataChecksums blocks = log.blocks();
    REQUIRE(blocks.is_complete());
    REQUIRE(blocks.count() == 4);
    CHECK(blocks.end_of(3) == log.bytes());
    for (std::int64_t n = 0; n < 4; ++n)
      CHECK(blocks.of(n) == crc32c(all.subspan(static_cast<std::size_t>(blocks.begin_of(n)),
                                               static_cast<std::size_t>(blocks.end_of(n) - blocks.begin_of(n)))));
  }
}

TEST_CASE("a changed byte fails a read of its whole block, and no other") {
  const Directory directory;
  const Directories box = make(directory / "box");
  const std::vector<std::byte> bytes = numbered(3 * block + 1234);
  write_once(box, 0, bytes);
  CHECK(data_of(box).verified_bytes == std::ssize(bytes));
  for (const std::int64_t at : {std::int64_t{0}, block - 1, block, 2 * block + 77, 3 * block, 3 * block + 1233}) {
    flip(box, 0, at);
    auto view = ContainerView::open(box);
    REQUIRE(view);
    std::vector<std::byte> read(bytes.size());
    const auto whole = (*view)->read(0, read);
    REQUIRE_FALSE(whole);
    CHECK(whole.error().kind == ErrorKind::bad_input);
    const std::int64_t begin = at / block * block, end = std::min(begin + block, std::ssize(bytes));
    CHECK(whole.error().message.find(fmt::format("bytes {} to {} were changed", begin, end)) != std::string::npos);
    if (begin > 0) {
      read.resize(static_cast<std::size_t>(begin));
      REQUIRE((*view)->read(0, read));
      CHECK(std::equal(read.begin(), read.end(), bytes.begin()));
    }
    const auto check = check_container(box, {.data = true});
    REQUIRE(check);
    REQUIRE(check->data->changed.size() == 1);
    CHECK(check->data->changed.front().begin == begin);
    CHECK(check->data->changed.front().end == end);
    REQUIRE(check->lost.size() == 1);
    CHECK(check->lost.front().offset == begin);
    CHECK(check->lost_bytes == end - begin);
    CHECK(check_container(box)->problems.empty());  // it reads no data
    CHECK_FALSE(export_container(**view, directory / "copy"));
    CHECK_FALSE(flatten_container(directory / "box"));
    flip(box, 0, at);
  }
  CHECK(data_of(box).changed.empty());
}

TEST_CASE("blocks that many small pieces hold are compared, too") {
  const Directory directory;
  const Directories box = make(directory / "box");
  {  // two writers take turns in the file
    auto one = ContainerWriter::open(box), two = ContainerWriter::open(box);
    REQUIRE(one);
    REQUIRE(two);
    const std::vector<std::byte> piece = numbered(512);
    for (std::int64_t n = 0; n < 1000; ++n) REQUIRE((n % 2 == 0 ? *one : *two)->write(n * 512, piece));
    REQUIRE((*one)->close());
    REQUIRE((*two)->close());
  }
  std::vector<std::byte> read(512'000);
  REQUIRE((*ContainerView::open(box))->read(0, read));
  flip(box, 1, 3 * block + 5);
  CHECK_FALSE((*ContainerView::open(box))->read(0, read));
  CHECK((*ContainerView::open(box))->read(0, std::span(read).first(2 * 3 * block)));
  CHECK(data_of(box).changed.size() == 1);
}

TEST_CASE("exchanged data of equal size are changed data") {
  const Directory directory;
  const Directories box = make(directory / "box");
  write_once(box, 0, numbered(5000));
  write_once(box, 5000, numbered(5000, 1));
  REQUIRE(::rename((directory / "box/d0/data.0").c_str(), (directory / "box/d0/x").c_str()) == 0);
  REQUIRE(::rename((directory / "box/d1/data.1").c_str(), (directory / "box/d0/data.0").c_str()) == 0);
  REQUIRE(::rename((directory / "box/d0/x").c_str(), (directory / "box/d1/data.1").c_str()) == 0);
  CHECK(data_of(box).changed.size() == 2);
}

TEST_CASE("a record of version 1 has no checksums of the data") {
  // Written by an earlier program: container "ab", writer 3, time 9, 10 bytes of data, an index of 2 bytes.
  const std::vector<std::uint8_t> index = {7, 8};
  std::vector<std::uint8_t> payload = {6, 2, 2, 'a', 'b', 6, 18, 20, 4};
  for (std::uint64_t code = std::uint64_t{crc32c(index)} * 2;; code >>= 7) {
    payload.push_back(static_cast<std::uint8_t>((code & 0x7f) | (code > 0x7f ? 0x80 : 0)));
    if (code <= 0x7f) break;
  }
  payload.insert(payload.end(), {0, 7, 8});
  std::vector<std::uint8_t> frame = {'I', 'O', 'X', 241, static_cast<std::uint8_t>(payload.size()), 0, 0, 0};
  for (int n = 0; n < 4; ++n) frame.push_back(static_cast<std::uint8_t>(crc32c(payload) >> (8 * n)));
  frame.insert(frame.end(), payload.begin(), payload.end());
  const ClosedWriterRecords records = read_closed_writers(frame);
  REQUIRE(records.writers.size() == 1);
  CHECK(records.damaged_bytes == 0);
  CHECK(records.writers.front().id == 3);
  CHECK(records.writers.front().data_bytes == 10);
  CHECK(records.writers.front().data.bytes == 0);
  CHECK(records.writers.front().index.size() == 2);
}

namespace {

/// Calls `write` with a writer in a child process, which is killed then.
void killed_after(const Directories& box, const std::function<bool(ContainerWriter&)>& write) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto writer = ContainerWriter::open(box);
    if (writer && write(**writer)) (void)::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

bool has_lost(const Directories& box, bool data = false) {
  const auto check = check_container(box, {.data = data});
  REQUIRE(check);
  return std::ranges::any_of(
      check->problems, [](const ContainerProblem& problem) { return problem.kind == ContainerProblem::Kind::lost; });
}

/// Overwrites bytes of a dropping; with a negative count, cuts it there.
void overwrite(const Directories& box, Dropping kind, std::int64_t at, std::int64_t count) {
  const Fd fd = box->open_dropping(kind, 0, O_RDWR);
  REQUIRE(fd);
  const std::string zeros(static_cast<std::size_t>(std::max<std::int64_t>(0, count)), '\0');
  REQUIRE((count < 0 ? ::ftruncate(fd.get(), at) == 0
                     : ::pwrite(fd.get(), zeros.data(), zeros.size(), at) == std::ssize(zeros)));
}

/// Writes at places without a pattern, so that each write has a record of its own.
bool write_here_and_there(ContainerWriter& writer, int count, std::int64_t base = 0) {
  const std::vector<std::byte> piece = numbered(100);
  for (std::int64_t n = 0; n < count; ++n)
    if (!writer.write(base + n * n * 300 % 1'000'000, piece)) return false;
  return true;
}

}  // namespace

TEST_CASE("what a killed writer had synced cannot go without notice") {
  const Directory directory;
  const auto synced = [](ContainerWriter& writer) {
    return writer.truncate(50) && write_here_and_there(writer, 200) && writer.truncate(10'000'000) && writer.sync();
  };
  constexpr std::int64_t record = sizeof(TailRecord), record_of_100 = 101 * record;
  struct Damage {
    Dropping kind;
    std::int64_t at, count;
  };
  const auto index_bytes = [](const Directories& box) {
    struct stat status {};
    REQUIRE(::fstat(box->open_dropping(Dropping::index, 0, O_RDONLY).get(), &status) == 0);
    return status.st_size;
  };
  int made = 0;
  const auto fresh = [&] {
    Directories box = make(directory / fmt::format("box{}", made++));
    killed_after(box, synced);
    return box;
  };
  {
    const Directories box = fresh();
    CHECK_FALSE(has_lost(box, true));
    CHECK(data_of(box).verified_bytes == 20'000);
    REQUIRE(repair_container(box));
    CHECK(data_of(box).verified_bytes == 20'000);  // the record has the checksum of what was synced
    flip(box, 0, 19'999);
    CHECK(has_lost(box, true));
  }
  std::vector<Damage> damages = {{Dropping::tail, record_of_100, 100 * record},  // the last half zeroed
                                 {Dropping::tail, 200 * record, record},         // the last record
                                 {Dropping::tail, record, 200 * record},         // all of them
                                 {Dropping::data, 77, 3}};
  {  // the last mark is cut off, at the boundary of its frame
    const Directories box = fresh();
    const IndexMark mark{IndexMark::Kind::truncate, 10'000'000, 0, 1'700'000'000'000'000};
    damages.push_back({Dropping::index, index_bytes(box) - std::ssize(index_frame(mark)), -1});
  }
  for (const Damage& damage : damages) {
    const Directories box = fresh();
    overwrite(box, damage.kind, damage.at, damage.count);
    INFO(damage.at);
    CHECK(has_lost(box, true));
    if (damage.kind == Dropping::data) continue;
    CHECK(has_lost(box));
    std::vector<std::byte> read(1000);
    CHECK_FALSE((*ContainerView::open(box))->read(0, read));
  }
}

TEST_CASE("what a killed writer had not synced may be gone after a power failure") {
  const Directory directory;
  constexpr std::int64_t record = sizeof(TailRecord);
  // Synced once with few records, which are in the page of the head, and once with many.
  for (const int count : {20, 200}) {
    const Directories box = make(directory / fmt::format("box{}", count));
    killed_after(box, [&](ContainerWriter& writer) {
      return write_here_and_there(writer, count) && writer.sync() && write_here_and_there(writer, 100, 5'000'000);
    });
    CHECK_FALSE(has_lost(box, true));
    CHECK(data_of(box).unverified_bytes == 10'000);
    overwrite(box, Dropping::tail, (1 + count) * record, 100 * record);
    CHECK_FALSE(has_lost(box, true));
    std::vector<std::byte> read(100);
    REQUIRE((*ContainerView::open(box))->read(0, read));
    CHECK(read == numbered(100));
  }
  const Directories box = make(directory / "never synced");
  killed_after(box, [](ContainerWriter& writer) { return write_here_and_there(writer, 20); });
  overwrite(box, Dropping::tail, 10 * record, 11 * record);
  CHECK_FALSE(has_lost(box, true));
}

TEST_CASE("each sync renews what the head of the tail says") {
  const Directory directory;
  const Directories box = make(directory / "box");
  auto writer = ContainerWriter::open(box);
  REQUIRE(writer);
  const auto head = [&] {
    std::vector<std::uint8_t> bytes(1 << 14);
    REQUIRE(::pread(box->open_dropping(Dropping::tail, 0, O_RDONLY).get(), bytes.data(), bytes.size(), 0) > 64);
    return synced_bytes(bytes);
  };
  CHECK_FALSE(head());
  const std::vector<std::byte> bytes = numbered(100'000);
  for (std::int64_t n = 1; n < 5; ++n) {
    REQUIRE((*writer)->write(0, bytes));
    REQUIRE((*writer)->sync());
    REQUIRE(head());
    CHECK(head()->data == n * 100'000);
  }
  const std::int64_t index = head()->index;
  REQUIRE((*writer)->truncate(7));  // leaves the tail as it is
  CHECK(head()->index == index);
  REQUIRE((*writer)->sync());
  CHECK(head()->index > index);
}
