// Calls on descriptors: which file they are on, and where in it.
#include <fcntl.h>

#include <algorithm>

#include "iosig/trace/import/strace_processes.h"

namespace iosig::trace {

Slot StraceProcesses::slot_of(Call call, std::int64_t start, std::int64_t end) {
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
auto StraceProcesses::file_of(Thread& thread, const StraceDescriptor& fd) -> std::shared_ptr<OpenFile> {
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
auto StraceProcesses::file_in(Thread& thread, const Ended& ended, std::size_t n, Slot& slot)
    -> std::shared_ptr<OpenFile> {
  const auto fd = strace_descriptor(ended.argument(n));
  if (!fd || fd->number < 0) return nullptr;
  slot.fd = fd->number;
  return n == 0 && begun_file_ ? begun_file_ : file_of(thread, *fd);
}

Result<void> StraceProcesses::add(Thread& thread, Slot slot, const OpenFile& file) {
  slot.file = file.number;
  if (slot.offset != no_offset && (slot.flags & derived_offset) != 0) ++derived_;
  return add(thread, slot, file.path);
}

Result<void> StraceProcesses::add(Thread& thread, const Slot& slot, std::string_view path, std::string_view second) {
  if (!thread.number) thread.number = writer_.add_thread(thread.process, thread.tid);
  if (!path.empty() && path.front() != '/') ++relative_paths_;
  return writer_.add(*thread.number, slot, path, second);
}

Result<void> StraceProcesses::leave_out_unknown() {
  notes_.leave_out("on descriptors that are no files, or whose open is not in the trace");
  return {};
}

/// Returns where a transfer ended; no_offset if that is not known or cannot be.
std::int64_t StraceProcesses::end_of(std::int64_t offset, std::int64_t result) {
  return offset < 0 || result > INT64_MAX - offset ? no_offset : offset + result;
}

/// Moves the file offset by a read or write; returns where it took place.
std::int64_t StraceProcesses::moved(OpenFile& file, Call call, std::int64_t result) {
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

void StraceProcesses::written(const OpenFile& file, std::int64_t offset, std::int64_t result) {
  const auto size = sizes_.find(file.path);
  if (size == sizes_.end() || result <= 0) return;
  if (const std::int64_t end = end_of(offset, result); end == no_offset)
    sizes_.erase(size);
  else
    size->second = std::max(size->second, end);
}

void StraceProcesses::told_size(std::string_view path, std::string_view status) {
  std::string_view text = strace_field(status, "st_size");
  if (text.empty()) text = strace_field(status, "stx_size");
  if (const auto size = strace_number(text); size && *size >= 0) sizes_[std::string(path)] = *size;
}

/// The sum of the sizes of "[{iov_base=..., iov_len=10}, ...]"; no_length if it is not told.
std::int64_t StraceProcesses::bytes_of_pieces(std::string_view text) {
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

Result<void> StraceProcesses::take_open(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
  const bool is_at = row.kind == StraceKind::open_at;
  const auto path = path_in(thread, is_at ? ended.argument(0) : std::string_view(), ended.argument(is_at ? 1 : 0));
  if (!path) return {};
  std::string_view flags_text = ended.argument(is_at ? 2 : 1);
  if (ended.name == "openat2") flags_text = strace_field(flags_text, "flags");
  const auto flags =
      ended.name == "creat" ? std::optional<std::int64_t>(O_CREAT | O_WRONLY | O_TRUNC) : strace_open_flags(flags_text);
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

Result<void> StraceProcesses::take_descriptor(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
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

void StraceProcesses::duplicate(Thread& thread, const Ended& ended, const Slot& slot,
                                const std::shared_ptr<OpenFile>& file, std::optional<std::int64_t> command) {
  const auto fd = static_cast<std::int32_t>(slot.result);
  if (fd == slot.fd) return;
  const bool is_closed_by_exec = command == F_DUPFD_CLOEXEC && ended.name == "fcntl";
  if (file)
    (*thread.descriptors)[fd] = {file, is_closed_by_exec || ended.argument(2) == "O_CLOEXEC"};
  else
    thread.descriptors->erase(fd);
}

void StraceProcesses::set_flags(Thread& thread, const Ended& ended, std::int32_t fd, OpenFile& file,
                                std::optional<std::int64_t> command) {
  if (command == F_SETFD) (*thread.descriptors)[fd].is_closed_by_exec = ended.argument(2) == "FD_CLOEXEC";
  if (command == F_SETFL) file.appends = ended.argument(2).find("O_APPEND") != std::string_view::npos;
}

Result<void> StraceProcesses::take_close_range(Thread& thread, const Ended& ended) {
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
Result<void> StraceProcesses::take_copy(Thread& thread, const Ended& ended, Slot& slot, std::size_t to,
                                        std::size_t to_offset, std::size_t from, std::size_t from_offset) {
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
  // The read half of the copy gets a record of its own, without a duration (docs/formats/trace.md).
  other.call = source_of(slot.call);
  other.start = other.end = slot.end;
  other.result = slot.result;
  other.length = slot.length;
  other.offset = read_at;
  other.flags = offset_in(from_offset) ? 0 : derived_offset;
  return add(thread, other, *source);
}

}  // namespace iosig::trace
