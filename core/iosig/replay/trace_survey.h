// Follows the files of a trace by their names: which exist beforehand and how large they are, which have which names at
// the end, and which operation of one stream must precede one of another. Part of trace_plan.
//
// An operation follows those that ended before it began in the trace: an open follows the writes to the file by other
// streams; what removes, renames or empties a file also follows their reads; a use of a name follows what changed it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/replay/file_key.h"
#include "iosig/replay/trace_barriers.h"
#include "iosig/replay/trace_plan.h"

namespace iosig {

class TraceSurvey {
 public:
  TraceSurvey(const TracePlanOptions& options, std::span<const trace::CollectiveCall> collectives, TracePlan& plan)
      : options_(options), plan_(plan), barriers_(collectives, plan) {}
  /// Takes the next access, in the order of starts.
  void add(const trace::Access& access);
  /// Completes the plan's paths, groups, directories and final files.
  void finish();

 private:
  struct User {
    std::uint32_t stream = 0;
    std::uint64_t last_op = 0;
    std::int64_t last_end_ns = 0;
    bool has_written = false;
    std::uint32_t origin_path = UINT32_MAX, origin = 0;  ///< of its last write
  };
  struct Object {
    std::int64_t size = 0, initial_size = -1, written = 0, room = 0;
    std::int64_t least_initial_size = -1;   ///< whatever appends say
    std::int64_t least_append = INT64_MAX;  ///< the offset of the first byte that an append wrote
    bool may_be_initial = true;             ///< nothing has emptied it since the start
    bool is_file = false;
    bool is_known = true;
    std::uint32_t first_path = 0, names = 0;
    std::uint32_t last_appender = UINT32_MAX;
    std::vector<std::uint32_t> paths = {};
    std::vector<User> users = {};
    std::map<std::int64_t, OwnedRange> owners = {};
  };
  struct OpenFile {
    std::uint32_t object = 0, path = 0;
    int references = 1, flags = 0;
    std::vector<std::uint32_t> streams = {};  ///< that have used it
  };
  /// A completed operation.
  struct Event {
    std::uint32_t stream = UINT32_MAX;
    std::uint64_t op = 0;
    std::int64_t end_ns = 0;
  };
  /// The access that is being added.
  struct Current {
    const trace::Access* access = nullptr;
    std::uint32_t stream = 0, path = 0;
    std::uint64_t op = 0;
  };

  [[nodiscard]] std::uint32_t number_of(std::string_view path);
  [[nodiscard]] std::uint32_t stream_number(const trace::Access& access);
  [[nodiscard]] bool is_directory(std::uint32_t path) const;
  void note_left_out(const trace::Access& access);
  std::uint32_t object_named(std::uint32_t path, bool must_exist);
  void give_name(std::uint32_t path, std::uint32_t object);
  void take_name(std::uint32_t path);
  OpenFile& opened(const Current& now);
  User& user_of(Object& object, std::uint32_t stream);
  void follow_users(const Current& now, const Object& object, bool also_readers);
  /// Waits for the latest change of the name, and of the directories above it.
  void follow_name(const Current& now, std::uint32_t path);
  /// Waits for all that was done below a directory, before it is renamed or removed.
  void follow_below(const Current& now, std::uint32_t directory);
  void change_name(const Current& now, std::uint32_t path);
  void add_wait(const Current& now, const Event& other);
  void add_open(const Current& now);
  void add_close(const Current& now);
  void add_read(const Current& now);
  void add_write(const Current& now);
  void set_size(Object& object, std::int64_t size);
  void set_room(Object& object);
  void add_truncate(const Current& now);
  void add_rename(const Current& now, bool keeps_old);
  /// Whether both names are those of one file, as far as the trace tells.
  [[nodiscard]] bool names_same(std::uint32_t one, std::uint32_t other) const;
  /// Gives files and directories below a renamed one their new names. All directories that are new so are made by the
  /// rename.
  void move_directory(std::uint32_t from_path, std::uint32_t to_path);
  /// The number of a path below the root; a new one if the trace has not had it yet.
  [[nodiscard]] std::uint32_t path_named(const std::string& name);
  [[nodiscard]] std::uint32_t origin_of(User& user, std::uint32_t path);
  void own(Object& object, std::int64_t begin, std::int64_t end, std::uint32_t origin);
  std::uint32_t root_of(std::uint32_t path);
  void join(std::uint32_t one, std::uint32_t other);
  void name_paths();
  void list_finals();

  const TracePlanOptions& options_;
  TracePlan& plan_;
  TraceBarriers barriers_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;  ///< path numbers
  std::vector<std::string> full_names_;                        ///< of paths
  std::vector<std::uint32_t> joined_;                          ///< of paths: another of the group, or itself
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> origins_;  ///< by stream and path
  std::vector<Object> objects_;
  std::map<std::string, std::uint32_t, std::less<>> named_;  ///< objects
  std::unordered_map<FileKey, OpenFile, FileKeyHash> open_;
  std::unordered_map<std::uint32_t, Event> changes_;  ///< latest change of a name, by path
  std::set<std::string, std::less<>> links_;          ///< names that symlink(2) gave
  std::set<std::uint32_t> made_directories_, removed_directories_;
  std::vector<std::uint64_t> ops_;  ///< of each stream
  std::uint64_t waits_ = 0, ranges_ = 0;
  __int128_t room_ = 0, peak_room_ = 0;  ///< of up to 2^32 files of 2^63 bytes
};

}  // namespace iosig
