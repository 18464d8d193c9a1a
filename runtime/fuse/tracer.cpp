#include "tracer.h"

#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>
#include <functional>

#include "iosig/base/machine.h"

namespace iosig::fuse {

using trace::Call;
using trace::Facts;
using trace::LivePart;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t recheck_ns = 10 * ms;  ///< after which a thread's number and program are looked at again
constexpr std::uint64_t young_ns = 100 * ms;   ///< so long a thread may still be about to execute its program
constexpr std::uint64_t retry_ns = 1000 * ms;  ///< after which a part that could not be made is tried again
constexpr std::size_t max_mapped = 1024, max_names = 8192;
constexpr std::size_t sweep_threads = 64;       ///< new threads after which the ended ones are looked for at once
constexpr std::uint64_t max_parts = 1'000'000;  ///< readers refuse 2^20

std::uint64_t clock_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(unix_ns(time));
}

std::uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

std::uint64_t random_key() {
  std::uint64_t key = 0;
  while (key == 0)
    if (::getrandom(&key, sizeof key, 0) != sizeof key) key = now_ns() ^ static_cast<std::uint64_t>(::getpid()) << 40;
  return key;
}

std::string working_directory(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/{}/cwd", pid).c_str(), path.data(), path.size());
  return length <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::start(Fd directory, std::string shown) {
  std::unique_ptr<Tracer> made(new Tracer(std::move(directory), std::move(shown)));
  made->kernel_ = std::make_shared<Thread>();
  made->kernel_->process = std::make_shared<Process>();
  made->kernel_->process->key = random_key();
  made->kernel_->process->program = "[kernel]";
  if (auto done = made->make_part(*made->kernel_); !done) return pass_on(done.error());
  made->write_facts(*made->kernel_, {});
  made->sweeper_ = std::thread(&Tracer::run_sweeper, made.get());
  return made;
}

Tracer::~Tracer() {
  if (sweeper_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_one();
    sweeper_.join();
  }
  for (const auto& [tid, thread] : threads_)
    if (thread->part) close(*thread->part);
  for (const auto& [pid, process] : processes_)
    for (LivePart& part : process->spare) close(part);
  if (kernel_->part) close(*kernel_->part);
}

Tracer::Request Tracer::begin(pid_t tid, const Subject& subject) {
  std::shared_ptr<Thread> thread = tid == 0 ? kernel_ : current_thread(tid, subject.call);
  trace::Facts facts;
  if (!thread->process->has_facts && subject.call != Call::close &&  // see current_thread()
      !is_failing(*thread, now_ns()))
    facts = facts_.facts_of(thread->process->pid);
  const std::lock_guard lock(mutex_);
  std::uint64_t now = now_ns();
  if (is_forgotten(*thread) || !has_part(*thread, now)) {
    kernel_->part->count_lost(1);
    return {};
  }
  if (!thread->process->has_facts) write_facts(*thread, std::move(facts));
  trace::Slot slot{};
  slot.offset = subject.offset;
  slot.length = subject.length;
  slot.fd = -1;
  slot.file = subject.file;
  slot.path = name_id(*thread, subject.path);
  if (!subject.second_path.empty()) slot.length = name_id(*thread, subject.second_path);
  slot.call = subject.call;
  slot.start = now_ns();
  const std::uint64_t id = thread->part->begin(slot, packing_);
  if (thread->part->lost_calls() > 0) say_once("requests are missing in it");
  if (id == 0) return {};
  return {std::move(thread), id};
}

void Tracer::set_offset(const Request& request, std::int64_t offset) {
  if (!request.thread) return;
  const std::lock_guard lock(mutex_);
  request.thread->part->open_call(request.id).offset = offset;
}

void Tracer::end(const Request& request, std::int64_t result) {
  if (!request.thread) return;
  const std::lock_guard lock(mutex_);
  request.thread->part->end(request.id, result, now_ns());
  if (is_forgotten(*request.thread)) end_thread(*request.thread);
}

/// Returns the thread, as the program that it executes now.
std::shared_ptr<Tracer::Thread> Tracer::current_thread(pid_t tid, Call call) {
  std::shared_ptr<Thread> known;
  const std::uint64_t now = now_ns();
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = threads_.find(tid); found != threads_.end()) known = found->second;
  }
  if (known) {
    // A thread that ends, or executes another program, closes files. /proc does not say any more, or not yet, what
    // that thread executes, and the process may hold locks.
    if (call == Call::close) return known;
    const bool is_old = now > known->checked_ns + recheck_ns, is_young = now < known->first_ns + young_ns;
    if (!is_old && !is_young) return known;
    if ((!is_old || begin_of(tid) == known->began) && program_of(tid) == known->process->program) {
      if (is_old) known->checked_ns = now;
      return known;
    }
  }
  const auto found = requester_of(tid);
  const std::lock_guard lock(mutex_);
  if (++new_threads_ >= sweep_threads) sweep();
  return thread_of(tid, found.value_or(Requester{.pid = tid}), now);
}

/// Whether the table has another thread with this number by now, or none.
bool Tracer::is_forgotten(const Thread& thread) const {
  if (&thread == kernel_.get()) return false;
  const auto found = threads_.find(thread.tid);
  return found == threads_.end() || found->second.get() != &thread;
}

/// Returns the thread as it was found; ends an earlier one with this number, or with an earlier program.
std::shared_ptr<Tracer::Thread> Tracer::thread_of(pid_t tid, const Requester& found, std::uint64_t now) {
  std::shared_ptr<Thread>& thread = threads_[tid];
  if (thread && thread->began == found.thread_began && thread->process->program == found.program) return thread;
  if (thread) end_thread(*thread);
  thread = std::make_shared<Thread>();
  thread->tid = tid;
  thread->began = found.thread_began;
  thread->process = process_of(tid, found);
  thread->first_ns = thread->checked_ns = now;
  return thread;
}

std::shared_ptr<Tracer::Process> Tracer::process_of(pid_t tid, const Requester& found) {
  const pid_t pid = found.pid == 0 ? tid : found.pid;
  std::shared_ptr<Process>& process = processes_[pid];
  if (process && process->began == found.process_began && process->program == found.program) return process;
  if (process)
    for (LivePart& part : process->spare) close(part);
  process = std::make_shared<Process>();
  process->key = random_key();
  process->pid = pid;
  process->parent_pid = found.parent_pid;
  process->began = found.process_began;
  process->program = found.program;
  return process;
}

/// Whether the thread's part could not be made a moment ago.
bool Tracer::is_failing(const Thread& thread, std::uint64_t now) {
  const std::uint64_t failed_ns = thread.failed_ns;
  return failed_ns != 0 && now < failed_ns + retry_ns;
}

/// Sees to it that the thread's part is mapped.
bool Tracer::has_part(Thread& thread, std::uint64_t now) {
  if (thread.part && thread.part->is_mapped()) {
    if (&thread != kernel_.get()) mapped_.splice(mapped_.end(), mapped_, thread.mapped_place);
    return true;
  }
  if (is_failing(thread, now)) return false;
  for (auto at = mapped_.begin(); at != mapped_.end() && mapped_.size() >= max_mapped;) {
    Thread& oldest = **at++;
    if (!oldest.part->has_open_calls()) unmap(oldest);
  }
  if (auto done = thread.part ? thread.part->map() : make_part(thread); !done) {
    thread.failed_ns = now;
    thread.part.reset();  // one that cannot be mapped any more was removed
    say_once(done.error().message);
    return false;
  }
  thread.mapped_place = mapped_.insert(mapped_.end(), &thread);
  return true;
}

Result<void> Tracer::make_part(Thread& thread) {
  Process& process = *thread.process;
  if (!process.spare.empty()) {
    auto part = std::make_unique<LivePart>(std::move(process.spare.back()));
    process.spare.pop_back();
    if (part->map()) {
      part->pass_to(thread.tid, packing_);
      thread.part = std::move(part);
      return {};
    }
  }
  if (parts_ == max_parts) return fail(ErrorKind::infeasible, "a trace has at most {} threads", max_parts);
  const std::string host = host_name();
  const std::uint64_t now = now_ns();
  auto part = LivePart::make(directory_, shown_,
                             {.host = host,
                              .process = process.key,
                              .pid = process.pid,
                              .parent_pid = process.parent_pid,
                              .tid = thread.tid,
                              .first = {now, now},
                              .realtime_ns = clock_ns(CLOCK_REALTIME),
                              .boot = trace::boot_number(boot_id())},
                             process.parts + 1);
  if (!part) return pass_on(part.error());
  ++process.parts;
  ++parts_;
  thread.part = std::make_unique<LivePart>(std::move(*part));
  return {};
}

void Tracer::write_facts(Thread& thread, Facts facts) {
  Process& process = *thread.process;
  if (!process.program.empty()) facts.emplace_back("program", process.program);
  if (process.pid != 0)
    if (std::string directory = working_directory(process.pid); !directory.empty())
      facts.emplace_back("directory", std::move(directory));
  thread.part->add_facts(facts);
  process.has_facts = true;
}

std::uint32_t Tracer::name_id(Thread& thread, const std::string& path) {
  if (path.empty()) return 0;
  Process& process = *thread.process;
  const std::size_t hash = std::hash<std::string>()(path);
  if (const auto known = process.names.find(hash); known != process.names.end()) return known->second;
  if (process.names.size() >= max_names) process.names.clear();
  thread.part->add_name(++process.last_name, path);
  process.names.emplace(hash, process.last_name);
  return process.last_name;
}

void Tracer::unmap(Thread& thread) {
  mapped_.erase(thread.mapped_place);
  thread.part->unmap();
}

/// Closes the part of a thread that makes no more requests, or keeps it for a new thread of a process that goes on. A
/// thread with an open call is ended when that ends.
void Tracer::end_thread(Thread& thread) {
  if (!thread.part || (thread.part->is_mapped() && thread.part->has_open_calls())) return;
  if (thread.part->is_mapped()) unmap(thread);
  const auto process = processes_.find(thread.process->pid);
  const bool goes_on = process != processes_.end() && process->second == thread.process &&
                       is_alive(thread.process->pid, thread.process->pid);
  if (goes_on)
    thread.process->spare.push_back(std::move(*thread.part));
  else
    close(*thread.part);
  thread.part.reset();
}

void Tracer::close(LivePart& part) {
  if (part.is_mapped() || part.map()) part.close(packing_);
}

/// Forgets threads and processes that ended.
void Tracer::sweep() {
  new_threads_ = 0;
  std::erase_if(threads_, [&](const auto& each) {
    Thread& thread = *each.second;
    // One that has another user is making a request.
    if (each.second.use_count() > 1 || is_alive(thread.process->pid, thread.tid)) return false;
    end_thread(thread);
    return true;
  });
  std::erase_if(processes_, [&](const auto& each) {
    Process& process = *each.second;
    if (each.second.use_count() > 1 || is_alive(process.pid, process.pid)) return false;
    for (LivePart& part : process.spare) close(part);
    return true;
  });
}

void Tracer::run_sweeper() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    over_.wait_for(lock, std::chrono::seconds(1), [&] { return is_over_; });
    if (!is_over_) sweep();
  }
}

void Tracer::say_once(const std::string& what) {
  if (std::exchange(is_said_, true)) return;
  ::syslog(LOG_ERR, "the trace '%s' is not complete: %s; the mount goes on", shown_.c_str(), what.c_str());
}

}  // namespace iosig::fuse
