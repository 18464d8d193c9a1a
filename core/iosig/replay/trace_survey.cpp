#include "iosig/replay/trace_survey.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "iosig/base/text.h"
#include "iosig/replay/target_tree.h"

namespace iosig {
namespace {

using trace::Access;
using trace::Call;

constexpr std::uint64_t max_waits = 4'000'000, max_ranges = 4'000'000;
constexpr std::uint32_t no_path = UINT32_MAX;

bool may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0; }

std::string_view directory_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
}

/// Returns the directory that both are below, "" for the root.
std::string_view common_directory(std::string_view one, std::string_view other) {
  while (!one.empty() && !is_below(other, one)) one = directory_of(one);
  return one;
}

}  // namespace

std::uint32_t TraceSurvey::number_of(std::string_view path) {
  if (const auto known = plan_.numbers.find(path); known != plan_.numbers.end()) return known->second;
  std::uint32_t number = no_path;
  // The kernel's name for a file that has none any more.
  const bool is_named = !path.empty() && !path.ends_with(" (deleted)");
  const std::string name = contained_name(path), absolute = "/" + name;
  if (is_named && (options_.files.empty() || trace::matches_file(options_.files, absolute)) &&
      (!options_.is_wanted || options_.is_wanted(absolute))) {
    const auto [known, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(plan_.paths.size()));
    if (is_new) {
      plan_.paths.push_back({.path = std::string(path)});
      full_names_.push_back(known->first);
      joined_.push_back(known->second);
    }
    number = known->second;
  } else if (is_named) {
    ++plan_.left_out_files;
  }
  plan_.numbers.emplace(path, number);
  return number;
}

std::uint32_t TraceSurvey::stream_number(const Access& access) {
  if (const std::uint32_t known = plan_.stream_of(access.process, access.tid); known != UINT32_MAX) return known;
  const auto number = static_cast<std::uint32_t>(plan_.streams.size());
  plan_.streams.push_back({.process = access.process, .tid = access.tid});
  plan_.threads[access.process].emplace_back(access.tid, number);
  ops_.push_back(0);
  return number;
}

void TraceSurvey::note_left_out(const Access& access) {
  if (layer_of(access.call) != plan_.layer || number_of(access.path) == no_path) return;
  if (access.call == Call::mmap && access.result >= 0) ++plan_.mapped;
  if (access.call == Call::symlink && access.result >= 0) links_.insert(contained_name(access.path));
  if (access.is_in_flight || access.result < 0)
    ++plan_.failed;
  else if (const auto known = plan_.left_out.find(name_of(access.call)); known != plan_.left_out.end())
    ++known->second;
  else
    plan_.left_out.emplace(name_of(access.call), 1);
}

void TraceSurvey::add(const Access& access) {
  const ReplayOp op = replay_op_of(access, plan_.layer);
  if (op == ReplayOp::none) return note_left_out(access);
  if (op == ReplayOp::unlink && links_.erase(contained_name(access.path)) > 0) {
    const std::uint32_t link = number_of(access.path);
    if (link == no_path) return;
    plan_.paths[link].was_link = true;
    ++ops_[stream_number(access)];
    return;
  }
  if (access.path.empty() && (op == ReplayOp::read || op == ReplayOp::write)) ++plan_.unnamed;
  const std::uint32_t path = number_of(access.path);
  if (path == no_path) return;
  Current now{.access = &access, .stream = stream_number(access), .path = path};
  now.op = ops_[now.stream]++;
  barriers_.add(now.stream, now.op, access);
  if (is_asynchronous(access.call)) ++plan_.asynchronous;
  switch (op) {
    case ReplayOp::open: return add_open(now);
    case ReplayOp::close: return add_close(now);
    case ReplayOp::read: return add_read(now);
    case ReplayOp::write: return add_write(now);
    case ReplayOp::truncate: return add_truncate(now);
    case ReplayOp::allocate: {
      Object& object = objects_[opened(now).object];
      set_size(object, std::max(object.size, access.offset + access.length));
      object.written = byte_sum(object.written, access.length);
      return set_room(object);
    }
    case ReplayOp::rename: return add_rename(now, false);
    case ReplayOp::link: return add_rename(now, true);
    case ReplayOp::unlink: {
      if (is_directory(path)) {  // by unlinkat(2), which the trace does not tell apart
        follow_name(now, path);
        follow_below(now, path);
        removed_directories_.insert(path);
        return change_name(now, path);
      }
      const std::uint32_t object = object_named(path, true);
      objects_[object].is_file = true;
      follow_name(now, path);
      follow_users(now, objects_[object], true);
      take_name(path);
      return change_name(now, path);
    }
    case ReplayOp::make_directory:
      follow_name(now, path);
      if (!removed_directories_.contains(path)) made_directories_.insert(path);
      return change_name(now, path);
    case ReplayOp::remove_directory:
      follow_name(now, path);
      follow_below(now, path);
      removed_directories_.insert(path);
      return change_name(now, path);
    case ReplayOp::follow:
      if (access.call != Call::inherited) ++opened(now).references;
      return;
    default: (void)opened(now); return;
  }
}

bool TraceSurvey::is_directory(std::uint32_t path) const {
  const std::string below = full_names_[path] + "/";
  const auto first = by_name_.lower_bound(below);
  return made_directories_.contains(path) || (first != by_name_.end() && first->first.starts_with(below));
}

// ---- names ----------------------------------------------------------------------------------------------------------

/// Returns the file that has this name; a file that was there before if the trace has not made it.
std::uint32_t TraceSurvey::object_named(std::uint32_t path, bool must_exist) {
  if (const auto known = named_.find(full_names_[path]); known != named_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(objects_.size());
  const std::int64_t initial_size = must_exist ? 0 : -1;
  objects_.push_back({.initial_size = initial_size, .least_initial_size = initial_size, .first_path = path});
  give_name(path, number);
  return number;
}

void TraceSurvey::give_name(std::uint32_t path, std::uint32_t object) {
  take_name(path);
  named_[full_names_[path]] = object;
  ++objects_[object].names;
  auto& paths = objects_[object].paths;
  if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
}

void TraceSurvey::take_name(std::uint32_t path) {
  const auto named = named_.find(full_names_[path]);
  if (named == named_.end()) return;
  Object& object = objects_[named->second];
  named_.erase(named);
  if (--object.names == 0) {
    room_ -= object.room;
    object.room = 0;
  }
}

std::uint32_t TraceSurvey::root_of(std::uint32_t path) {
  while (joined_[path] != path) path = joined_[path] = joined_[joined_[path]];
  return path;
}

void TraceSurvey::join(std::uint32_t one, std::uint32_t other) { joined_[root_of(one)] = root_of(other); }

void TraceSurvey::add_rename(const Current& now, bool keeps_old) {
  const std::uint32_t to = number_of(now.access->second_path);
  if (to == no_path) return;
  follow_name(now, now.path);
  follow_name(now, to);
  if (names_same(now.path, to)) {  // rename(2) does nothing
  } else if (is_directory(now.path)) {
    follow_below(now, now.path);
    follow_below(now, to);
    move_directory(now.path, to);
    made_directories_.insert(to);
  } else {
    const std::uint32_t object = object_named(now.path, true);
    follow_users(now, objects_[object], true);
    if (const auto replaced = named_.find(full_names_[to]); replaced != named_.end())
      follow_users(now, objects_[replaced->second], true);
    give_name(to, object);
    if (!keeps_old) take_name(now.path);
    join(now.path, to);
  }
  change_name(now, now.path);
  change_name(now, to);
}

bool TraceSurvey::names_same(std::uint32_t one, std::uint32_t other) const {
  if (one == other) return true;
  const auto first = named_.find(full_names_[one]), second = named_.find(full_names_[other]);
  return first != named_.end() && second != named_.end() && first->second == second->second;
}

std::uint32_t TraceSurvey::path_named(const std::string& name) {
  const auto [known, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(plan_.paths.size()));
  if (is_new) {
    plan_.paths.push_back({.path = "/" + name});
    full_names_.push_back(name);
    joined_.push_back(known->second);
  }
  return known->second;
}

void TraceSurvey::move_directory(std::uint32_t from_path, std::uint32_t to_path) {
  const std::string from = full_names_[from_path], to = full_names_[to_path];  // path_named() moves them
  const std::string below = from + "/";
  std::vector<std::string> moved;
  for (auto at = by_name_.lower_bound(below); at != by_name_.end() && at->first.starts_with(below); ++at)
    if (named_.contains(at->first) || made_directories_.contains(at->second)) moved.push_back(at->first);
  for (const std::string& name : moved) {
    const std::string new_name = to + name.substr(from.size());
    const std::uint32_t old_path = by_name_.at(name), path = path_named(new_name);
    for (std::string_view above = directory_of(new_name); above.size() > to.size(); above = directory_of(above))
      made_directories_.insert(path_named(std::string(above)));
    if (made_directories_.contains(old_path)) made_directories_.insert(path);
    const auto named = named_.find(name);
    if (named == named_.end()) continue;
    const std::uint32_t object = named->second;
    join(old_path, path);
    give_name(path, object);
    take_name(old_path);
  }
}

// ---- the order of streams -------------------------------------------------------------------------------------------

void TraceSurvey::add_wait(const Current& now, const Event& other) {
  if (other.stream == UINT32_MAX || other.stream == now.stream || other.end_ns > now.access->start_ns) return;
  if (waits_ == max_waits) {
    plan_.lacks_waits = true;
    return;
  }
  auto& waits = plan_.streams[now.stream].waits;
  for (auto at = waits.rbegin(); at != waits.rend() && at->op == now.op; ++at)
    if (at->other_stream == other.stream) {
      at->other_op = std::max(at->other_op, other.op);
      return;
    }
  waits.push_back({.op = now.op, .other_stream = other.stream, .other_op = other.op});
  ++waits_;
}

void TraceSurvey::follow_users(const Current& now, const Object& object, bool also_readers) {
  for (const User& user : object.users)
    if (also_readers || user.has_written)
      add_wait(now, {.stream = user.stream, .op = user.last_op, .end_ns = user.last_end_ns});
}

void TraceSurvey::follow_name(const Current& now, std::uint32_t path) {
  for (std::string_view name = full_names_[path]; !name.empty(); name = directory_of(name))
    if (const auto known = by_name_.find(name); known != by_name_.end())
      if (const auto change = changes_.find(known->second); change != changes_.end()) add_wait(now, change->second);
}

void TraceSurvey::follow_below(const Current& now, std::uint32_t directory) {
  const std::string below = full_names_[directory] + "/";
  for (auto at = by_name_.lower_bound(below); at != by_name_.end() && at->first.starts_with(below); ++at) {
    if (const auto change = changes_.find(at->second); change != changes_.end()) add_wait(now, change->second);
    if (const auto named = named_.find(at->first); named != named_.end())
      follow_users(now, objects_[named->second], true);
  }
}

void TraceSurvey::change_name(const Current& now, std::uint32_t path) {
  changes_[path] = {.stream = now.stream, .op = now.op, .end_ns = now.access->end_ns};
}

TraceSurvey::User& TraceSurvey::user_of(Object& object, std::uint32_t stream) {
  const auto known = std::ranges::find(object.users, stream, &User::stream);
  return known != object.users.end() ? *known : object.users.emplace_back(User{.stream = stream});
}

// ---- open files -----------------------------------------------------------------------------------------------------

void TraceSurvey::add_open(const Current& now) {
  const auto flags = static_cast<int>(now.access->length);
  const bool creates = (flags & O_CREAT) != 0, empties = (flags & O_TRUNC) != 0;
  const bool is_new = !named_.contains(full_names_[now.path]);
  const std::uint32_t number = object_named(now.path, !creates);
  Object& object = objects_[number];
  follow_name(now, now.path);
  follow_users(now, object, empties);
  object.is_file = object.is_file || may_write(flags);
  if (empties || (creates && (flags & O_EXCL) != 0)) {
    set_size(object, 0);
    object.may_be_initial = false;
  }
  if (is_new && creates) change_name(now, now.path);
  OpenFile& file = open_[{now.access->process, now.access->file}];
  file = {.object = number, .path = now.path, .flags = flags, .streams = {now.stream}};
  User& user = user_of(object, now.stream);
  user.last_op = now.op;
  user.last_end_ns = now.access->end_ns;
  user.has_written = user.has_written || empties;
}

/// Returns the open file of an access through a descriptor; one that was opened elsewhere is opened by its name. Notes
/// that the stream uses the file.
TraceSurvey::OpenFile& TraceSurvey::opened(const Current& now) {
  // A call without an open file has a path alone.
  const FileKey key{now.access->process, now.access->file != 0 ? now.access->file : now.path | 0x80000000u};
  auto known = open_.find(key);
  if (known == open_.end()) {
    const std::uint32_t object = object_named(now.path, false);
    known = open_.emplace(key, OpenFile{.object = object, .path = now.path}).first;
  }
  OpenFile& file = known->second;
  Object& object = objects_[file.object];
  if (std::ranges::find(file.streams, now.stream) == file.streams.end()) {
    file.streams.push_back(now.stream);
    follow_name(now, file.path);
    follow_users(now, object, false);
  }
  User& user = user_of(object, now.stream);
  user.last_op = now.op;
  user.last_end_ns = std::max(user.last_end_ns, now.access->end_ns);
  return file;
}

void TraceSurvey::add_close(const Current& now) {
  const auto file = open_.find({now.access->process, now.access->file});
  if (file == open_.end()) return;
  (void)opened(now);
  if (--file->second.references <= 0) open_.erase(file);
}

// ---- bytes ----------------------------------------------------------------------------------------------------------

void TraceSurvey::set_size(Object& object, std::int64_t size) {
  if (size < object.size && options_.keeps_owners) {
    ranges_ -= static_cast<std::uint64_t>(std::distance(object.owners.lower_bound(size), object.owners.end()));
    object.owners.erase(object.owners.lower_bound(size), object.owners.end());
    if (!object.owners.empty()) {
      auto& last = object.owners.rbegin()->second;
      last.end = std::min(last.end, size);
    }
  }
  if (size == 0) object.written = 0;
  object.size = size;
  set_room(object);
}

/// Counts the bytes that the file occupies: at most its size, and at most the bytes written.
void TraceSurvey::set_room(Object& object) {
  if (object.names == 0) return;
  const std::int64_t room = std::min(object.size, object.written);
  room_ += room - object.room;
  object.room = room;
  peak_room_ = std::max(peak_room_, room_);
}

void TraceSurvey::add_read(const Current& now) {
  Object& object = objects_[opened(now).object];
  object.is_file = true;
  const std::int64_t end = now.access->offset + moved_bytes(*now.access);
  if (moved_bytes(*now.access) == 0) {
    if (object.may_be_initial && object.size == 0 && object.initial_size < 0)
      object.initial_size = object.least_initial_size = 0;
  } else if (end > object.size && object.may_be_initial) {
    object.initial_size = object.least_initial_size = std::max(object.initial_size, end);
    object.size = end;
  }
}

void TraceSurvey::add_write(const Current& now) {
  const OpenFile& file = opened(now);
  Object& object = objects_[file.object];
  object.is_file = true;
  const std::int64_t length = moved_bytes(*now.access);
  std::int64_t begin = now.access->offset;
  User& user = user_of(object, now.stream);
  user.has_written = true;
  if ((file.flags & O_APPEND) != 0 && !uses_position(now.access->call)) {  // Linux appends: pwrite(2), "Bugs"
    begin = std::min(object.size, INT64_MAX - length);
    object.is_known = false;  // the replay makes its bytes for the offset
  }
  if ((file.flags & O_APPEND) != 0) {
    if (begin > object.size && object.may_be_initial) object.initial_size = object.size = begin;
    // Appends may overtake each other: what is behind the first append is not of before, even if the append that wrote
    // it began later.
    object.least_append = std::min(object.least_append, begin);
    if (object.least_append < object.initial_size)
      object.initial_size = std::max(object.least_append > 0 ? object.least_append : -1, object.least_initial_size);
    if (object.last_appender != UINT32_MAX && object.last_appender != now.stream) object.is_known = false;
    object.last_appender = now.stream;
  }
  if (length == 0) return;
  object.written = byte_sum(object.written, length);
  set_size(object, std::max(object.size, begin + length));
  own(object, begin, begin + length, origin_of(user, file.path));
}

std::uint32_t TraceSurvey::origin_of(User& user, std::uint32_t path) {
  if (user.origin_path == path) return user.origin;
  const auto [known, is_new] =
      origins_.try_emplace({user.stream, path}, static_cast<std::uint32_t>(plan_.origins.size()));
  if (is_new) plan_.origins.push_back(trace_origin(user.stream, path));
  user.origin_path = path;
  user.origin = known->second;
  return user.origin;
}

/// Makes the range the origin's; where another stream's was, it becomes anybody's.
void TraceSurvey::own(Object& object, std::int64_t begin, std::int64_t end, std::uint32_t origin) {
  if (!options_.keeps_owners || !object.is_known) return;
  auto& owners = object.owners;
  auto at = owners.upper_bound(begin);
  if (at != owners.begin()) --at;
  // Programs mostly append to what they wrote.
  if (at != owners.end() && at->second.origin == origin && at->first <= begin && at->second.end >= begin &&
      (std::next(at) == owners.end() || std::next(at)->first >= end)) {
    at->second.end = std::max(at->second.end, end);
    return;
  }
  if (ranges_ >= max_ranges) {
    object.is_known = false;
    ranges_ -= owners.size();
    owners.clear();
    return;
  }
  const std::size_t before = owners.size();
  std::vector<std::pair<std::int64_t, OwnedRange>> pieces;
  std::int64_t from = begin;  // the bytes before it are in `pieces`
  while (at != owners.end() && at->second.end <= begin) ++at;
  while (at != owners.end() && at->first < end) {
    const std::int64_t start = at->first;
    const OwnedRange range = at->second;
    at = owners.erase(at);
    if (start < begin) pieces.emplace_back(start, OwnedRange{begin, range.origin});
    if (start > from) pieces.emplace_back(from, OwnedRange{start, origin});
    const std::int64_t until = std::min(range.end, end);
    pieces.emplace_back(std::max(start, begin), OwnedRange{until, range.origin == origin ? origin : shared_origin});
    if (range.end > end) pieces.emplace_back(end, OwnedRange{range.end, range.origin});
    from = until;
  }
  if (from < end) pieces.emplace_back(from, OwnedRange{end, origin});
  for (const auto& [start, range] : pieces) owners[start] = range;
  ranges_ += owners.size() - before;
}

void TraceSurvey::add_truncate(const Current& now) {
  const bool is_by_name = now.access->file == 0;
  if (is_by_name) {
    (void)object_named(now.path, true);
    follow_name(now, now.path);
  }
  Object& object = objects_[is_by_name ? object_named(now.path, true) : opened(now).object];
  follow_users(now, object, true);
  object.is_file = true;
  if (now.access->length == 0) object.may_be_initial = false;
  object.least_initial_size = object.initial_size;
  set_size(object, now.access->length);
  User& user = user_of(object, now.stream);
  user.last_op = now.op;
  user.last_end_ns = std::max(user.last_end_ns, now.access->end_ns);
  user.has_written = true;
}

// ---- the plan -------------------------------------------------------------------------------------------------------

void TraceSurvey::finish() {
  barriers_.finish();
  if (plan_.origins.empty()) plan_.origins.push_back({});
  name_paths();
  std::map<std::uint32_t, std::uint32_t> groups;
  for (std::uint32_t path = 0; path < plan_.paths.size(); ++path) {
    const auto [known, is_new] = groups.try_emplace(root_of(path), static_cast<std::uint32_t>(plan_.groups.size()));
    if (is_new) plan_.groups.emplace_back();
    plan_.paths[path].group = known->second;
  }
  for (const auto& [of, number] : origins_)
    plan_.groups[plan_.paths[of.second].group].origins.push_back(plan_.origins[number]);
  for (const Object& object : objects_) {
    PlannedPath& path = plan_.paths[object.first_path];
    if (!object.is_known) plan_.groups[path.group].is_checked = false;
    if (path.name.empty() || object.initial_size < 0) continue;
    if (path.initial_size < 0) ++plan_.initial_files;
    path.initial_size = std::max(path.initial_size, object.initial_size);
  }
  for (std::uint32_t number = 0; number < plan_.paths.size(); ++number) {
    const PlannedPath& path = plan_.paths[number];
    if (path.initial_size < 0) continue;
    plan_.initial_bytes = byte_sum(plan_.initial_bytes, path.initial_size);
    if (path.initial_size > 0) plan_.groups[path.group].origins.push_back(initial_origin(number));
  }
  plan_.room_bytes = byte_sum(plan_.initial_bytes, peak_room_);
  list_finals();
}

/// Gives files, and the directories in which they are, names below the target.
void TraceSurvey::name_paths() {
  std::vector<bool> is_file(plan_.paths.size());
  for (const Object& object : objects_)
    if (object.is_file)
      for (const std::uint32_t path : object.paths) is_file[path] = true;
  const auto is_only_directory = [&](std::uint32_t path) {
    return !is_file[path] && (made_directories_.contains(path) || removed_directories_.contains(path));
  };
  std::set<std::string, std::less<>> directories;
  const auto add_directories = [&](std::string_view name) {
    for (; !name.empty(); name = directory_of(name))
      if (!directories.emplace(name).second) break;
  };
  std::optional<std::string> common;
  const auto add_to_common = [&](std::string_view parent) {
    common = common ? std::string(common_directory(*common, parent)) : std::string(parent);
  };
  for (std::uint32_t path = 0; path < plan_.paths.size(); ++path) {
    if (!is_file[path]) continue;
    add_to_common(directory_of(full_names_[path]));
    add_directories(directory_of(full_names_[path]));
  }
  if (!common)
    for (std::uint32_t path = 0; path < plan_.paths.size(); ++path)
      if (is_only_directory(path)) add_to_common(directory_of(full_names_[path]));
  const std::size_t cut = !common || common->empty() ? 0 : common->size() + 1;
  plan_.common = "/" + common.value_or("");
  const auto is_in = [&](std::string_view name) { return name.size() > cut && (cut == 0 || is_below(name, *common)); };
  for (std::uint32_t path = 0; path < plan_.paths.size(); ++path)
    if (is_only_directory(path) && is_in(full_names_[path])) add_directories(full_names_[path]);
  for (std::uint32_t path = 0; path < plan_.paths.size(); ++path) {
    const std::string& name = full_names_[path];
    PlannedPath& planned = plan_.paths[path];
    planned.is_directory = directories.contains(name) || is_only_directory(path);
    if ((!is_file[path] && !planned.is_directory) || !is_in(name)) continue;
    planned.name = name.substr(cut);
    if (!planned.is_directory) ++plan_.files;
  }
  std::set<std::string> initial;
  for (const std::string& name : directories) {
    if (!is_in(name)) continue;
    plan_.directories.push_back(name.substr(cut));
    const auto path = by_name_.find(name);
    if (path != by_name_.end() && made_directories_.contains(path->second)) continue;
    for (std::string_view above = name; is_in(above); above = directory_of(above))  // also one that was made again
      initial.emplace(above.substr(cut));
  }
  plan_.initial_directories.assign(initial.begin(), initial.end());
}

void TraceSurvey::list_finals() {
  for (const auto& [name, number] : named_) {
    Object& object = objects_[number];
    const std::uint32_t path = by_name_.at(name);
    if (!object.is_file || plan_.paths[path].name.empty() || plan_.paths[path].is_directory) continue;
    plan_.finals.push_back({.path = path,
                            .size = std::max<std::int64_t>(object.size, 0),
                            .owners = object.owners,
                            .is_known = object.is_known});
  }
}

}  // namespace iosig
