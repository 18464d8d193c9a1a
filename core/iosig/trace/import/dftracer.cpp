#include "iosig/trace/import/dftracer.h"

#include <fcntl.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

using Event = nlohmann::ordered_json;

constexpr int max_event_depth = 16;
constexpr std::int64_t max_time_us = 4'000'000'000'000'000;  ///< two of them can be added as nanoseconds

std::string text_in(const Event& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->is_number_integer() ? found->dump() : std::string();
}

std::optional<std::int64_t> number_in(const Event& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return found->get<std::int64_t>();
}

/// Calls that DFTracer names as the trace does, or nearly.
Call call_named(std::string_view name) {
  static const std::map<std::string_view, Call> others = {
      {"open64", Call::open},        {"creat", Call::open},      {"openat", Call::open},   {"pread64", Call::pread},
      {"pwrite64", Call::pwrite},    {"lseek64", Call::lseek},   {"fopen64", Call::fopen}, {"lstat", Call::stat},
      {"fstatat", Call::stat},       {"__xstat", Call::stat},    {"__lxstat", Call::stat}, {"__fxstat", Call::fstat},
      {"__fxstatat", Call::stat},    {"unlinkat", Call::unlink}, {"mkdirat", Call::mkdir}, {"mknodat", Call::mknod},
      {"faccessat", Call::access},   {"remove", Call::unlink},   {"linkat", Call::link},   {"symlinkat", Call::symlink},
      {"readlinkat", Call::readlink}};
  const auto other = others.find(name);
  return other == others.end() ? call_of(name) : other->second;
}

}  // namespace

class DftracerImport::Reader {
 public:
  Reader(TraceWriter& writer, ImportNotes& notes) : writer_(writer), notes_(notes) {}

  Result<void> run(LineInput& input) {
    input_ = &input;
    without_result_ = 0;
    std::string_view line;
    for (;;) {
      const auto is_there = input_->next(line);
      if (!is_there) return pass_on(is_there.error());
      if (!*is_there) break;
      line = trimmed(line);
      if (line.ends_with(',')) line.remove_suffix(1);
      if (line.empty() || line == "[" || line == "]") continue;
      const Event event = parse_json(line, max_event_depth);
      if (!event.is_object() || !event.contains("name")) {
        if (input_->line_number() == 1)
          return fail(ErrorKind::bad_input, "{}:1: expected an event of DFTracer in JSON, or '['", input_->shown());
        remark(input_->is_unended() ? "cut; left out" : "no event of DFTracer in JSON; left out");
        continue;
      }
      if (auto done = take(event); !done) return done;
    }
    if (without_result_ > 0)
      notes_.remark(
          fmt::format("{}: DFTracer did not record the results of {} calls (open, fsync and others): they "
                      "count as done",
                      input_->shown(), without_result_));
    return {};
  }

 private:
  struct OpenPath {
    std::uint32_t number = 0;
    int opens = 0;
    std::int64_t position = no_offset;
    bool is_shared = false;  ///< with a child, which may move the file offset
  };
  struct ProcessState {
    TraceWriter::ProcessNumber number = 0;
    std::map<std::int32_t, TraceWriter::ThreadNumber> threads;
    std::unordered_map<std::string, OpenPath> files;
    std::string directory;  ///< the working directory; "": not known
  };
  using Host = std::string;  ///< its hash

  void remark(std::string_view what) {
    notes_.remark(fmt::format("{}:{}: {}", input_->shown(), input_->line_number(), what));
  }

  /// The path of a hash, or of a name in `args`.
  std::string path_in(const Event& args, const char* hash_key, const char* name_key) {
    const std::string hash = text_in(args, hash_key);
    if (hash.empty()) return text_in(args, name_key);
    const auto known = names_.find(hash);
    if (known != names_.end()) return known->second;
    notes_.leave_out("on files whose name (an FH event) is not in the log");
    return {};
  }

  Result<void> take(const Event& event) {
    const std::string name = text_in(event, "name"), kind = text_in(event, "cat");
    static const Event nothing = Event::object();
    const auto found = event.find("args");
    const Event& args = found != event.end() && found->is_object() ? *found : nothing;
    const std::string host = text_in(args, "hhash");
    if (name == "FH" || name == "SH") {
      names_[text_in(args, "value")] = text_in(args, "name");
      return {};
    }
    if (name == "HH") {
      hosts_[text_in(args, "value")] = text_in(args, "name");
      return {};
    }
    if (name == "CM" && text_in(args, "name") == "time_metric" && text_in(args, "value") != "US")
      return fail(ErrorKind::bad_input, "{}:{}: times in '{}'; expected US, microseconds", input_->shown(),
                  input_->line_number(), printable(text_in(args, "value")));
    const bool is_call = kind == "POSIX" || kind == "STDIO";
    if (!is_call && name != "start") return {};
    const auto pid = number_in(event, "pid"), tid = number_in(event, "tid");
    const auto start = number_in(event, "ts"), duration = number_in(event, "dur");
    if (!pid || *pid < 0 || *pid > INT32_MAX || !start || *start <= 0 || *start > max_time_us || !duration ||
        *duration < 0 || *duration > max_time_us) {
      remark("pid, ts or dur is missing, negative or too large; left out");
      return {};
    }
    ProcessState& process = process_of(host, static_cast<std::int32_t>(*pid));
    if (name == "start") {
      add_facts(process, args);
      return {};
    }
    if (name == "fork")
      for (auto& [path, file] : process.files) file.is_shared = true;
    const Call call = call_named(name);
    if (call == Call::none) return {};
    Slot slot{};
    slot.call = call;
    slot.start = static_cast<std::uint64_t>(*start) * 1000;
    slot.end = slot.start + static_cast<std::uint64_t>(*duration) * 1000;
    slot.fd = -1;
    const auto thread_id =
        tid && *tid >= 0 && *tid <= INT32_MAX ? static_cast<std::int32_t>(*tid) : static_cast<std::int32_t>(*pid);
    return take_call(process, thread_id, slot, args);
  }

  ProcessState& process_of(const Host& host, std::int32_t pid) {
    const auto [known, is_new] = processes_.try_emplace({host, pid});
    if (is_new) {
      const auto name = hosts_.find(host);
      known->second.number = writer_.add_process(name == hosts_.end() ? host : name->second, pid);
    }
    return known->second;
  }

  void add_facts(ProcessState& process, const Event& args) {
    const auto named = [&](const char* key) {
      const auto known = names_.find(text_in(args, key));
      return known == names_.end() ? std::string() : known->second;
    };
    writer_.remove_facts(process.number);
    const std::string command = named("cmd_hash");
    for (const std::string_view word : split(command, ';'))
      if (!word.empty()) writer_.add_fact(process.number, "argument", std::string(word));
    process.directory = named("cwd");
    if (!process.directory.empty()) writer_.add_fact(process.number, "directory", process.directory);
  }

  static std::string absolute(const ProcessState& process, std::string path) {
    if (path.empty() || path.starts_with('/') || process.directory.empty()) return path;
    while (path.starts_with("./")) path.erase(0, 2);
    return fmt::format("{}/{}", process.directory == "/" ? "" : process.directory, path);
  }

  Result<void> take_call(ProcessState& process, std::int32_t tid, Slot& slot, const Event& args) {
    const std::string path = absolute(process, path_in(args, "fhash", "fname"));
    if (path.empty()) return {};
    // Whether it succeeded is not in the log.
    if (slot.call == Call::chdir) process.directory.clear();
    const bool moves = moves_of(slot.call) != Moves::nothing;
    const auto result = number_in(args, "ret"), offset = number_in(args, "offset");
    if (!result) ++without_result_;
    if (!result && moves) {
      remark("a read or write without 'ret'; left out");
      return {};
    }
    slot.result = result.value_or(0);
    slot.offset = offset.value_or(no_offset);
    slot.length = no_length;
    for (const char* const key : {"count", "flags", "whence", "length", "size"})
      if (const auto number = number_in(args, key); number && slot.length == no_length) slot.length = *number;
    if (const auto size = number_in(args, "size"); layer_of(slot.call) == Layer::stdio && moves && size && *size > 0) {
      if (slot.length > INT64_MAX / *size || slot.result > INT64_MAX / *size || slot.length < 0) {
        remark("count times size is too large; left out");
        return {};
      }
      slot.length *= *size;  // items of `size` bytes
      if (slot.result > 0) slot.result *= *size;
    }
    set_file(process, slot, path);
    const auto [thread, is_new] = process.threads.try_emplace(tid, 0);
    if (is_new) thread->second = writer_.add_thread(process.number, tid);
    return writer_.add(thread->second, slot, path, absolute(process, path_in(args, "newpath_hash", "newpath")));
  }

  /// Numbers the open file and derives the offset.
  void set_file(ProcessState& process, Slot& slot, const std::string& path) {
    const bool is_open = call_kind_of(slot.call) == CallKind::open;
    const auto known = is_open ? process.files.try_emplace(path).first : process.files.find(path);
    if (known == process.files.end()) return;
    OpenPath& file = known->second;
    if (is_open && slot.result >= 0) {
      file.number = ++last_file_;
      const bool appends = slot.length != no_length && (slot.length & O_APPEND) != 0;
      file.position = ++file.opens == 1 && !appends && slot.call == Call::open ? 0 : no_offset;
    }
    slot.file = file.number;
    if (call_kind_of(slot.call) == CallKind::close) {
      if (file.opens <= 1)
        process.files.erase(known);
      else
        --file.opens;
      return;
    }
    if (file.opens != 1 || file.is_shared || file.position == no_offset) return;
    if (slot.call == Call::lseek) file.position = slot.result >= 0 ? slot.result : file.position;
    if (call_manner_of(slot.call) != CallManner::at_file_offset) return;
    slot.offset = file.position;
    slot.flags = derived_offset;
    if (slot.result > 0)
      file.position = slot.result > INT64_MAX - file.position ? no_offset : file.position + slot.result;
  }

  LineInput* input_ = nullptr;
  TraceWriter& writer_;
  ImportNotes& notes_;
  std::unordered_map<std::string, std::string> names_;  ///< by their hashes, which are the same in all logs
  std::map<Host, std::string> hosts_;
  std::map<std::pair<Host, std::int32_t>, ProcessState> processes_;
  std::uint32_t last_file_ = 0;
  std::uint64_t without_result_ = 0;
};

bool is_dftracer_line(std::string_view line) {
  line = trimmed(line);
  return line == "[" || (line.starts_with('{') && line.find("\"ph\":") != std::string_view::npos &&
                         line.find("\"pid\":") != std::string_view::npos);
}

DftracerImport::DftracerImport(TraceWriter& writer, ImportNotes& notes)
    : reader_(std::make_unique<Reader>(writer, notes)) {}
DftracerImport::~DftracerImport() = default;
Result<void> DftracerImport::read(LineInput& input) { return reader_->run(input); }

}  // namespace iosig::trace
