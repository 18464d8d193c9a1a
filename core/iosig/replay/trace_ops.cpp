#include "iosig/replay/trace_ops.h"

#include <fcntl.h>

#include <algorithm>

namespace iosig {

using trace::Call;
using trace::CallKind;

namespace {

/// The C library opens a stream's file by a call of its own, which is not in the layer posix.
bool opens_stream(Call call) { return call_kind_of(call) == CallKind::open && layer_of(call) == trace::Layer::stdio; }

}  // namespace

bool is_asynchronous(Call call) {
  return call_kind_of(call) == CallKind::begin_read || call_kind_of(call) == CallKind::begin_write;
}

bool uses_position(Call call) {
  return trace::call_manner_of(call) == trace::CallManner::at_file_offset || call == Call::sendfile ||
         call == Call::splice;
}

std::int64_t moved_bytes(const trace::Access& access) {
  return is_asynchronous(access.call) ? access.length : access.result;
}

std::int64_t byte_sum(__int128_t one, __int128_t other) {
  return static_cast<std::int64_t>(std::min<__int128_t>(one + other, INT64_MAX));
}

ReplayOp replay_op_of(const trace::Access& access, trace::Layer layer) {
  if (access.is_in_flight || access.result < 0) return ReplayOp::none;
  if (layer_of(access.call) != layer && !(layer == trace::Layer::posix && opens_stream(access.call)))
    return ReplayOp::none;
  const bool has_range =
      access.offset >= 0 && moved_bytes(access) >= 0 && moved_bytes(access) <= INT64_MAX - access.offset;
  switch (call_kind_of(access.call)) {
    case CallKind::read:
    case CallKind::begin_read: return has_range ? ReplayOp::read : ReplayOp::none;
    case CallKind::write:
    case CallKind::begin_write: return has_range ? ReplayOp::write : ReplayOp::none;
    case CallKind::open: {
      if (layer_of(access.call) == trace::Layer::mpi_io) return ReplayOp::none;
      // A directory, or no file that can be read: nothing of it is replayed. A nameless file has no name to replay.
      const auto flags = static_cast<int>(access.length);
      const bool is_other = (flags & (O_PATH | O_DIRECTORY)) != 0;  // O_TMPFILE has the bit of O_DIRECTORY
      return is_other ? ReplayOp::none : ReplayOp::open;
    }
    case CallKind::close: return layer_of(access.call) == trace::Layer::posix ? ReplayOp::close : ReplayOp::none;
    case CallKind::duplicate: return ReplayOp::follow;
    case CallKind::seek: return ReplayOp::seek;
    case CallKind::sync:
    case CallKind::begin_sync: return ReplayOp::sync;
    case CallKind::truncate: return access.length >= 0 ? ReplayOp::truncate : ReplayOp::none;
    case CallKind::allocate:
      return access.offset >= 0 && access.length > 0 && access.length <= INT64_MAX - access.offset ? ReplayOp::allocate
                                                                                                   : ReplayOp::none;
    case CallKind::rename: return access.second_path.empty() ? ReplayOp::none : ReplayOp::rename;
    case CallKind::link: return access.second_path.empty() ? ReplayOp::none : ReplayOp::link;
    case CallKind::unlink: return ReplayOp::unlink;
    case CallKind::make_directory: return ReplayOp::make_directory;
    case CallKind::remove_directory: return ReplayOp::remove_directory;
    default: break;
  }
  switch (access.call) {
    case Call::inherited: return ReplayOp::follow;
    case Call::fcntl:
      return access.length == F_DUPFD || access.length == F_DUPFD_CLOEXEC ? ReplayOp::follow : ReplayOp::none;
    case Call::sync_file_range: return ReplayOp::sync;
    default: return ReplayOp::none;
  }
}

StreamKind stream_kind_of(ReplayOp op) {
  switch (op) {
    case ReplayOp::read: return StreamKind::read;
    case ReplayOp::write: return StreamKind::write;
    case ReplayOp::sync: return StreamKind::sync;
    default: return StreamKind::other;
  }
}

}  // namespace iosig
