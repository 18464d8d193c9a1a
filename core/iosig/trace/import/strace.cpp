#include "iosig/trace/import/strace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/trace/import/strace_calls.h"
#include "iosig/trace/import/strace_line.h"

namespace iosig::trace {
namespace {

constexpr std::string_view unknown_host = "unknown";
constexpr std::size_t max_waiting_lines = 1'000'000;

/// An open file description: what dup and fork share.
struct OpenFile {
  std::string path;
  std::uint32_t number = 0;
  std::int64_t position = no_offset;  ///< no_offset: not known
  bool appends = false;
};
struct Descriptor {
  std::shared_ptr<OpenFile> file;
  bool is_closed_by_exec = false;
};
using Descriptors = std::unordered_map<std::int32_t, Descriptor>;

/// Arguments and result of a call that has ended.
struct Ended {
  const StraceCall& call;
  std::string_view name;

  [[nodiscard]] std::string_view argument(std::size_t n) const {
    return n < call.arguments.size() ? call.arguments[n] : std::string_view();
  }
  [[nodiscard]] std::int64_t result() const { return call.result.value_or(0); }
  [[nodiscard]] bool succeeded() const { return call.result && *call.result >= 0; }
};

class StraceImport {
 public:
  StraceImport(TraceWriter& writer, ImportNotes& notes) : writer_(writer), notes_(notes) {}

  Result<void> take(std::int32_t tid, const StraceLine& line, const std::string& place) {
    if (!threads_.contains(tid)) {
      if (!forking_.empty() && waiting_count_ < max_waiting_lines) {  // whose child it is the fork's end will tell
        keep(tid, line, place);
        return {};
      }
      add_unknown(tid);
    }
    return handle(tid, line, place);
  }

  /// Calls that had not ended.
  Result<void> finish() {
    if (auto done = release_waiting(); !done) return done;
    for (auto& [tid, thread] : threads_)
      if (auto done = add_begun(thread); !done) return done;
    if (relative_paths_ > 0)
      notes_.remark(
          fmt::format("{} calls have relative paths, because the working directory is not known; strace -y "
                      "tells it",
                      relative_paths_));
    if (others_ == 0 && derived_ > 0)
      notes_.remark(
          fmt::format("strace seems to have recorded chosen calls only (-e): the offsets of {} reads and "
                      "writes are right only if lseek, dup, close, fork and clone are among them",
                      derived_));
    if (without_duration_ > 0)
      notes_.remark(fmt::format("{} calls have no duration; strace -T tells it", without_duration_));
    return {};
  }

 private:
  struct Begun {
    std::string name, arguments;
    std::int64_t start = 0;
    std::shared_ptr<OpenFile> file;  ///< of the first argument, if it is a descriptor
  };
  struct Thread {
    std::int32_t tid = 0, pid = 0;
    TraceWriter::ProcessNumber process = 0;
    std::optional<TraceWriter::ThreadNumber> number;
    std::shared_ptr<Descriptors> descriptors;
    std::shared_ptr<std::string> directory;  ///< "": not known
    std::optional<Begun> begun;
  };
  struct Waiting {
    std::string text, place;
    StraceLine line;  ///< refers to text
  };

  void keep(std::int32_t tid, const StraceLine& line, const std::string& place) {
    auto kept = std::make_unique<Waiting>();
    kept->text.reserve(line.name.size() + line.rest.size());
    kept->text = std::string(line.name).append(line.rest);
    kept->place = place;
    kept->line = line;
    kept->line.name = std::string_view(kept->text).substr(0, line.name.size());
    kept->line.rest = std::string_view(kept->text).substr(line.name.size());
    waiting_[tid].push_back(std::move(kept));
    ++waiting_count_;
  }

  Result<void> release(std::int32_t tid) {
    const auto found = waiting_.extract(tid);
    if (found.empty()) return {};
    waiting_count_ -= found.mapped().size();
    for (const auto& kept : found.mapped())
      if (auto done = take(tid, kept->line, kept->place); !done) return done;
    return {};
  }
  Result<void> release_waiting() {
    forking_.clear();
    while (!waiting_.empty())
      if (auto done = release(waiting_.begin()->first); !done) return done;
    return {};
  }

  void add_unknown(std::int32_t tid) {
    Thread thread;
    thread.tid = thread.pid = tid;
    thread.process = writer_.add_process(std::string(unknown_host), tid);
    thread.descriptors = std::make_shared<Descriptors>();
    thread.directory = std::make_shared<std::string>();
    threads_.emplace(tid, std::move(thread));
  }

  Result<void> handle(std::int32_t tid, const StraceLine& line, const std::string& place) {
    Thread& thread = threads_.at(tid);
    switch (line.event) {
      case StraceEvent::other: return {};
      case StraceEvent::exit: {
        auto done = add_begun(thread);
        threads_.erase(tid);
        forking_.erase(tid);
        return done;
      }
      case StraceEvent::unfinished: {
        Begun begun{std::string(line.name), std::string(line.rest), line.time_ns, {}};
        const std::string_view first = line.rest.substr(0, std::min(line.rest.find_first_of(", )"), line.rest.size()));
        if (const auto fd = strace_descriptor(first); fd && fd->number >= 0) {
          begun.file = file_of(thread, *fd);
          if (line.name == "close") thread.descriptors->erase(fd->number);
        }
        const StraceRow* const row = strace_row(line.name);
        if (row != nullptr && row->kind == StraceKind::fork) forking_.insert(tid);
        thread.begun = std::move(begun);
        return {};
      }
      case StraceEvent::resumed: {
        if (!thread.begun || thread.begun->name != line.name) {
          notes_.remark(
              fmt::format("{}: the end of '{}', whose begin is not there; left out", place, printable(line.name)));
          return {};
        }
        const Begun begun = *std::exchange(thread.begun, std::nullopt);
        forking_.erase(tid);
        return take_ended(tid, begun.name, begun.arguments + std::string(line.rest), begun.start, line.time_ns,
                          begun.file, place);
      }
      case StraceEvent::call: return take_ended(tid, line.name, line.rest, line.time_ns, line.time_ns, nullptr, place);
    }
    return {};
  }

  /// A call that had begun when its thread ended.
  Result<void> add_begun(Thread& thread) {
    if (!thread.begun) return {};
    const Begun begun = *std::exchange(thread.begun, std::nullopt);
    const StraceRow* const row = strace_row(begun.name);
    if (row == nullptr || row->call == Call::none || !begun.file) return {};
    return add(thread, slot_of(row->call, begun.start, 0), *begun.file);
  }

  Result<void> take_ended(std::int32_t tid, std::string_view name, std::string_view rest, std::int64_t start,
                          std::int64_t seen_end, const std::shared_ptr<OpenFile>& file, const std::string& place) {
    const StraceRow* const row = strace_row(name);
    if (row == nullptr) {
      ++others_;
      return {};
    }
    const auto call = strace_call(rest);
    if (!call) {
      notes_.remark(
          fmt::format("{}: malformed or cut; expected {}(ARGUMENTS) = RESULT; left out", place, printable(name)));
      return {};
    }
    if (!call->duration_ns && seen_end == start) ++without_duration_;
    std::int64_t end = call->duration_ns ? start + *call->duration_ns : seen_end;
    if (!call->result) end = 0;
    Thread& thread = threads_.at(tid);
    if (row->kind == StraceKind::fork) return take_fork(thread, Ended{*call, name});
    begun_file_ = file;
    auto done = take_call(thread, *row, Ended{*call, name}, start, end);
    begun_file_ = nullptr;
    return done;
  }

  static Slot slot_of(Call call, std::int64_t start, std::int64_t end) {
    Slot slot{};
    slot.call = call;
    slot.start = static_cast<std::uint64_t>(start);
    slot.end = static_cast<std::uint64_t>(end);
    slot.offset = no_offset;
    slot.length = no_length;
    slot.fd = -1;
    return slot;
  }

  /// Returns the open file of a descriptor; makes one that strace -y names; null: it is no file, or not known.
  std::shared_ptr<OpenFile> file_of(Thread& thread, const StraceDescriptor& fd) {
    if (const auto known = thread.descriptors->find(fd.number); known != thread.descriptors->end())
      return known->second.file;
    const bool is_device = fd.path.starts_with("/dev/") && !fd.path.starts_with("/dev/shm/");
    if (fd.path.empty() || is_device) return nullptr;
    auto made = std::make_shared<OpenFile>();
    made->path = fd.path;
    made->number = ++last_file_;
    (*thread.descriptors)[fd.number] = {made, false};
    return made;
  }
  /// The same for the argument `n` of a call; notes the descriptor in `slot`.
  std::shared_ptr<OpenFile> file_in(Thread& thread, const Ended& ended, std::size_t n, Slot& slot) {
    const auto fd = strace_descriptor(ended.argument(n));
    if (!fd || fd->number < 0) return nullptr;
    slot.fd = fd->number;
    return n == 0 && begun_file_ ? begun_file_ : file_of(thread, *fd);
  }

  Result<void> add(Thread& thread, Slot slot, const OpenFile& file) {
    slot.file = file.number;
    if (slot.offset != no_offset && (slot.flags & derived_offset) != 0) ++derived_;
    return add(thread, slot, file.path);
  }
  Result<void> add(Thread& thread, const Slot& slot, std::string_view path, std::string_view second = {}) {
    if (!thread.number) thread.number = writer_.add_thread(thread.process, thread.tid);
    if (!path.empty() && path.front() != '/') ++relative_paths_;
    return writer_.add(*thread.number, slot, path, second);
  }
  Result<void> leave_out_unknown() {
    notes_.leave_out("on descriptors that are no files, or whose open is not in the trace");
    return {};
  }

  /// Returns the path of a "name" argument relative to a directory argument ("": the working directory); nothing if
  /// the argument is no path.
  std::optional<std::string> path_in(Thread& thread, std::string_view directory, std::string_view name) {
    auto path = strace_string(name);
    if (!path || path->empty()) return std::nullopt;
    if (path->front() == '/') return path;
    std::string base = *thread.directory;
    if (const auto fd = strace_descriptor(directory); fd && fd->number >= 0) {
      const auto file = file_of(thread, *fd);
      base = file ? file->path : fd->path;
    } else if (fd && !fd->path.empty()) {
      base = *thread.directory = fd->path;
    }
    while (path->starts_with("./")) path->erase(0, 2);
    if (base.empty()) return path;
    return base.back() == '/' ? base + *path : base + "/" + *path;
  }

  /// Returns where a transfer ended; no_offset if that is not known or cannot be.
  static std::int64_t end_of(std::int64_t offset, std::int64_t result) {
    return offset < 0 || result > INT64_MAX - offset ? no_offset : offset + result;
  }
  /// Moves the file offset by a read or write; returns where it took place.
  std::int64_t moved(OpenFile& file, Call call, std::int64_t result) {
    const bool is_write = moves_of(call) == Moves::writes;
    if (is_write && file.appends) {
      const auto size = sizes_.find(file.path);
      if (size == sizes_.end()) {
        file.position = no_offset;
        return no_offset;
      }
      file.position = size->second;
    }
    const std::int64_t before = file.position;
    if (result > 0) file.position = end_of(before, result);
    if (is_write) written(file, before, result);
    return before;
  }
  void written(const OpenFile& file, std::int64_t offset, std::int64_t result) {
    const auto size = sizes_.find(file.path);
    if (size == sizes_.end() || result <= 0) return;
    if (const std::int64_t end = end_of(offset, result); end == no_offset)
      sizes_.erase(size);
    else
      size->second = std::max(size->second, end);
  }
  void told_size(std::string_view path, std::string_view status) {
    std::string_view text = strace_field(status, "st_size");
    if (text.empty()) text = strace_field(status, "stx_size");
    if (const auto size = strace_number(text); size && *size >= 0) sizes_[std::string(path)] = *size;
  }

  /// The sum of the sizes of "[{iov_base=..., iov_len=10}, ...]"; no_length if it is not told.
  static std::int64_t bytes_of_pieces(std::string_view text) {
    std::int64_t sum = 0;
    if (text == "[]") return 0;
    if (!text.starts_with('[') || text.find("}, ...]") != std::string_view::npos) return no_length;
    const auto pieces = strace_list(text);
    if (!pieces) return no_length;
    for (const std::string_view piece : *pieces) {
      const auto length = strace_number(strace_field(piece, "iov_len"));
      if (!length || *length < 0 || sum > INT64_MAX - *length) return no_length;
      sum += *length;
    }
    return sum;
  }

  Result<void> take_call(Thread& thread, const StraceRow& row, const Ended& ended, std::int64_t start,
                         std::int64_t end) {
    Slot slot = slot_of(row.call, start, end);
    slot.result = ended.result();
    switch (row.kind) {
      case StraceKind::open:
      case StraceKind::open_at: return take_open(thread, row, ended, slot);
      case StraceKind::by_path:
      case StraceKind::path_size:
      case StraceKind::path_at:
      case StraceKind::status_at:
      case StraceKind::unlink_at:
      case StraceKind::two_paths:
      case StraceKind::two_paths_at:
      case StraceKind::new_link:
      case StraceKind::new_link_at:
      case StraceKind::change_directory: return take_name(thread, row, ended, slot);
      case StraceKind::get_directory:
        if (auto directory = strace_string(ended.argument(0)); directory && ended.succeeded())
          *thread.directory = *directory;
        return {};
      case StraceKind::execute:
      case StraceKind::execute_at: return take_execute(thread, row, ended);
      case StraceKind::close_range: return take_close_range(thread, ended);
      case StraceKind::copy: return take_copy(thread, ended, slot, 2, 3, 0, 1);
      case StraceKind::send: return take_copy(thread, ended, slot, 0, SIZE_MAX, 1, 2);
      case StraceKind::map: {
        slot.length = strace_number(ended.argument(1)).value_or(no_length);
        slot.offset = strace_number(ended.argument(5)).value_or(no_offset);
        if (ended.succeeded() || slot.result < -4095) slot.result = 0;
        const auto file = file_in(thread, ended, 4, slot);
        return file ? add(thread, slot, *file) : Result<void>{};
      }
      default: return take_descriptor(thread, row, ended, slot);
    }
  }

  Result<void> take_open(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
    const bool is_at = row.kind == StraceKind::open_at;
    const auto path = path_in(thread, is_at ? ended.argument(0) : std::string_view(), ended.argument(is_at ? 1 : 0));
    if (!path) return {};
    std::string_view flags_text = ended.argument(is_at ? 2 : 1);
    if (ended.name == "openat2") flags_text = strace_field(flags_text, "flags");
    const auto flags = ended.name == "creat" ? std::optional<std::int64_t>(O_CREAT | O_WRONLY | O_TRUNC)
                                             : strace_open_flags(flags_text);
    slot.length = flags.value_or(no_length);
    if (!ended.succeeded()) return add(thread, slot, *path);
    auto file = std::make_shared<OpenFile>();
    file->path = *path;
    file->number = ++last_file_;
    file->position = 0;
    file->appends = (flags.value_or(0) & O_APPEND) != 0;
    if ((flags.value_or(0) & O_TRUNC) != 0 || ((flags.value_or(0) & O_EXCL) != 0 && (flags.value_or(0) & O_CREAT) != 0))
      sizes_[*path] = 0;
    slot.fd = static_cast<std::int32_t>(slot.result);
    (*thread.descriptors)[slot.fd] = {file, (flags.value_or(0) & O_CLOEXEC) != 0};
    return add(thread, slot, *file);
  }

  Result<void> take_descriptor(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
    const auto file = file_in(thread, ended, 0, slot);
    const auto numbered = [&](std::size_t n) { return strace_number(ended.argument(n)).value_or(no_length); };
    if (row.kind == StraceKind::close && !begun_file_) thread.descriptors->erase(slot.fd);
    if (row.kind == StraceKind::duplicate || row.kind == StraceKind::fcntl) {
      const auto command = strace_fcntl_command(ended.argument(1));
      const bool is_duplicate = row.kind == StraceKind::duplicate || command == F_DUPFD || command == F_DUPFD_CLOEXEC;
      if (is_duplicate) {
        slot.call = Call::dup;
        if (ended.succeeded()) duplicate(thread, ended, slot, file, command);
      } else {
        slot.length = command.value_or(no_length);
        if (file && ended.succeeded()) set_flags(thread, ended, slot.fd, *file, command);
      }
    }
    if (!file) return leave_out_unknown();
    switch (row.kind) {
      case StraceKind::pieces:
      case StraceKind::pieces_at_offset: slot.length = bytes_of_pieces(ended.argument(1)); break;
      case StraceKind::at_file_offset:
      case StraceKind::at_offset: slot.length = numbered(2); break;
      case StraceKind::range:
        slot.offset = numbered(1);
        slot.length = numbered(2);
        break;
      case StraceKind::fallocate:
        slot.offset = numbered(2);
        slot.length = numbered(3);
        break;
      case StraceKind::size: slot.length = numbered(1); break;
      case StraceKind::seek:
        slot.offset = numbered(1);
        slot.length = strace_whence(ended.argument(2)).value_or(no_length);
        if (ended.succeeded()) file->position = slot.result;
        break;
      case StraceKind::change_directory_to:
        if (ended.succeeded()) *thread.directory = file->path;
        break;
      case StraceKind::status:
        if (ended.succeeded()) told_size(file->path, ended.argument(1));
        break;
      default: break;
    }
    if (row.kind == StraceKind::size && ended.succeeded()) sizes_[file->path] = slot.length;
    if (row.kind == StraceKind::fallocate && ended.succeeded()) sizes_.erase(file->path);
    const bool has_offset = row.kind == StraceKind::at_offset || row.kind == StraceKind::pieces_at_offset;
    if (has_offset) slot.offset = numbered(3);
    if (row.kind == StraceKind::at_file_offset || row.kind == StraceKind::pieces ||
        (has_offset && slot.offset == -1 && ended.name.ends_with("v2"))) {
      slot.offset = moved(*file, row.call, slot.result);
      slot.flags = derived_offset;
    } else if (has_offset && moves_of(row.call) == Moves::writes) {
      written(*file, slot.offset, slot.result);
    }
    return add(thread, slot, *file);
  }

  static void duplicate(Thread& thread, const Ended& ended, const Slot& slot, const std::shared_ptr<OpenFile>& file,
                        std::optional<std::int64_t> command) {
    const auto fd = static_cast<std::int32_t>(slot.result);
    if (fd == slot.fd) return;
    const bool is_closed_by_exec = command == F_DUPFD_CLOEXEC && ended.name == "fcntl";
    if (file)
      (*thread.descriptors)[fd] = {file, is_closed_by_exec || ended.argument(2) == "O_CLOEXEC"};
    else
      thread.descriptors->erase(fd);
  }
  static void set_flags(Thread& thread, const Ended& ended, std::int32_t fd, OpenFile& file,
                        std::optional<std::int64_t> command) {
    if (command == F_SETFD) (*thread.descriptors)[fd].is_closed_by_exec = ended.argument(2) == "FD_CLOEXEC";
    if (command == F_SETFL) file.appends = ended.argument(2).find("O_APPEND") != std::string_view::npos;
  }

  static Result<void> take_close_range(Thread& thread, const Ended& ended) {
    const auto first = strace_number(ended.argument(0)), last = strace_number(ended.argument(1));
    if (!ended.succeeded() || !first || !last) return {};
    const bool only_marks = ended.argument(2).find("CLOSE_RANGE_CLOEXEC") != std::string_view::npos;
    for (auto each = thread.descriptors->begin(); each != thread.descriptors->end();) {
      const bool is_in = each->first >= *first && each->first <= *last;
      if (is_in) each->second.is_closed_by_exec = true;
      each = is_in && !only_marks ? thread.descriptors->erase(each) : std::next(each);
    }
    return {};
  }

  /// Moves bytes between two files: recorded at the one that is written, if it is known, else at the one that is read.
  Result<void> take_copy(Thread& thread, const Ended& ended, Slot& slot, std::size_t to, std::size_t to_offset,
                         std::size_t from, std::size_t from_offset) {
    Slot other = slot;
    const auto source = file_in(thread, ended, from, other), target = file_in(thread, ended, to, slot);
    const auto offset_in = [&](std::size_t n) {  // "[40]", "[0] => [2]"; NULL: the file offset
      const std::string_view text = ended.argument(n);
      const std::size_t close = text.find(']');
      return text.starts_with('[') && close != std::string_view::npos ? strace_number(text.substr(1, close - 1))
                                                                      : std::optional<std::int64_t>();
    };
    const auto read_at = source && !offset_in(from_offset) ? moved(*source, Call::read, ended.result())
                                                           : offset_in(from_offset).value_or(no_offset);
    if (!source && !target) return leave_out_unknown();
    const bool has_own = offset_in(target ? to_offset : from_offset).has_value();
    if (!target) slot.fd = other.fd;
    slot.length = strace_number(ended.argument(from_offset + (from_offset > to ? 1 : 3))).value_or(no_length);
    if (target) {
      slot.offset = has_own ? *offset_in(to_offset) : moved(*target, Call::write, ended.result());
      if (has_own) written(*target, slot.offset, ended.result());
    } else {
      slot.offset = read_at;
    }
    if (!has_own) slot.flags = derived_offset;
    if (!target) slot.call = source_of(slot.call);
    auto added = add(thread, slot, target ? *target : *source);
    if (!added || !target || !source || !ended.succeeded()) return added;
    // What the copy read is a record of its own, without a duration (docs/formats/trace.md).
    other.call = source_of(slot.call);
    other.start = other.end = slot.end;
    other.result = slot.result;
    other.length = slot.length;
    other.offset = read_at;
    other.flags = offset_in(from_offset) ? 0 : derived_offset;
    return add(thread, other, *source);
  }

  Result<void> take_name(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
    using enum StraceKind;
    const bool is_at =
        row.kind == path_at || row.kind == status_at || row.kind == unlink_at || row.kind == two_paths_at;
    std::size_t place = is_at ? 1 : 0;
    if (row.kind == new_link) place = 1;
    if (row.kind == new_link_at) place = 2;
    const std::string_view directory = is_at                     ? ended.argument(0)
                                       : row.kind == new_link_at ? ended.argument(1)
                                                                 : std::string_view();
    const auto path = path_in(thread, directory, ended.argument(place));
    if (!path) {  // "" or NULL: the descriptor itself
      if (!is_at) return {};
      const auto file = file_in(thread, ended, 0, slot);
      if (!file) return leave_out_unknown();
      if (row.call == Call::stat) {
        slot.call = Call::fstat;
        if (ended.succeeded()) told_size(file->path, ended.argument(ended.name == "statx" ? 4 : 2));
      }
      return add(thread, slot, *file);
    }
    if (row.kind == path_size) slot.length = strace_number(ended.argument(1)).value_or(no_length);
    if (row.kind == unlink_at && ended.argument(2).find("AT_REMOVEDIR") != std::string_view::npos)
      slot.call = Call::rmdir;
    if (ended.succeeded()) {
      if (row.kind == change_directory) *thread.directory = *path;
      if (row.kind == path_size) sizes_[*path] = slot.length;
      if (row.call == Call::unlink || row.call == Call::rename) sizes_.erase(*path);
    }
    if (row.kind == new_link || row.kind == new_link_at)
      return add(thread, slot, *path, strace_string(ended.argument(0)).value_or(""));
    if (row.kind != two_paths && row.kind != two_paths_at) return add(thread, slot, *path);
    const bool has_directory = row.kind == two_paths_at;
    const auto second =
        path_in(thread, has_directory ? ended.argument(2) : std::string_view(), ended.argument(has_directory ? 3 : 1));
    if (second && ended.succeeded()) sizes_.erase(*second);
    return add(thread, slot, *path, second.value_or(""));
  }

  Result<void> take_execute(Thread& thread, const StraceRow& row, const Ended& ended) {
    if (!ended.succeeded()) return {};
    const std::size_t place = row.kind == StraceKind::execute_at ? 1 : 0;
    // The earlier program is a process of its own in the trace, with other facts.
    if (writer_.has_calls(thread.process)) {
      thread.process = writer_.add_process(std::string(unknown_host), thread.pid, parents_[thread.pid]);
      thread.number.reset();
    }
    writer_.remove_facts(thread.process);
    const auto program = path_in(thread, place == 1 ? ended.argument(0) : std::string_view(), ended.argument(place));
    if (program) writer_.add_fact(thread.process, "program", *program);
    if (const auto words = strace_list(ended.argument(place + 1)))
      for (const std::string_view word : *words)
        writer_.add_fact(thread.process, "argument", strace_string(word).value_or(std::string(word)));
    if (!thread.directory->empty()) writer_.add_fact(thread.process, "directory", *thread.directory);
    // exec does not share the table with a vfork parent or other threads any more
    thread.descriptors = std::make_shared<Descriptors>(*thread.descriptors);
    std::erase_if(*thread.descriptors, [](const auto& each) { return each.second.is_closed_by_exec; });
    thread.directory = std::make_shared<std::string>(*thread.directory);
    return {};
  }

  Result<void> take_fork(Thread& parent, const Ended& ended) {
    if (!ended.succeeded() || ended.result() == 0 || ended.result() > INT32_MAX) return {};
    const auto child_tid = static_cast<std::int32_t>(ended.result());
    std::string flags;
    for (const std::string_view argument : ended.call.arguments) flags += argument;
    const auto has = [&](std::string_view flag) { return flags.find(flag) != std::string::npos; };
    Thread child;
    child.tid = child_tid;
    child.pid = has("CLONE_THREAD") ? parent.pid : child_tid;
    child.process = parent.process;
    if (!has("CLONE_THREAD")) {
      parents_[child_tid] = parent.pid;
      child.process = writer_.add_process(std::string(unknown_host), child_tid, parent.pid);
      for (const auto& [key, value] : Facts(writer_.facts_of(parent.process)))
        writer_.add_fact(child.process, key, value);
    }
    child.descriptors = has("CLONE_FILES") ? parent.descriptors : std::make_shared<Descriptors>(*parent.descriptors);
    child.directory = has("CLONE_FS") ? parent.directory : std::make_shared<std::string>(*parent.directory);
    threads_.insert_or_assign(child_tid, std::move(child));
    if (auto done = release(child_tid); !done) return done;
    return forking_.empty() ? release_waiting() : Result<void>{};
  }

  TraceWriter& writer_;
  ImportNotes& notes_;
  std::map<std::int32_t, Thread> threads_;
  std::map<std::int32_t, std::int32_t> parents_;
  std::set<std::int32_t> forking_;  ///< threads within fork or clone
  std::map<std::int32_t, std::vector<std::unique_ptr<Waiting>>> waiting_;
  std::size_t waiting_count_ = 0;
  std::unordered_map<std::string, std::int64_t> sizes_;  ///< of files, by path, where a call told
  std::shared_ptr<OpenFile> begun_file_;                 ///< of the call that is being taken, if it had two lines
  std::uint32_t last_file_ = 0;
  std::uint64_t relative_paths_ = 0, without_duration_ = 0;
  std::uint64_t others_ = 0;   ///< calls that have nothing to do with files
  std::uint64_t derived_ = 0;  ///< offsets
};

/// One file and its next line.
struct Source {
  StraceFile file;
  StraceLine line;
  std::int32_t tid = 0;
};

/// Reads the next line that is one. false: there is none.
Result<bool> advance(Source& source, ImportNotes& notes) {
  LineInput& input = source.file.input;
  for (;;) {
    std::string_view text;
    auto is_there = input.next(text);
    if (!is_there || !*is_there) return is_there;
    if (text.ends_with('\r')) text.remove_suffix(1);
    const auto line = strace_line(text);
    if (line) {
      source.line = *line;
      source.tid = line->pid.value_or(source.file.pid.value_or(0));
      return true;
    }
    if (text.empty() || text.starts_with("strace: ")) continue;
    const std::string place = fmt::format("{}:{}", input.shown(), input.line_number());
    if (input.line_number() == 1)
      return fail(ErrorKind::bad_input,
                  "{}: expected 'PID SECONDS.FRACTION call(...) = ...', as strace -f -ttt -T -y -o FILE writes; got "
                  "'{}'",
                  place, printable(cut_to(text, 80)));
    notes.remark(fmt::format("{}: {} line of strace -ttt; left out", place, input.is_unended() ? "cut, or no" : "no"));
  }
}

}  // namespace

Result<void> import_strace(std::vector<StraceFile> files, TraceWriter& writer, ImportNotes& notes) {
  StraceImport import(writer, notes);
  std::vector<Source> sources;
  for (StraceFile& file : files) sources.push_back({.file = std::move(file), .line = {}, .tid = 0});
  const auto is_later = [&](std::size_t a, std::size_t b) {
    return std::pair(sources[a].line.time_ns, a) > std::pair(sources[b].line.time_ns, b);
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(is_later)> next(is_later);
  for (std::size_t n = 0; n < sources.size(); ++n) {
    const auto is_there = advance(sources[n], notes);
    if (!is_there) return pass_on(is_there.error());
    if (*is_there) next.push(n);
  }
  while (!next.empty()) {
    const std::size_t n = next.top();
    next.pop();
    Source& source = sources[n];
    const std::string place = fmt::format("{}:{}", source.file.input.shown(), source.file.input.line_number());
    if (auto done = import.take(source.tid, source.line, place); !done) return done;
    const auto is_there = advance(source, notes);
    if (!is_there) return pass_on(is_there.error());
    if (*is_there) next.push(n);
  }
  return import.finish();
}

}  // namespace iosig::trace
