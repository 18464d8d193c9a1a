// Journal entries keep every byte of a path, and damage of any kind shows.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/format/journal.h"

using namespace iosig;

namespace {

JournalEntry sample_entry() {
  JournalEntry entry;
  entry.id = "0123456789abcdef";
  entry.path = "/home/ann/out put\n\xff%41\"\\.bin";  // a newline, no UTF-8, and what looks encoded already
  entry.destination = "/dev/shm/.iosig-1000/0123456789abcdef.out";
  entry.mount_point = "/dev/shm";
  entry.filesystem_id = 0xfedcba9876543210;
  entry.home_filesystem_id = 0xfedcba9876543211;
  entry.home_inode = 0xfedcba9876543212;
  entry.signature.lifetime = Lifetime::persist;
  entry.signature.bytes_per_io = 64 * 1024;
  entry.by = RedirectedBy::prepare;
  entry.pid = 4711;
  entry.host = "node7";
  entry.created_unix_s = 1'700'000'000;
  entry.session = 4202;
  entry.boot = "0f6e1f0b-8d0c-4b5e-9c42-6c1d2c1b7a55";
  entry.created_boot_s = 86400;
  entry.pid_namespace = {4, 4026531836};
  entry.start_ticks = 8640017;
  entry.session_start_ticks = 8523311;
  entry.has_machines_host_name = false;
  entry.job = "slurm:4711";
  entry.drain = true;
  return entry;
}

/// The entry without everything from `key` up to the checksum, which then fits again: as an early version wrote it.
std::string cut_from(const JournalEntry& entry, std::string_view key) {
  std::string body = journal_entry_text(entry);
  body.resize(body.find(fmt::format(",\"{}\"", key)));
  return fmt::format("{},\"checksum\":\"{:016x}\"}}\n", body, fnv1a(body));
}

}  // namespace

TEST_CASE("journal: an entry comes back as it was written, whatever bytes its paths have") {
  const JournalEntry entry = sample_entry();
  const auto back = parse_journal_entry(journal_entry_text(entry), "e.json");
  REQUIRE(back);
  CHECK(*back == entry);

  JournalEntry every_byte = entry;
  every_byte.path = "/";
  for (int byte = 1; byte < 256; ++byte) every_byte.path += static_cast<char>(byte);
  CHECK(parse_journal_entry(journal_entry_text(every_byte), "e.json")->path == every_byte.path);
}

TEST_CASE("journal: an entry is one line of JSON, with its members in the order of the format") {
  const std::string body =
      R"({"schema":"iosig.journal/1","id":"0123456789abcdef","kind":"link",)"
      R"("path":"/home/ann/out%20put%0A%FF%2541\"\\.bin","destination":"/dev/shm/.iosig-1000/0123456789abcdef.out",)"
      R"("mount_point":"/dev/shm","filesystem_id":18364758544493064720,"home_filesystem_id":18364758544493064721,)"
      R"-("home_inode":18364758544493064722,"signature":"persist size-per-IO(64KB)","by":"prepare","pid":4711,)-"
      R"("host":"node7","created_unix_s":1700000000,"session":4202,"boot":"0f6e1f0b-8d0c-4b5e-9c42-6c1d2c1b7a55",)"
      R"("created_boot_s":86400,"pid_namespace":"4:4026531836","start_ticks":8640017,"session_start_ticks":8523311,)"
      R"("has_machines_host_name":false,"job":"slurm:4711","drain":true)";
  CHECK(journal_entry_text(sample_entry()) == fmt::format("{},\"checksum\":\"{:016x}\"}}\n", body, fnv1a(body)));
}

TEST_CASE("journal: entries are written as the JSON library writes them, and read back, whatever bytes they have") {
  std::mt19937_64 random(1);
  const auto bytes = [&](std::size_t most, int least_byte) {
    std::string text(random() % (most + 1), '\0');
    for (char& c : text) c = static_cast<char>(least_byte + static_cast<int>(random() % (256U - least_byte)));
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    JournalEntry entry = sample_entry();
    entry.id = fmt::format("{:016x}", random());
    entry.path = "/" + bytes(round == 0 ? 4095 : 300, 1);
    entry.destination = "/" + bytes(300, 1);
    entry.mount_point = "/" + bytes(30, 1);
    entry.host = bytes(64, 1);
    entry.boot = bytes(40, 0);
    entry.job = bytes(40, 0);
    for (std::uint64_t* const number : {&entry.filesystem_id, &entry.home_filesystem_id, &entry.home_inode})
      *number = random() >> random() % 64;
    for (std::int64_t* const number : {&entry.pid, &entry.created_unix_s, &entry.session, &entry.created_boot_s,
                                       &entry.start_ticks, &entry.session_start_ticks})
      *number = static_cast<std::int64_t>(random());
    entry.pid_namespace = {random(), random()};
    entry.has_machines_host_name = random() % 2 == 0;
    entry.drain = random() % 2 == 0;
    const std::string text = journal_entry_text(entry);
    CAPTURE(text);
    CHECK(json_line(parse_json(text, 2)) + "\n" == text);
    const auto back = parse_journal_entry(text, "e.json");
    REQUIRE(back);
    CHECK(*back == entry);
  }
}

TEST_CASE("journal: a file of declared reads that no signature can name is left out, and the entry can be read") {
  const auto back_with = [](const std::string& file) {
    JournalEntry entry = sample_entry();
    entry.signature.reads = DeclaredReads{DeclaredReads::Form::order, file};
    const std::string text = journal_entry_text(entry);
    CAPTURE(text);
    CHECK(json_line(parse_json(text, 2)) + "\n" == text);
    const auto back = parse_journal_entry(text, "e.json");
    REQUIRE(back);
    if (back->signature.reads) {
      CHECK(*back == entry);
      return true;
    }
    entry.signature.reads.reset();
    CHECK(*back == entry);
    return false;
  };
  for (const char* file : {"/a/x", "/a b)/x", "/a\\n/x", "/\xc3\xa4/x"}) CHECK(back_with(file));
  for (const char* file : {"/a\nb/x", "/\xff/x", "/\"/x", "/\xe2\x80\xa8/x", "/\x7f/x"}) CHECK_FALSE(back_with(file));
}

TEST_CASE("journal: an entry of an early version is read, and does not say in which namespace its process ran") {
  const auto back = parse_journal_entry(cut_from(sample_entry(), "pid_namespace"), "e.json");
  REQUIRE(back);
  JournalEntry expected = sample_entry();
  expected.pid_namespace = {};
  expected.start_ticks = expected.session_start_ticks = 0;
  expected.has_machines_host_name = true;
  expected.job.clear();
  expected.drain = false;  // it comes behind the job
  CHECK(*back == expected);
  CHECK(parse_journal_entry(cut_from(sample_entry(), "session"), "e.json")->boot.empty());
}

TEST_CASE("journal: an entry that does not name its job is of an unknown job") {
  const auto back = parse_journal_entry(cut_from(sample_entry(), "job"), "e.json");
  REQUIRE(back);
  JournalEntry expected = sample_entry();
  expected.job.clear();
  expected.drain = false;  // it comes behind the job
  CHECK(*back == expected);
}

TEST_CASE("journal: a namespace that is none is refused") {
  std::string body = journal_entry_text(sample_entry());
  body.resize(body.find(",\"checksum\""));
  body.replace(body.find("4:4026531836"), 12, "4-4026531836");
  const auto refused = parse_journal_entry(fmt::format("{},\"checksum\":\"{:016x}\"}}\n", body, fnv1a(body)), "e.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("\"pid_namespace\"") != std::string::npos);
}

TEST_CASE("journal: an entry cut at any byte is refused, and the message names the file") {
  const std::string text = journal_entry_text(sample_entry());
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto cut = parse_journal_entry(text.substr(0, length), "e.json");
    REQUIRE_FALSE(cut);
    CHECK(cut.error().kind == ErrorKind::bad_input);
    CHECK(cut.error().message.find("e.json") != std::string::npos);
  }
}

TEST_CASE("journal: every single flipped bit is noticed") {
  const std::string text = journal_entry_text(sample_entry());
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      CAPTURE(at);
      CAPTURE(bit);
      CHECK_FALSE(parse_journal_entry(flipped, "e.json"));
    }
}

TEST_CASE("journal: an entry of a newer version is refused by its number, not called damaged") {
  std::string text = journal_entry_text(sample_entry());
  text.replace(text.find("journal/1"), 9, "journal/2");
  const auto newer = parse_journal_entry(text, "e.json");
  REQUIRE_FALSE(newer);
  CHECK(newer.error().message.find("iosig.journal/2") != std::string::npos);
  CHECK(newer.error().message.find("changed") == std::string::npos);
}

TEST_CASE("journal: an entry whose schema nests deeper than any stack is refused") {
  const std::string deep(100'000, '['), text = "{\"schema\":" + deep + std::string(deep.size(), ']') + "}\n";
  const auto entry = parse_journal_entry(text, "e.json");
  REQUIRE_FALSE(entry);
  CHECK(entry.error().message.starts_with("e.json: journal entry is cut off or damaged"));
}
