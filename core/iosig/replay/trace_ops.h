// Which calls of a trace a replay performs: those that move bytes of files, or change files and their names.
#pragma once

#include <cstdint>
#include <string_view>

#include "iosig/trace/trace.h"

namespace iosig {

enum class ReplayOp : std::uint8_t {
  none,    ///< not replayed
  follow,  ///< says which open file a descriptor is: dup, inherited
  open,
  close,
  read,
  write,
  seek,
  sync,
  truncate,
  allocate,
  rename,
  link,
  unlink,
  make_directory,
  remove_directory,
};

/// How the operations of a file are grouped in results.
enum class StreamKind : std::uint8_t { read, write, sync, other };
inline constexpr std::string_view stream_kind_names[] = {"read", "write", "sync", "other"};
inline constexpr std::size_t stream_kinds = std::size(stream_kind_names);

/// Returns how the access is replayed; `none` also if it failed, had not returned, or is of another layer.
/// fopen(3) and freopen(3) belong to the layer posix, too.
[[nodiscard]] ReplayOp replay_op_of(const trace::Access& access, trace::Layer layer);
[[nodiscard]] StreamKind stream_kind_of(ReplayOp op);
/// Whether the operation is performed, and counts.
[[nodiscard]] inline bool is_performed(ReplayOp op) { return op > ReplayOp::follow; }
/// Whether the operation is on a name, not on a descriptor.
[[nodiscard]] inline bool is_by_name(ReplayOp op) { return op >= ReplayOp::rename; }
/// Bytes that the access moved: those that were asked for, if it is asynchronous and had no result yet.
[[nodiscard]] std::int64_t moved_bytes(const trace::Access& access);
/// A sum of bytes >= 0; INT64_MAX if it is greater, as that of several sparse files may be.
[[nodiscard]] std::int64_t byte_sum(__int128_t one, __int128_t other);
/// Whether the call uses the file offset of the descriptor; sendfile(2) and splice(2) do so of the file they write.
[[nodiscard]] bool uses_position(trace::Call call);
/// Whether the access only began: aio_read(3) and the like. Its duration is not that of the transfer.
[[nodiscard]] bool is_asynchronous(trace::Call call);

}  // namespace iosig
