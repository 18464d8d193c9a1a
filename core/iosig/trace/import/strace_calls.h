// System calls as strace names them, and how each is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "iosig/trace/calls.h"

namespace iosig::trace {

enum class StraceKind : std::uint8_t {
  open,                 ///< path, flags
  open_at,              ///< directory, path, flags
  close,                ///< fd
  close_range,          ///< first, last, flags
  at_file_offset,       ///< fd, bytes, count
  pieces,               ///< fd, pieces, count
  at_offset,            ///< fd, bytes, count, offset
  pieces_at_offset,     ///< fd, pieces, count, offset
  seek,                 ///< fd, offset, whence
  descriptor,           ///< fd
  range,                ///< fd, offset, length
  size,                 ///< fd, size
  fallocate,            ///< fd, mode, offset, length
  status,               ///< fd, status
  duplicate,            ///< fd, maybe the new one, maybe flags
  fcntl,                ///< fd, command, argument
  map,                  ///< address, length, protection, flags, fd, offset
  send,                 ///< to, from, offset of from, count
  copy,                 ///< from, offset, to, offset, count
  by_path,              ///< path
  path_size,            ///< path, size
  path_at,              ///< directory, path
  status_at,            ///< directory, path, status, flags
  unlink_at,            ///< directory, path, flags
  two_paths,            ///< path, path
  two_paths_at,         ///< directory, path, directory, path
  new_link,             ///< target, path
  new_link_at,          ///< target, directory, path
  change_directory,     ///< path
  change_directory_to,  ///< fd
  get_directory,        ///< bytes
  execute,              ///< path, arguments
  execute_at,           ///< directory, path, arguments
  fork,
};

struct StraceRow {
  std::string_view name;
  StraceKind kind;
  Call call;
};

/// Null: a call that has nothing to do with files.
[[nodiscard]] const StraceRow* strace_row(std::string_view name);

/// "O_RDWR|O_CREAT" as a number; nothing if a name is not known.
[[nodiscard]] std::optional<std::int64_t> strace_open_flags(std::string_view text);
/// SEEK_... as a number.
[[nodiscard]] std::optional<std::int64_t> strace_whence(std::string_view text);
/// F_... as a number.
[[nodiscard]] std::optional<std::int64_t> strace_fcntl_command(std::string_view text);

}  // namespace iosig::trace
