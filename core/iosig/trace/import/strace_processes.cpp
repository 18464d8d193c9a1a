#include "iosig/trace/import/strace_processes.h"

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::string_view unknown_host = "unknown";
constexpr std::size_t max_waiting_lines = 1'000'000;
constexpr int max_waiting_generations = 1000;  ///< each is a call within the one before

}  // namespace

Result<void> StraceProcesses::take(std::int32_t tid, const StraceLine& line, const std::string& place) {
  if (!threads_.contains(tid)) {
    if (!forking_.empty() && waiting_count_ < max_waiting_lines) {  // whose child it is the fork's end will tell
      keep(tid, line, place);
      return {};
    }
    add_unknown(tid);
  }
  return handle(tid, line, place);
}

Result<void> StraceProcesses::finish() {
  do {
    forking_.clear();  // none will end any more
    if (auto done = release_waiting(); !done) return done;
  } while (!waiting_.empty());
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

void StraceProcesses::keep(std::int32_t tid, const StraceLine& line, const std::string& place) {
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

Result<void> StraceProcesses::release(std::int32_t tid) {
  const auto found = waiting_.extract(tid);
  if (found.empty()) return {};
  waiting_count_ -= found.mapped().size();
  if (generations_ == max_waiting_generations)
    return fail(
        ErrorKind::bad_input,
        "the lines of thread {} wait for the end of {} forks, each by a child of the one before; not a log of strace",
        tid, generations_);
  ++generations_;
  for (const auto& kept : found.mapped())
    if (auto done = take(tid, kept->line, kept->place); !done) return done;
  --generations_;
  return {};
}

/// Takes lines that wait, as long as no fork is open: each thread's first line makes it known, so that it does not wait
/// again.
Result<void> StraceProcesses::release_waiting() {
  while (forking_.empty() && !waiting_.empty())
    if (auto done = release(waiting_.begin()->first); !done) return done;
  return {};
}

void StraceProcesses::add_unknown(std::int32_t tid) {
  Thread thread;
  thread.tid = thread.pid = tid;
  thread.process = writer_.add_process(std::string(unknown_host), tid);
  thread.descriptors = std::make_shared<Descriptors>();
  thread.directory = std::make_shared<std::string>();
  threads_.emplace(tid, std::move(thread));
}

Result<void> StraceProcesses::handle(std::int32_t tid, const StraceLine& line, const std::string& place) {
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
Result<void> StraceProcesses::add_begun(Thread& thread) {
  if (!thread.begun) return {};
  const Begun begun = *std::exchange(thread.begun, std::nullopt);
  const StraceRow* const row = strace_row(begun.name);
  if (row == nullptr || row->call == Call::none || !begun.file) return {};
  return add(thread, slot_of(row->call, begun.start, 0), *begun.file);
}

Result<void> StraceProcesses::take_ended(std::int32_t tid, std::string_view name, std::string_view rest,
                                         std::int64_t start, std::int64_t seen_end,
                                         const std::shared_ptr<OpenFile>& file, const std::string& place) {
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

Result<void> StraceProcesses::take_call(Thread& thread, const StraceRow& row, const Ended& ended, std::int64_t start,
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

Result<void> StraceProcesses::take_execute(Thread& thread, const StraceRow& row, const Ended& ended) {
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

Result<void> StraceProcesses::take_fork(Thread& parent, const Ended& ended) {
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

}  // namespace iosig::trace
