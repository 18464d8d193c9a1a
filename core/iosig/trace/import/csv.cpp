#include "iosig/trace/import/csv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "iosig/base/text.h"
#include "iosig/trace/accesses.h"

namespace iosig::trace {
namespace {

enum Column : std::size_t {
  id_column,
  parent_column,
  host_column,
  pid_column,
  tid_column,
  rank_column,
  layer_column,
  call_column,
  path_column,
  fd_column,
  offset_column,
  length_column,
  start_column,
  end_column,
  result_column,
  second_path_column,
  csv_columns
};
// clang-format off
constexpr std::array<std::string_view, csv_columns> column_names = {
    "id", "parent", "host", "pid", "tid", "rank", "layer", "call", "path", "fd", "offset", "length", "start_ns",
    "end_ns", "result", "second_path"};
// clang-format on
constexpr Column required_columns[] = {call_column, path_column, start_column, end_column, result_column};
constexpr std::size_t max_host_bytes = sizeof(PartHeader::host) - 1;
constexpr std::size_t max_record_bytes = std::size_t{64} << 10;  ///< paths have at most 4 KB
constexpr std::uint64_t max_id_step = std::uint64_t{1} << 31;

/// A field of a record and where it begins.
struct Field {
  std::string_view text;
  std::size_t column;  ///< from 1, in bytes of the record
};

/// Splits a record. Quoted fields are written to `unquoted`, which has room for all of `record`. false: text follows a
/// closing quote.
bool split_record(std::string_view record, std::vector<Field>& fields, std::string& unquoted) {
  fields.clear();
  unquoted.clear();
  unquoted.reserve(record.size());
  for (std::size_t at = 0;;) {
    const std::size_t begin = at;
    if (at < record.size() && record[at] == '"') {
      const std::size_t first = unquoted.size();
      for (++at; at < record.size(); unquoted += record[at++])
        if (record[at] == '"' && (++at == record.size() || record[at] != '"')) break;
      fields.push_back({std::string_view(unquoted).substr(first), begin + 1});
      if (at < record.size() && record[at] != ',') return false;
    } else {
      at = std::min(record.find(',', at), record.size());
      fields.push_back({record.substr(begin, at - begin), begin + 1});
    }
    if (at >= record.size()) return true;
    ++at;
  }
}

bool opens(Call call) { return call_kind_of(call) == CallKind::open || call == Call::inherited; }
bool closes(Call call) { return call_kind_of(call) == CallKind::close; }

/// The open files of a process, as far as descriptors and paths tell.
class OpenFiles {
 public:
  std::uint32_t number_of(const Slot& call, std::string_view path) {
    if (path.empty()) return 0;
    if (call.fd < 0 && layer_of(call.call) == Layer::posix) return 0;
    if (call.fd < 0) return number_in(by_path_, std::string(path), call);
    const std::uint32_t file = number_in(by_fd_, call.fd, call);
    if (call.call == Call::dup && call.result >= 0) by_fd_[call.result] = file;
    return file;
  }

 private:
  template <class Map, class Key>
  std::uint32_t number_in(Map& files, const Key& key, const Slot& call) {
    const bool is_new_file = opens(call.call) && call.result >= 0;
    const auto [known, is_new] = files.try_emplace(key, last_ + 1);
    if (is_new || is_new_file) known->second = ++last_;
    const std::uint32_t file = known->second;
    if (closes(call.call)) files.erase(known);
    return file;
  }
  std::unordered_map<std::int64_t, std::uint32_t> by_fd_;
  std::unordered_map<std::string, std::uint32_t> by_path_;
  std::uint32_t last_ = 0;
};

class CsvImport {
 public:
  CsvImport(LineInput& input, TraceWriter& writer, ImportNotes& notes)
      : input_(input), writer_(writer), notes_(notes) {}

  Result<void> run() {
    if (auto done = read_header(); !done) return done;
    for (;;) {
      const auto record = next_record();
      if (!record) return pass_on(record.error());
      if (!*record) return {};
      if (auto done = add_call(); !done) return done;
    }
  }

 private:
  struct ProcessState {
    TraceWriter::ProcessNumber number = 0;
    std::optional<std::int64_t> rank;
    OpenFiles files;
  };
  struct ThreadState {
    TraceWriter::ThreadNumber number = 0;
    ProcessState* process = nullptr;
    std::uint64_t last_id = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ids = {};  ///< in its part, as ranges: first, last

    void add_id(std::uint64_t id) {
      if (!ids.empty() && ids.back().second + 1 == id)
        ids.back().second = id;
      else
        ids.emplace_back(id, id);
    }
    [[nodiscard]] bool has_id(std::uint64_t id) const {
      const auto above = std::ranges::upper_bound(ids, id, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
      return above != ids.begin() && std::prev(above)->second >= id;
    }
  };

  template <class... Args>
  tl::unexpected<Error> fault(std::size_t column, fmt::format_string<Args...> text, Args&&... args) const {
    return fail(ErrorKind::bad_input, "{}:{}:{}: {}", input_.shown(), record_line_, column,
                fmt::format(text, std::forward<Args>(args)...));
  }

  Result<void> read_header() {
    std::string_view line;
    const auto is_there = input_.next(line);
    if (!is_there) return pass_on(is_there.error());
    record_line_ = 1;
    if (!*is_there) return fault(1, "empty; expected a line with the names of the columns");
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    place_.fill(SIZE_MAX);
    std::size_t at = 1;
    for (const std::string_view name : split(line, ',')) {
      const auto* const known = std::ranges::find(column_names, name);
      if (known == column_names.end())
        return fault(at, "'{}' is no column of a trace; expected {}", printable(name), fmt::join(column_names, ", "));
      std::size_t& place = place_[static_cast<std::size_t>(known - column_names.begin())];
      if (place != SIZE_MAX) return fault(at, "the column '{}' for the second time", name);
      place = width_++;
      at += name.size() + 1;
    }
    for (const Column column : required_columns)
      if (place_[column] == SIZE_MAX) return fault(1, "there is no column '{}'", column_names[column]);
    return {};
  }

  /// Reads the fields of the next record, which may have several lines. false: there is none.
  Result<bool> next_record() {
    std::string_view line;
    do {
      auto is_there = input_.next(line);
      if (!is_there || !*is_there) return is_there;
      record_line_ = input_.line_number();
    } while (line.empty() || line == "\r");
    const bool has_quotes = line.find('"') != std::string_view::npos;
    if (has_quotes || input_.is_unended()) {  // else the fields refer to the line itself
      record_ = line;
      while (std::ranges::count(record_, '"') % 2 != 0) {
        const auto is_there = input_.next(line);
        if (!is_there) return pass_on(is_there.error());
        if (!*is_there) {
          notes_.remark(fmt::format("{}:{}: cut within a quoted field; the calls before it are read", input_.shown(),
                                    record_line_));
          return false;
        }
        (record_ += '\n') += line;
        if (record_.size() > max_record_bytes) return fault(record_.find('"') + 1, "a quote that does not end");
      }
      line = record_;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!split_record(line, fields_, unquoted_))
      return fault(fields_.back().column, "text after a closing quote; expected a comma or the end of the line");
    if (fields_.size() == width_ && !input_.is_unended()) return true;
    if (fields_.size() <= width_ && input_.is_unended()) {
      notes_.remark(
          fmt::format("{}:{}: cut within the line; the calls before it are read", input_.shown(), record_line_));
      return false;
    }
    return fault(fields_.back().column, "{} fields; expected {}, as many as the first line names", fields_.size(),
                 width_);
  }

  [[nodiscard]] Field field(Column column) const {
    return place_[column] == SIZE_MAX ? Field{{}, 1} : fields_[place_[column]];
  }

  /// An empty field is nothing.
  template <class Number>
  Result<std::optional<Number>> number(Column column, Number least = std::numeric_limits<Number>::min()) const {
    const auto [text, at] = field(column);
    if (text.empty()) return std::nullopt;
    Number value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc{} && end == text.data() + text.size() && value >= least) return value;
    return fault(at, "{} is '{}'; expected a number from {} to {}, or nothing", column_names[column], printable(text),
                 least, std::numeric_limits<Number>::max());
  }

  Result<ThreadState*> thread_of(std::uint64_t id) {
    const auto pid = number<std::int32_t>(pid_column, 0), tid = number<std::int32_t>(tid_column, 0);
    const auto rank = number<std::uint32_t>(rank_column);
    if (!pid || !tid || !rank) return pass_on(!pid ? pid.error() : !tid ? tid.error() : rank.error());
    const std::string_view host = field(host_column).text;
    if (host.size() > max_host_bytes)
      return fault(field(host_column).column, "a host name of {} bytes; a trace has at most {}", host.size(),
                   max_host_bytes);
    const std::int32_t own_pid = pid->value_or(0), own_tid = tid->value_or(own_pid);
    // Without a pid, as in a trace of Darshan's, ranks tell the processes of a host apart.
    const std::int64_t own_rank = own_pid == 0 && *rank ? std::int64_t{**rank} : -1;
    ThreadState* thread = latest_;
    const auto key = std::tuple(std::string_view(host), own_pid, own_rank, own_tid, id >> call_id_bits);
    if (thread == nullptr ||
        key != std::tuple(std::string_view(latest_host_), latest_pid_, latest_rank_, latest_tid_, latest_part_)) {
      auto [process, is_new_process] = processes_.try_emplace({std::string(host), own_pid, own_rank});
      if (is_new_process) process->second.number = writer_.add_process(std::string(host), own_pid);
      auto [known, is_new] = threads_.try_emplace({process->second.number, own_tid, id >> call_id_bits});
      thread = &known->second;
      if (is_new) {
        thread->process = &process->second;
        thread->number = writer_.add_thread(process->second.number, own_tid);
        threads_of_part_[id >> call_id_bits].push_back(thread);
      }
      latest_ = thread;
      latest_host_ = host;
      std::tie(latest_pid_, latest_rank_, latest_tid_, latest_part_) =
          std::tuple(own_pid, own_rank, own_tid, id >> call_id_bits);
    }
    ProcessState& process = *thread->process;
    if (*rank && process.rank != std::int64_t{**rank}) {
      if (process.rank)
        return fault(field(rank_column).column, "rank {} of a process that had rank {} before (host '{}', pid {})",
                     **rank, *process.rank, printable(host), own_pid);
      process.rank = **rank;
      writer_.add_fact(process.number, "rank", std::to_string(**rank));
    }
    return thread;
  }

  /// Checks id and parent; returns the call's id in its part, 0 if the field is empty.
  Result<std::uint64_t> id_in_part(ThreadState& thread, std::uint64_t id, Slot& call) const {
    constexpr std::uint64_t mask = (std::uint64_t{1} << call_id_bits) - 1;
    const auto parent = number<std::uint64_t>(parent_column);
    if (!parent) return pass_on(parent.error());
    const std::uint64_t own = id & mask, of = parent->value_or(0);
    const std::uint64_t last = std::exchange(thread.last_id, own != 0 ? own : thread.last_id + 1);
    if (own != 0 && (own <= last || (last != 0 && own - last >= max_id_step)))
      return fault(field(id_column).column,
                   "id {} after {} of the same thread; expected a greater one: sort the lines by start_ns, then id", id,
                   id - own + last);
    if (own != 0) thread.add_id(own);
    if (of == 0) return own;
    if (of >> call_id_bits != id >> call_id_bits || of >= id || own - (of & mask) >= max_id_step)
      return fault(field(parent_column).column, "parent {} of call {}; expected a call of the same thread before it",
                   of, id);
    // A parent that is no call of this file was not selected when it was exported.
    for (const ThreadState* const other : threads_of_part_.at(id >> call_id_bits))
      if (other != &thread && other->has_id(of & mask) && !thread.has_id(of & mask))
        return fault(field(parent_column).column, "parent {} of call {} is a call of another thread or process", of,
                     id);
    call.parent = static_cast<std::uint32_t>(of & mask);
    return own;
  }

  Result<void> set_times(Slot& call) const {
    const auto start = number<std::int64_t>(start_column, 0), end = number<std::int64_t>(end_column, 0);
    const auto result = number<std::int64_t>(result_column);
    if (!start || !end || !result) return pass_on(!start ? start.error() : !end ? end.error() : result.error());
    if (!*start) return fault(field(start_column).column, "start_ns is empty");
    if (end->has_value() != result->has_value())
      return fault(field(*end ? result_column : end_column).column,
                   "end_ns without result, or result without end_ns; a call in flight has neither");
    if (*end && **end < **start) return fault(field(end_column).column, "end_ns {} before start_ns {}", **end, **start);
    constexpr std::uint64_t first_ns = 1;  // a start is not 0
    if (std::max(**start, end->value_or(0)) == INT64_MAX)
      return fault(field(start_column).column, "a time beyond {} ns", INT64_MAX - 1);
    call.start = static_cast<std::uint64_t>(**start) + first_ns;
    call.end = *end ? static_cast<std::uint64_t>(**end) + first_ns : 0;
    call.result = result->value_or(0);
    return {};
  }

  Result<void> add_call() {
    Slot call{};
    const auto [name, at] = field(call_column);
    call.call = call_of(name);
    if (call.call == Call::none)
      return fault(at, "'{}' is no call that a trace knows, such as pread, fopen, MPI_File_write_at_all",
                   printable(name));
    if (const auto [layer, place] = field(layer_column);
        !layer.empty() && layer != layer_names[static_cast<std::size_t>(layer_of(call.call))])
      return fault(place, "layer '{}' of {}; expected {}", printable(layer), name,
                   layer_names[static_cast<std::size_t>(layer_of(call.call))]);
    if (auto done = set_times(call); !done) return done;
    const auto fd = number<std::int32_t>(fd_column, 0);
    const auto offset = number<std::int64_t>(offset_column), length = number<std::int64_t>(length_column);
    const auto id = number<std::uint64_t>(id_column);
    if (!fd || !offset || !length || !id)
      return pass_on(!fd ? fd.error() : !offset ? offset.error() : !length ? length.error() : id.error());
    call.fd = fd->value_or(-1);
    call.offset = offset->value_or(no_offset);
    call.length = length->value_or(no_length);
    const std::string_view second = has_second_path(call.call) ? field(second_path_column).text : std::string_view();
    if (has_second_path(call.call)) {
      call.length = no_length;
      if (second.empty()) ++unknown_names_;
    }
    const auto thread = thread_of(id->value_or(0));
    if (!thread) return pass_on(thread.error());
    const auto own_id = id_in_part(**thread, id->value_or(0), call);
    if (!own_id) return pass_on(own_id.error());
    const std::string_view path = field(path_column).text;
    call.file = (*thread)->process->files.number_of(call, path);
    return writer_.add((*thread)->number, call, path, second, *own_id);
  }

  LineInput& input_;
  TraceWriter& writer_;
  ImportNotes& notes_;
  std::array<std::size_t, csv_columns> place_{};  ///< of each column in a record; SIZE_MAX: it is not there
  std::size_t width_ = 0;
  std::uint64_t record_line_ = 0;
  std::string record_, unquoted_;
  std::vector<Field> fields_;
  std::map<std::tuple<std::string, std::int32_t, std::int64_t>, ProcessState> processes_;  ///< host, pid, rank
  std::map<std::tuple<TraceWriter::ProcessNumber, std::int32_t, std::uint64_t>, ThreadState> threads_;
  std::unordered_map<std::uint64_t, std::vector<const ThreadState*>> threads_of_part_;  ///< by id >> call_id_bits
  ThreadState* latest_ = nullptr;
  std::string latest_host_;
  std::int32_t latest_pid_ = 0, latest_tid_ = 0;
  std::int64_t latest_rank_ = -1;
  std::uint64_t latest_part_ = 0;

 public:
  std::uint64_t unknown_names_ = 0;
};

}  // namespace

Result<void> import_csv(LineInput& input, TraceWriter& writer, ImportNotes& notes) {
  CsvImport import(input, writer, notes);
  auto done = import.run();
  if (import.unknown_names_ > 0)
    notes.remark(fmt::format("{}: the second path of {} renames and links is not there; a column second_path has it",
                             input.shown(), import.unknown_names_));
  return done;
}

}  // namespace iosig::trace
