// Follows the processes of a program that strace has recorded: their threads, descriptors, working directories and the
// sizes of their files, and makes the calls of a trace of it. Part of strace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/import/import.h"
#include "iosig/trace/import/strace_calls.h"
#include "iosig/trace/import/strace_line.h"
#include "iosig/trace/import/trace_writer.h"

namespace iosig::trace {

class StraceProcesses {
 public:
  StraceProcesses(TraceWriter& writer, ImportNotes& notes) : writer_(writer), notes_(notes) {}
  /// Takes the next line of all, in the order of times. `place`: for messages.
  Result<void> take(std::int32_t tid, const StraceLine& line, const std::string& place);
  /// Adds calls that had not ended, and remarks.
  Result<void> finish();

 private:
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

  // Lines and threads: strace_processes.cpp.
  void keep(std::int32_t tid, const StraceLine& line, const std::string& place);
  Result<void> release(std::int32_t tid);
  Result<void> release_waiting();
  void add_unknown(std::int32_t tid);
  Result<void> handle(std::int32_t tid, const StraceLine& line, const std::string& place);
  Result<void> add_begun(Thread& thread);
  Result<void> take_ended(std::int32_t tid, std::string_view name, std::string_view rest, std::int64_t start,
                          std::int64_t seen_end, const std::shared_ptr<OpenFile>& file, const std::string& place);
  Result<void> take_call(Thread& thread, const StraceRow& row, const Ended& ended, std::int64_t start,
                         std::int64_t end);
  Result<void> take_execute(Thread& thread, const StraceRow& row, const Ended& ended);
  Result<void> take_fork(Thread& parent, const Ended& ended);

  // Calls on descriptors: strace_files.cpp.
  Result<void> take_open(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot);
  Result<void> take_descriptor(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot);
  Result<void> take_copy(Thread& thread, const Ended& ended, Slot& slot, std::size_t to, std::size_t to_offset,
                         std::size_t from, std::size_t from_offset);
  static Result<void> take_close_range(Thread& thread, const Ended& ended);
  static void duplicate(Thread& thread, const Ended& ended, const Slot& slot, const std::shared_ptr<OpenFile>& file,
                        std::optional<std::int64_t> command);
  static void set_flags(Thread& thread, const Ended& ended, std::int32_t fd, OpenFile& file,
                        std::optional<std::int64_t> command);
  static Slot slot_of(Call call, std::int64_t start, std::int64_t end);
  std::shared_ptr<OpenFile> file_of(Thread& thread, const StraceDescriptor& fd);
  std::shared_ptr<OpenFile> file_in(Thread& thread, const Ended& ended, std::size_t n, Slot& slot);
  Result<void> add(Thread& thread, Slot slot, const OpenFile& file);
  Result<void> add(Thread& thread, const Slot& slot, std::string_view path, std::string_view second = {});
  Result<void> leave_out_unknown();
  static std::int64_t end_of(std::int64_t offset, std::int64_t result);
  std::int64_t moved(OpenFile& file, Call call, std::int64_t result);
  void written(const OpenFile& file, std::int64_t offset, std::int64_t result);
  void told_size(std::string_view path, std::string_view status);
  static std::int64_t bytes_of_pieces(std::string_view text);

  // Calls on paths: strace_names.cpp.
  Result<void> take_name(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot);
  std::optional<std::string> path_in(Thread& thread, std::string_view directory, std::string_view name);

  TraceWriter& writer_;
  ImportNotes& notes_;
  std::map<std::int32_t, Thread> threads_;
  std::map<std::int32_t, std::int32_t> parents_;
  std::set<std::int32_t> forking_;  ///< threads within fork or clone
  std::map<std::int32_t, std::vector<std::unique_ptr<Waiting>>> waiting_;
  std::size_t waiting_count_ = 0;
  int generations_ = 0;                                  ///< children of children whose lines are being released
  std::unordered_map<std::string, std::int64_t> sizes_;  ///< of files, by path, where a call told
  std::shared_ptr<OpenFile> begun_file_;                 ///< of the call that is being taken, if it had two lines
  std::uint32_t last_file_ = 0;
  std::uint64_t relative_paths_ = 0, without_duration_ = 0;
  std::uint64_t others_ = 0;   ///< calls that have nothing to do with files
  std::uint64_t derived_ = 0;  ///< offsets
};

}  // namespace iosig::trace
