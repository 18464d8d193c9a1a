#include "iosig/container/shared/open_writers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "iosig/base/kept_fds.h"
#include "iosig/container/shared/attributes.h"

namespace iosig {

OpenWriter* OpenWriters::add() {
  const std::lock_guard lock(mutex_);
  return &writers_.emplace_back();
}

int OpenWriters::remove(OpenWriter* writer, bool* lacks_bytes) {
  const std::lock_guard lock(mutex_);
  const int failure = close(*writer);
  if (lacks_bytes != nullptr) *lacks_bytes = writer->lacks_bytes;
  writers_.remove_if([&](const OpenWriter& each) { return &each == writer; });
  return failure;
}

/// The caller holds the list's lock. If a writer cannot be closed, its droppings stay as after a crash: no write is
/// lost.
int OpenWriters::close(OpenWriter& writer) {
  const std::lock_guard lock(writer.mutex);
  if (!writer.writer) return 0;
  {
    const std::lock_guard unsynced_lock(unsynced_->mutex);
    unsynced_->ids.push_back(writer.writer->id());
  }
  status_.forget_data(writer.writer->data_fd());
  const auto closed = writer.writer->close();
  writer.lacks_bytes = writer.writer->are_writes_refused();
  writer.writer.reset();
  if (const std::size_t kept = std::exchange(writer.kept_fds, 0); kept > 0) keeper_.closed(kept);
  return closed ? 0 : log_(closed.error());
}

int OpenWriters::close_all() {
  const std::lock_guard lock(mutex_);
  int failure = 0;
  for (OpenWriter& each : writers_)
    if (const int closed = close(each); closed != 0) failure = closed;
  return failure;
}

int OpenWriters::finish() {
  const int failure = close_all(), synced = sync();
  return failure != 0 ? failure : synced;
}

/// The caller holds the writer's lock.
int OpenWriters::open(OpenWriter& writer) {
  if (writer.writer) return 0;
  (void)read_size_limit();  // the program may have changed it by a call that IOSIG does not intercept
  auto opened = ContainerWriter::open(directory_, status_.owner());
  if (!opened) return log_(opened.error());
  writer.writer = *std::move(opened);
  keep_fds(writer);
  drop_privileges(*directory_);
  return 0;
}

/// Called when the writer may have opened its droppings, with its lock held. Closes them again if this process has
/// enough descriptors open.
void OpenWriters::keep_fds(OpenWriter& writer) {
  constexpr std::size_t fds = 2;
  if (writer.kept_fds > 0 || writer.writer->data_fd() < 0) return;
  if (keeper_.may_keep(fds)) {
    writer.kept_fds = fds;
    return;
  }
  status_.forget_data(writer.writer->data_fd());
  (void)writer.writer->close_fds();
}

/// Closes the droppings of the writers that no thread is using, the calling one included: POSIX defines that trying a
/// lock which the thread holds fails.
std::size_t OpenWriters::close_idle_fds() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;
  std::size_t closed = 0;
  for (OpenWriter& each : writers_) {
    const std::unique_lock writer_lock(each.mutex, std::try_to_lock);
    if (!writer_lock || each.kept_fds == 0 || !status_.try_forget_data(each.writer->data_fd())) continue;
    if (each.writer->close_fds() > 0) closed += std::exchange(each.kept_fds, 0);
  }
  return closed;
}

int OpenWriters::prepare(OpenWriter& writer) {
  const std::lock_guard lock(writer.mutex);
  return open(writer);
}

int OpenWriters::change(OpenWriter& by, const std::function<Result<void>(ContainerWriter&)>& change) {
  const std::lock_guard lock(by.mutex);
  if (const int failure = open(by); failure != 0) return failure;
  const auto done = change(*by.writer);
  keep_fds(by);
  return done ? 0 : log_(done.error());
}

std::int64_t OpenWriters::write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes, bool appends) {
  std::int64_t done = 0;
  std::unique_lock lock(to.mutex);
  if (const int failure = open(to); failure != 0) return -failure;
  if (!to.writer->has_room_for(bytes.size())) {  // overwritten bytes stay in a log and count for RLIMIT_FSIZE
    lock.unlock();
    {
      const std::lock_guard list_lock(mutex_);
      (void)close(to);
    }
    lock.lock();
    if (const int failure = open(to); failure != 0) return -failure;
  }
  if (appends) {
    const auto at = to.writer->append(bytes, done);
    if (!at) return -log_(at.error());
    offset = *at;
  } else {
    const auto written = to.writer->write(offset, bytes);
    if (!written) return -log_(written.error());
    done = *written;
  }
  if (done > 0) status_.wrote(offset, offset + done, to.writer->data_fd());
  if (to.kept_fds == 0) keep_fds(to);
  return done;
}

int OpenWriters::sync() {
  const std::lock_guard lock(mutex_);
  int failure = 0;
  for (OpenWriter& each : writers_) {
    const std::lock_guard writer_lock(each.mutex);
    if (each.writer)
      if (const auto synced = each.writer->sync(); !synced) failure = log_(synced.error());
    if (each.writer) keep_fds(each);
  }
  const std::lock_guard unsynced_lock(unsynced_->mutex);
  for (const std::int64_t id : unsynced_->ids)
    for (const Dropping kind : {Dropping::data, Dropping::index, Dropping::tail})  // a tail: its index was not complete
      if (const int failed = sync_closed(id, kind); failed != 0) failure = failed;
  if (failure == 0) unsynced_->ids.clear();
  return failure;
}

/// Flushes a dropping of a closed writer, its directory and the directory above.
int OpenWriters::sync_closed(std::int64_t id, Dropping kind) {
  const auto subdirectory = directory_->open_subdirectory(kind, id);
  const Fd fd = directory_->open_dropping(kind, id, O_RDONLY);
  if (!fd && errno == ENOENT) return 0;  // truncated to 0, or a tail whose writes the index has
  const Fd above = subdirectory ? open_file_at(subdirectory->get(), "..", O_RDONLY | O_DIRECTORY) : Fd();
  const bool is_synced =
      fd && above && ::fsync(fd.get()) == 0 && ::fsync(subdirectory->get()) == 0 && ::fsync(above.get()) == 0;
  return is_synced ? 0 : EIO;
}

}  // namespace iosig
