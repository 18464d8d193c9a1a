#include "iosig/replay/trace_worker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>

#include "iosig/base/text.h"

namespace iosig {
namespace {

using trace::Access;
using trace::Call;

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t spun_ns = 50'000;  ///< before an access is due: the kernel wakes a process up too late
constexpr std::int64_t least_nap_ns = 20'000, greatest_nap_ns = 1'000'000;
constexpr std::size_t max_at_once = 64u << 20, buffer_alignment = 4096;
constexpr int kept_flags = O_ACCMODE | O_APPEND | O_CREAT | O_EXCL | O_TRUNC | O_SYNC | O_DSYNC | O_DIRECT;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second_ns + now.tv_nsec;
}

void nap_until(std::int64_t when_ns) {
  const timespec when{when_ns / second_ns, when_ns % second_ns};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

void wait_until(std::int64_t due_ns) {
  std::int64_t now = now_ns();
  if (due_ns - now > spun_ns) nap_until(due_ns - spun_ns);
  while (now < due_ns) now = now_ns();
}

/// Bytes that a transfer asks for: of a read, more than there was; but no length that no file has.
std::int64_t asked_bytes(const Access& access, bool reads) {
  const std::int64_t moved = moved_bytes(access);
  if (!reads || access.length <= moved) return moved;
  return std::min(access.length, std::max(moved, static_cast<std::int64_t>(max_at_once)));
}

int errno_of(int returned) { return returned < 0 ? -errno : 0; }

}  // namespace

TraceWorker::TraceWorker(const trace::Trace& trace, const TracePlan& plan, TargetTree tree,
                         const TraceReplayOptions& options, std::span<StreamProgress> progress, std::uint32_t number)
    : plan_(plan),
      tree_(std::move(tree)),
      options_(options),
      progress_(progress),
      number_(number),
      ops_(plan.streams.size()),
      next_wait_(plan.streams.size()),
      next_barrier_(plan.streams.size()),
      buffer_(nullptr, std::free) {
  std::set<const trace::Process*> mine;
  for (const PlannedStream& stream : plan.streams)
    if (stream.worker == number) mine.insert(stream.process);
  selection_.processes = [mine](const trace::Process& process) { return mine.contains(&process); };
  const bool needs_reads = ReplayPrefetch::needs_reads(options.prefetch);
  prefetch_ = std::make_unique<ReplayPrefetch>(options.prefetch, needs_reads ? coming_reads(trace) : ReadsOfFiles{});
  accesses_ = std::make_unique<trace::Accesses>(trace, selection_, faults_);
}

/// The reads of this process, as move() performs them.
ReadsOfFiles TraceWorker::coming_reads(const trace::Trace& trace) {
  ReadsOfFiles reads;
  accesses_ = std::make_unique<trace::Accesses>(trace, selection_, faults_);
  Step step;
  while (const Access* access = accesses_->next())
    if (is_mine(*access, step) && step.op == ReplayOp::read && step.path != nullptr)
      reads[step.path->name].push_back({access->offset, asked_bytes(*access, true)});
  return reads;
}

/// Sets `step` to the operation of the access; returns false if another process performs it, or none.
bool TraceWorker::is_mine(const Access& access, Step& step) {
  step.op = replay_op_of(access, plan_.layer);
  if (step.op == ReplayOp::none) return false;
  if (access.path.data() != last_path_) {
    last_path_ = access.path.data();
    last_path_number_ = plan_.path_of(access.path);
  }
  if (last_path_number_ == UINT32_MAX) return false;
  if (access.process != last_process_ || access.tid != last_tid_) {
    last_process_ = access.process;
    last_tid_ = access.tid;
    last_stream_ = plan_.stream_of(access.process, access.tid);
  }
  step.access = &access;
  step.path_number = last_path_number_;
  step.stream = last_stream_;
  step.path = plan_.replayed(access, step.op, step.path_number);
  return plan_.streams[step.stream].worker == number_;
}

Result<void> TraceWorker::run(Worker& worker, std::int64_t began_ns) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  allow_many_descriptors();
  std::int64_t free_ns = began_ns, traced_end_ns = plan_.started_ns;
  Step step;
  std::uint64_t done = 0;
  while (const Access* access = accesses_->next()) {
    const bool is_mine_now = is_mine(*access, step);
    if (step.op == ReplayOp::none || last_path_number_ == UINT32_MAX) continue;
    const bool is_descriptor = step.op == ReplayOp::close || step.op == ReplayOp::follow;
    if (!is_mine_now) {
      if (is_descriptor) close(step);  // of another thread's process, whose files this one may have open, too
      continue;
    }
    const std::uint64_t op = ops_[step.stream]++;
    if (!is_performed(step.op) || step.path == nullptr) {
      if (is_descriptor) close(step);
    } else {
      std::int64_t due_ns = free_ns + options_.think.of(std::max<std::int64_t>(0, access->start_ns - traced_end_ns));
      traced_end_ns = std::max(traced_end_ns, access->end_ns);
      const std::int64_t before_ns = free_ns;
      if (wait_for_streams(step, op)) {
        const std::int64_t now = now_ns();
        sums_.waited_s += 1e-9 * static_cast<double>(std::max<std::int64_t>(0, now - due_ns));
        due_ns = std::max(due_ns, now);
      }
      call_begin_ns_ = 0;
      auto performed = perform(step, due_ns);
      if (!performed) return performed;
      if (call_begin_ns_ != 0) {
        sums_.think_s += 1e-9 * static_cast<double>(call_begin_ns_ - before_ns);
        free_ns = options_.is_marked ? now_ns() : call_end_ns_;
      }
      if ((++done & 63) == 0) worker.add_done(64);
    }
    progress_[step.stream].ended.store(op + 1, std::memory_order_release);
  }
  for (std::size_t stream = 0; stream < plan_.streams.size(); ++stream)
    if (plan_.streams[stream].worker == number_) progress_[stream].ended.store(UINT64_MAX);
  worker.figure(0) = 1e-9 * static_cast<double>(now_ns() - began_ns);
  sums_.prefetched = prefetch_->finish();
  return {};
}

/// Waits until the operation of the stream has ended; returns whether it had not.
bool TraceWorker::wait_for(std::uint32_t stream, std::uint64_t op) {
  if (plan_.streams[stream].worker == UINT32_MAX) return false;
  bool has_waited = false;
  std::int64_t nap_ns = least_nap_ns;
  while (progress_[stream].ended.load(std::memory_order_acquire) <= op) {
    has_waited = true;
    nap_until(now_ns() + nap_ns);
    nap_ns = std::min(2 * nap_ns, greatest_nap_ns);
  }
  return has_waited;
}

/// Waits for what the operation must follow; returns whether it did.
bool TraceWorker::wait_for_streams(const Step& step, std::uint64_t op) {
  const PlannedStream& stream = plan_.streams[step.stream];
  bool has_waited = false;
  for (std::size_t& next = next_wait_[step.stream]; next < stream.waits.size() && stream.waits[next].op <= op; ++next)
    has_waited |= wait_for(stream.waits[next].other_stream, stream.waits[next].other_op);
  for (std::size_t& next = next_barrier_[step.stream];
       next < stream.barriers.size() && stream.barriers[next].first <= op; ++next)
    for (const BarrierEntry& entry : plan_.barriers[stream.barriers[next].second])
      if (entry.stream != step.stream) has_waited |= wait_for(entry.stream, entry.op);
  return has_waited;
}

std::string TraceWorker::shown(const PlannedPath& path) const { return fmt::format("{}/{}", tree_.path(), path.name); }

void TraceWorker::note_failure(const Step& step, int error_number) {
  if (sums_.failed++ == 0)
    sums_.first_failure = fmt::format("{} of '{}': {}", name_of(step.access->call), printable(shown(*step.path)),
                                      std::strerror(error_number));
}

// ---- open files -----------------------------------------------------------------------------------------------------

Result<void> TraceWorker::open(const Step& step) {
  int flags = static_cast<int>(step.access->length) & kept_flags;
  const auto attempt = [&](int with) {
    call_begin_ns_ = now_ns();
    const int opened = tree_.open_file(step.path->name, with);
    call_end_ns_ = now_ns();
    return opened;
  };
  int opened = attempt(flags);
  if (opened == -EEXIST) {  // made by a stream that uses it before the one that makes it
    flags &= ~O_EXCL;
    opened = attempt(flags);
  } else if (opened == -EINVAL && (flags & O_DIRECT) != 0) {
    note_failure(step, EINVAL);
    flags &= ~O_DIRECT;
    opened = attempt(flags);
  } else if (opened == -ENOENT) {
    ++sums_.made_at_need;
    (void)tree_.make_parents(step.path->name);
    opened = attempt(flags | O_CREAT);
  }
  if (opened == -ELOOP || opened == -EMLINK)
    return fail(ErrorKind::system,
                "'{}' is no file that the replay has made: another program has put it there; it is left as it is",
                printable(shown(*step.path)));
  if (opened == -ENOSPC || opened == -EDQUOT) return write_failure("make", shown(*step.path), -opened);
  if (opened < 0) {
    note_failure(step, -opened);
    return {};
  }
  OpenFile file{.fd = Fd(opened)};
  prefetch_->opened(opened);
  file.appends = (flags & O_APPEND) != 0;
  open_.insert_or_assign({step.access->process, step.access->file}, std::move(file));
  note(step, 0);
  return {};
}

/// Returns the open file of an access; opens it by its name if another stream opened it.
Result<TraceWorker::OpenFile*> TraceWorker::file_of(const Step& step) {
  const FileKey key{step.access->process, step.access->file != 0 ? step.access->file : step.path_number | 0x80000000u};
  if (const auto known = open_.find(key); known != open_.end()) return &known->second;
  const std::string& name = step.path->name;
  int opened = tree_.open_file(name, O_RDWR);
  if (opened == -ENOENT) {
    ++sums_.made_at_need;
    (void)tree_.make_parents(name);
    opened = tree_.open_file(name, O_RDWR | O_CREAT);
  }
  if (opened == -ELOOP || opened == -EMLINK)
    return fail(ErrorKind::system,
                "'{}' is no file that the replay has made: another program has put it there; it is left as it is",
                printable(shown(*step.path)));
  if (opened < 0) return write_failure("open", shown(*step.path), -opened);
  prefetch_->opened(opened);
  return &open_.emplace(key, OpenFile{.fd = Fd(opened)}).first->second;
}

/// Follows close(2) and dup(2); the last descriptor's close is performed, and measured if the stream is this one's.
void TraceWorker::close(const Step& step) {
  const auto file = open_.find({step.access->process, step.access->file});
  if (file == open_.end()) return;
  if (step.op == ReplayOp::follow) {
    if (step.access->call != Call::inherited) ++file->second.references;
    return;
  }
  if (--file->second.references > 0) return;
  call_begin_ns_ = now_ns();
  prefetch_->closed(file->second.fd.get());
  const int failed = errno_of(::close(file->second.fd.release()));
  call_end_ns_ = now_ns();
  open_.erase(file);
  if (plan_.streams[step.stream].worker != number_ || step.path == nullptr) return;
  if (failed < 0) note_failure(step, -failed);
  note(step, 0);
}

// ---- operations -----------------------------------------------------------------------------------------------------

Result<void> TraceWorker::perform(const Step& step, std::int64_t due_ns) {
  const bool is_transfer = step.op == ReplayOp::read || step.op == ReplayOp::write;
  OpenFile* file = nullptr;
  const bool needs_file = is_transfer || step.op == ReplayOp::seek || step.op == ReplayOp::sync ||
                          step.op == ReplayOp::allocate || (step.op == ReplayOp::truncate && step.access->file != 0);
  if (needs_file) {
    auto found = file_of(step);
    if (!found) return pass_on(std::move(found.error()));
    file = *found;
  }
  if (is_transfer) {
    const std::int64_t asked = std::max(step.access->length, moved_bytes(*step.access));
    grow_buffer(std::min(static_cast<std::size_t>(std::max<std::int64_t>(asked, 0)), max_at_once));
    if (options_.is_marked && step.op == ReplayOp::write) {
      const auto length = std::min(static_cast<std::size_t>(moved_bytes(*step.access)), max_at_once);
      fill(std::span(buffer_.get(), length), trace_origin(step.stream, step.path_number),
           static_cast<std::uint64_t>(step.access->offset));
      due_ns = std::max(due_ns, now_ns());
    }
  }
  wait_until(due_ns);
  Result<void> done;
  if (is_transfer) {
    done = move(step, *file);
  } else if (step.op == ReplayOp::open) {
    done = open(step);
  } else if (step.op == ReplayOp::close) {
    close(step);
  } else {
    call_begin_ns_ = now_ns();
    const std::int64_t result = call(step, file);
    call_end_ns_ = now_ns();
    const bool is_there = step.op == ReplayOp::make_directory && result == -EEXIST;
    const bool was_link = step.op == ReplayOp::unlink && step.path->was_link && result == -ENOENT;
    if (result < 0 && !is_there && !was_link) note_failure(step, static_cast<int>(-result));
    note(step, 0);
  }
  if (done && call_begin_ns_ != 0)
    sums_.delay_ns.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, call_begin_ns_ - due_ns)));
  return done;
}

/// Performs an operation that moves no bytes; returns 0 or the negative error number.
std::int64_t TraceWorker::call(const Step& step, OpenFile* file) {
  const Access& access = *step.access;
  const auto second = [&]() -> const std::string& { return plan_.paths[plan_.path_of(access.second_path)].name; };
  switch (step.op) {
    case ReplayOp::seek: {
      const std::int64_t at = ::lseek(file->fd.get(), access.result, SEEK_SET);
      file->position = at;
      return at < 0 ? -errno : 0;
    }
    case ReplayOp::sync:
      if (access.call == Call::fdatasync) return errno_of(::fdatasync(file->fd.get()));
      if (access.call == Call::sync_file_range && access.offset >= 0 && access.length >= 0)
        return errno_of(::sync_file_range(file->fd.get(), access.offset, access.length, SYNC_FILE_RANGE_WRITE));
      return errno_of(::fsync(file->fd.get()));
    case ReplayOp::truncate:
      if (file == nullptr) return tree_.truncate(step.path->name, access.length);
      return errno_of(::ftruncate(file->fd.get(), access.length));
    case ReplayOp::allocate: return errno_of(::fallocate(file->fd.get(), 0, access.offset, access.length));
    case ReplayOp::rename: return tree_.rename(step.path->name, second());
    case ReplayOp::link: return tree_.link(step.path->name, second());
    case ReplayOp::unlink:
      if (step.path->is_directory) return tree_.remove_directory(step.path->name);
      return tree_.remove_file(step.path->name);
    case ReplayOp::make_directory: {
      const int made = tree_.make_directory(step.path->name);
      if (made != -ENOENT) return made;
      ++sums_.made_at_need;  // the directory above it was being made by another stream
      (void)tree_.make_parents(step.path->name);
      return tree_.make_directory(step.path->name);
    }
    case ReplayOp::remove_directory: return tree_.remove_directory(step.path->name);
    default: return 0;
  }
}

/// One system call for `length` bytes behind the first `done` ones; returns what it returns, or the negative error
/// number.
std::int64_t TraceWorker::transfer(OpenFile& file, const Step& step, std::int64_t done, std::size_t length) {
  const std::int64_t offset = step.access->offset + done;
  const int fd = file.fd.get();
  const bool reads = step.op == ReplayOp::read;
  const bool by_position = (uses_position(step.access->call) && file.position == offset) || (file.appends && !reads);
  const auto again = [&]() -> std::int64_t {
    if (by_position) return reads ? ::read(fd, buffer_.get(), length) : ::write(fd, buffer_.get(), length);
    return reads ? ::pread(fd, buffer_.get(), length, offset) : ::pwrite(fd, buffer_.get(), length, offset);
  };
  ReplayPrefetch::Reading reading;
  if (reads) reading = prefetch_->begin(fd, offset, static_cast<std::int64_t>(length));
  std::int64_t moved = again();
  while (moved < 0 && errno == EINTR) moved = again();
  if (reads) prefetch_->end(reading, moved);
  if (moved < 0) return -errno;
  if (by_position) file.position = offset + moved;
  return moved;
}

Result<void> TraceWorker::move(const Step& step, OpenFile& file) {
  const bool reads = step.op == ReplayOp::read;
  const std::int64_t expected = moved_bytes(*step.access);
  const std::int64_t asked = asked_bytes(*step.access, reads);
  std::int64_t done = 0, result = 0;
  call_begin_ns_ = now_ns();
  do {
    const auto part = std::min(static_cast<std::size_t>(asked - done), max_at_once);
    if (done > 0 && options_.is_marked && !reads)
      fill(std::span(buffer_.get(), part), trace_origin(step.stream, step.path_number),
           static_cast<std::uint64_t>(step.access->offset + done));
    result = transfer(file, step, done, part);
    if (result > 0) done += result;
  } while (result > 0 && done < (reads ? std::min(asked, expected) : asked));
  call_end_ns_ = now_ns();
  if (result < 0 && !reads) return write_failure("write", shown(*step.path), static_cast<int>(-result));
  if (result < 0) note_failure(step, static_cast<int>(-result));
  if (reads && done < expected) ++sums_.short_reads;
  note(step, done);
  if (reads && options_.is_marked && done <= static_cast<std::int64_t>(max_at_once)) check_read(step, done);
  return {};
}

void TraceWorker::check_read(const Step& step, std::int64_t moved) {
  const FileGroup& group = plan_.groups[step.path->group];
  if (!group.is_checked) return;
  WrongBytes wrong;
  checker_.check(std::span<const std::byte>(buffer_.get(), static_cast<std::size_t>(moved)), step.access->offset,
                 group.origins, wrong);
  if (wrong.count == 0) return;
  if (sums_.wrong.count == 0) {
    sums_.wrong.first = wrong.first;
    sums_.wrong_file = shown(*step.path);
  }
  sums_.wrong.count += wrong.count;
}

// ---- measuring ------------------------------------------------------------------------------------------------------

void TraceWorker::note(const Step& step, std::int64_t moved) {
  const Access& access = *step.access;
  const StreamKind kind = stream_kind_of(step.op);
  StreamMetrics& metrics = streams_[std::uint64_t{step.path_number} << 2 | static_cast<unsigned>(kind)];
  const auto replayed_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(0, call_end_ns_ - call_begin_ns_));
  metrics.replayed_ns.add(replayed_ns);
  metrics.replayed_bytes += moved;
  sums_.io_s += 1e-9 * static_cast<double>(replayed_ns);
  ++sums_.performed;
  if (kind == StreamKind::read || kind == StreamKind::write) metrics.original_bytes += moved_bytes(access);
  if (is_asynchronous(access.call)) return;
  const auto original_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(0, access.end_ns - access.start_ns));
  metrics.original_ns.add(original_ns);
  sums_.original_io_s += 1e-9 * static_cast<double>(original_ns);
}

void TraceWorker::append_metrics(std::string& bytes) const {
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto append_text = [&](const std::string& text) {
    append(text.size());
    bytes += text;
  };
  for (const double seconds : {sums_.io_s, sums_.original_io_s, sums_.think_s, sums_.waited_s}) append(seconds);
  for (const std::uint64_t count :
       {sums_.performed, sums_.failed, sums_.short_reads, sums_.made_at_need, sums_.wrong.count})
    append(count);
  append(sums_.prefetched);
  append(sums_.wrong.first);
  append_text(sums_.first_failure);
  append_text(sums_.wrong_file);
  sums_.delay_ns.append_to(bytes);
  append(streams_.size());
  for (const auto& [key, metrics] : streams_) {
    append(key);
    append(metrics.original_bytes);
    append(metrics.replayed_bytes);
    metrics.original_ns.append_to(bytes);
    metrics.replayed_ns.append_to(bytes);
  }
}

/// Makes room for a transfer. The bytes are random: storage may compress.
void TraceWorker::grow_buffer(std::size_t bytes) {
  if (bytes <= buffer_bytes_) return;
  std::size_t wanted = std::max<std::size_t>(buffer_bytes_, 1u << 20);
  while (wanted < bytes) wanted *= 2;
  buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(buffer_alignment, wanted)));
  buffer_bytes_ = wanted;
  fill(std::span(buffer_.get(), wanted), {number_, 0}, 0);
}

}  // namespace iosig
