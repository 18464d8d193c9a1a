#include "iosig/replay/trace_ops.h"

#include <fcntl.h>

namespace iosig {

using trace::Call;
using trace::Moves;

namespace {

/// The C library opens a stream's file by a call of its own, which is not in the layer posix.
bool opens_stream(Call call) { return call == Call::fopen || call == Call::freopen; }

}  // namespace

bool is_asynchronous(Call call) { return call == Call::aio_read || call == Call::aio_write; }

std::int64_t moved_bytes(const trace::Access& access) {
  return is_asynchronous(access.call) ? access.length : access.result;
}

ReplayOp replay_op_of(const trace::Access& access, trace::Layer layer) {
  if (access.is_in_flight || access.result < 0) return ReplayOp::none;
  if (layer_of(access.call) != layer && !(layer == trace::Layer::posix && opens_stream(access.call)))
    return ReplayOp::none;
  const bool has_range =
      access.offset >= 0 && moved_bytes(access) >= 0 && moved_bytes(access) <= INT64_MAX - access.offset;
  switch (moves_of(access.call)) {
    case Moves::reads: return has_range ? ReplayOp::read : ReplayOp::none;
    case Moves::writes: return has_range ? ReplayOp::write : ReplayOp::none;
    case Moves::nothing: break;
  }
  switch (access.call) {
    case Call::fopen:
    case Call::freopen:
    case Call::open: {
      // A directory, or no file that can be read: nothing of it is replayed. A nameless file has no name to replay.
      const auto flags = static_cast<int>(access.length);
      const bool is_other = (flags & (O_PATH | O_DIRECTORY)) != 0;  // O_TMPFILE has the bit of O_DIRECTORY
      return is_other ? ReplayOp::none : ReplayOp::open;
    }
    case Call::close: return ReplayOp::close;
    case Call::dup:
    case Call::inherited: return ReplayOp::follow;
    case Call::fcntl:
      return access.length == F_DUPFD || access.length == F_DUPFD_CLOEXEC ? ReplayOp::follow : ReplayOp::none;
    case Call::lseek: return ReplayOp::seek;
    case Call::aio_read: return has_range ? ReplayOp::read : ReplayOp::none;
    case Call::aio_write: return has_range ? ReplayOp::write : ReplayOp::none;
    case Call::fsync:
    case Call::fdatasync:
    case Call::sync_file_range:
    case Call::io_uring_fsync: return ReplayOp::sync;
    case Call::ftruncate:
    case Call::truncate: return access.length >= 0 ? ReplayOp::truncate : ReplayOp::none;
    case Call::fallocate:
    case Call::io_uring_fallocate:
      return access.offset >= 0 && access.length > 0 && access.length <= INT64_MAX - access.offset ? ReplayOp::allocate
                                                                                                   : ReplayOp::none;
    case Call::rename: return access.second_path.empty() ? ReplayOp::none : ReplayOp::rename;
    case Call::link: return access.second_path.empty() ? ReplayOp::none : ReplayOp::link;
    case Call::unlink: return ReplayOp::unlink;
    case Call::mkdir: return ReplayOp::make_directory;
    case Call::rmdir: return ReplayOp::remove_directory;
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
