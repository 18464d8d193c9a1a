// `iosig status`: lists everything that is redirected now, with its state. Changes nothing.

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/drain_record.h"
#include "iosig/enact/survey.h"
#include "iosig/format/signature_text.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

/// The state of a redirect's drain.
struct DrainStatus {
  std::string text;
  ordered_json json;
};
std::optional<DrainStatus> drain_status(const std::string& id, const std::string& path) {
  const auto record = drain_record(id);
  if (!record) return {};
  const bool gave_up = record->phase == DrainRecord::Phase::gave_up;
  const bool is_stopped = !gave_up && !is_locked(id, LockFor::draining);
  const double done = static_cast<double>(record->done_bytes), total = static_cast<double>(record->total_bytes);
  std::string text = fmt::format("'{}': ", printable(path));
  if (gave_up) {
    text = fmt::format("the drain gave up: {}", record->message);
  } else if (is_stopped) {
    text += "its drain was killed; iosig finalize --background starts another one";
  } else if (record->phase == DrainRecord::Phase::waiting) {
    text += fmt::format("process {} drains it; it waits: {}", record->pid, record->message);
  } else {
    text += fmt::format("process {} drains it; {}: {} of {}, {}", record->pid, record->message, about_bytes(done),
                        about_bytes(total), about_rate(record->bytes_per_s));
    if (record->bytes_per_s > 0 && total > done)
      text += fmt::format(", {} left", about_seconds((total - done) / record->bytes_per_s));
  }
  return DrainStatus{text,
                     {{"phase", is_stopped ? "stopped" : name_of(record->phase)},
                      {"message", record->message},
                      {"pid", record->pid},
                      {"host", record->host},
                      {"started_unix_s", record->started_unix_s},
                      {"done_bytes", record->done_bytes},
                      {"total_bytes", record->total_bytes},
                      {"bytes_per_s", record->bytes_per_s}}};
}

int run_status(Console& console) {
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  const std::int64_t now_unix_s = std::time(nullptr);
  Table table({"PATH", "WHERE", "SIZE", "STATE", "SIGNATURE", "AGE"});
  ordered_json redirects = ordered_json::array(), unreadable = ordered_json::array();
  KnownLinks links;
  std::size_t cut_short = 0;
  std::vector<std::string> drains;
  for (const JournalEntry& entry : journal->entries) {
    const auto drain = drain_status(entry.id, entry.path);
    const Survey found = survey(entry, &links);
    const bool is_at_work =
        is_locked(entry.id, LockFor::settling);  // its temporary names are not those of a killed run
    cut_short += found.cut_short && !is_at_work ? 1 : 0;
    if (drain) drains.push_back(drain->text);
    const std::int64_t age_s = std::max<std::int64_t>(0, now_unix_s - entry.created_unix_s);
    std::vector<std::string> companions;
    if (found.has_companions())
      for (const Companion& companion : found.destination->companions) companions.push_back(companion.name);
    std::string size = about_bytes(static_cast<double>(found.data_bytes));
    const std::size_t files = companions.size() + (found.has_data ? 1 : 0);
    if (!companions.empty()) size += fmt::format(" in {} file{}", files, files == 1 ? "" : "s");
    table.add({printable(found.path), printable(entry.destination), size, name_of(found.state),
               signature_text(entry.signature), about_seconds(static_cast<double>(age_s))});
    redirects.push_back({{"id", entry.id},
                         {"kind", name_of(entry.kind)},
                         {"path", found.path},
                         {"destination", entry.destination},
                         {"mount_point", entry.mount_point},
                         {"data_bytes", found.data_bytes},
                         {"companions", companions},
                         {"state", name_of(found.state)},
                         {"cut_short", found.cut_short && !is_at_work},
                         {"drain", drain ? drain->json : ordered_json()},
                         {"signature", signature_text(entry.signature)},
                         {"by", name_of(entry.by)},
                         {"host", entry.host},
                         {"job", entry.job},
                         {"created_unix_s", entry.created_unix_s},
                         {"age_s", age_s}});
  }
  for (const Unreadable& entry : journal->unreadable) unreadable.push_back(entry.error.message);
  if (console.json)
    console.say_json("iosig.status/1", {{"redirects", redirects}, {"unreadable", unreadable}});
  else if (journal->entries.empty())
    console.say("nothing is redirected");
  else
    console.say(table);
  if (!console.json)
    for (const std::string& drain : drains) console.say(drain);
  if (cut_short > 0)
    console.note(fmt::format("a killed run left traces of {} of them; 'iosig recover all' clears up", cut_short));
  int status = yes;
  for (const Unreadable& entry : journal->unreadable) status = std::max(status, console.fail(entry.error));
  return status;
}

}  // namespace

void add_status(Verb app, Action& action) {
  const Verb verb = app.add_verb("status", "List redirects and their states");
  verb.footer(
      "States: linked, empty (not written yet), filled (a job's directory), orphan (the program removed the link), "
      "replaced (another file stands at the path), gone, unreachable (not mounted, or on another machine).\n"
      "Exit status: 0 done, 3 or 4 a journal entry is damaged or cannot be opened.\n"
      "Example: iosig status --json");
  verb.when_chosen(action, "iosig.status/1", run_status);
}

}  // namespace iosig::cli
