// Calls on paths.
#include "iosig/trace/import/strace_processes.h"

namespace iosig::trace {

/// Returns the path of a "name" argument relative to a directory argument ("": the working directory); nothing if
/// the argument is no path.
std::optional<std::string> StraceProcesses::path_in(Thread& thread, std::string_view directory, std::string_view name) {
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

Result<void> StraceProcesses::take_name(Thread& thread, const StraceRow& row, const Ended& ended, Slot& slot) {
  using enum StraceKind;
  const bool is_at = row.kind == path_at || row.kind == status_at || row.kind == unlink_at || row.kind == two_paths_at;
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

}  // namespace iosig::trace
