#include "iosig/enact/drain_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/enact/journal_directory.h"

namespace iosig {
namespace {

using Phase = DrainRecord::Phase;

constexpr const char* schema = "iosig.drain/1";
constexpr int max_record_tries = 10;
constexpr std::uint64_t max_record_bytes = 64 << 10;
constexpr std::size_t max_message_bytes = 4096;
constexpr std::array phases{Phase::waiting, Phase::copying, Phase::gave_up};

std::string record_name(const std::string& id) { return fmt::format(".{}.drain", id); }

nlohmann::ordered_json json_of(const std::optional<PartialCopy>& copy) {
  if (!copy) return nullptr;
  return {{"device", copy->device},
          {"inode", copy->inode},
          {"born_unix_ns", copy->born_unix_ns},
          {"data_inode", copy->data_inode},
          {"data_bytes", copy->data_bytes},
          {"data_modified_unix_ns", copy->data_modified_unix_ns},
          {"data_changed_unix_ns", copy->data_changed_unix_ns}};
}

std::string text_of(const DrainRecord& record) {
  return json_ascii_line({{"schema", schema},
                          {"phase", name_of(record.phase)},
                          {"message", cut_to(record.message, max_message_bytes)},
                          {"pid", record.pid},
                          {"host", printable(record.host)},
                          {"started_unix_s", record.started_unix_s},
                          {"done_bytes", record.done_bytes},
                          {"total_bytes", record.total_bytes},
                          {"bytes_per_s", record.bytes_per_s},
                          {"copy", json_of(record.copy)}}) +
         "\n";
}

/// Returns the member, or `otherwise` if it is missing or of another type.
template <class Value>
Value member(const nlohmann::ordered_json& document, const char* key, Value otherwise) {
  const auto found = document.find(key);
  if (found == document.end()) return otherwise;
  if constexpr (std::is_same_v<Value, std::string>)
    return found->is_string() ? found->template get<std::string>() : otherwise;
  else
    return found->is_number() ? found->template get<Value>() : otherwise;
}

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::waiting: return "waiting";
    case Phase::copying: return "copying";
    case Phase::gave_up: return "gave_up";
  }
  return "";
}

Result<void> write_drain_record(const std::string& id, const DrainRecord& record) {
  const auto journal = open_journal_directory(IfMissing::refuse);
  if (!journal) return pass_on(journal.error());
  const int directory = journal->directory.get();
  const std::string name = record_name(id), draft = name + ".draft", shown = journal->path + "/" + name;
  for (int tries = 0; tries < max_record_tries; ++tries) {
    ::unlinkat(directory, draft.c_str(), 0);  // of a drain that was killed
    const Fd file(::openat(directory, draft.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!file) return write_failure("write", shown, errno);
    (void)::fchmod(file.get(), 0600);  // whatever the umask of who started the drain
    if (auto written = write_all(file.get(), text_of(record), shown); !written) {
      ::unlinkat(directory, draft.c_str(), 0);
      return written;
    }
    if (::renameat(directory, draft.c_str(), directory, name.c_str()) == 0) return {};
    if (errno != ENOENT) break;  // else another run has tidied up, and took the draft for one that was left
  }
  return system_failure("write", shown);
}

void remove_drain_record(const std::string& id) {
  const auto journal = open_journal_directory(IfMissing::refuse);
  if (!journal) return;
  const std::string name = record_name(id);
  ::unlinkat(journal->directory.get(), name.c_str(), 0);
  ::unlinkat(journal->directory.get(), (name + ".draft").c_str(), 0);
}

std::optional<DrainRecord> drain_record(const std::string& id) {
  const auto journal = open_journal_directory(IfMissing::refuse);
  if (!journal) return {};
  const std::string name = record_name(id);
  const auto text = read_file_in(journal->directory, name, journal->path + "/" + name, max_record_bytes);
  if (!text) return {};
  const auto document = parse_json(*text, 4);
  if (!document.is_object() || member(document, "schema", std::string()) != schema) return {};
  DrainRecord record;
  const std::string phase = member(document, "phase", std::string());
  const auto known = std::ranges::find_if(phases, [&](Phase each) { return phase == name_of(each); });
  if (known == phases.end()) return {};
  record.phase = *known;
  record.message = member(document, "message", std::string());
  record.pid = member<std::int64_t>(document, "pid", 0);
  record.host = member(document, "host", std::string());
  record.started_unix_s = member<std::int64_t>(document, "started_unix_s", 0);
  record.done_bytes = member<std::uint64_t>(document, "done_bytes", 0);
  record.total_bytes = member<std::uint64_t>(document, "total_bytes", 0);
  record.bytes_per_s = member<double>(document, "bytes_per_s", 0);
  if (const auto copy = document.find("copy"); copy != document.end() && copy->is_object())
    record.copy = PartialCopy{member<std::uint64_t>(*copy, "device", 0),
                              member<std::uint64_t>(*copy, "inode", 0),
                              member<std::int64_t>(*copy, "born_unix_ns", 0),
                              member<std::uint64_t>(*copy, "data_inode", 0),
                              member<std::uint64_t>(*copy, "data_bytes", 0),
                              member<std::int64_t>(*copy, "data_modified_unix_ns", 0),
                              member<std::int64_t>(*copy, "data_changed_unix_ns", 0)};
  return record;
}

}  // namespace iosig
