// The trace of a mount (`iosig mount --trace`): a part for each thread that makes requests, in the format of
// `iosig trace`.
//
// A request is in the file before it is answered, so a kill of the daemon loses none that had returned. Threads and
// processes are told apart by their begin, and programs by the file that they execute: execve(2) begins a new process
// in the trace, as in that of a traced program.
//
// Bounded: 1024 parts are mapped at a time, the others go on when their thread does. A second after a thread has ended,
// its part is closed, or left to a new thread of the process. A process with few calls takes 8 KB in the trace.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "iosig/trace/part_write.h"
#include "requester.h"

namespace iosig::fuse {

/// The file and the arguments of a request.
struct Subject {
  trace::Call call = trace::Call::none;
  std::string path, second_path = {};
  std::int64_t offset = trace::no_offset, length = trace::no_length;
  std::uint32_t file = 0;
};

class Tracer {
  struct Thread;

 public:
  /// A request that has begun. Empty: it is not recorded.
  struct Request {
    std::shared_ptr<Thread> thread;
    std::uint64_t id = 0;
  };

  /// Traces into `directory`, which is open from before the mount, so that no access to it is a request to this daemon.
  /// Fails if no part can be made there.
  [[nodiscard]] static Result<std::unique_ptr<Tracer>> start(Fd directory, std::string shown);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// `tid`: as the kernel says in the request; 0: the kernel's own requests, which are recorded as process 0.
  [[nodiscard]] Request begin(pid_t tid, const Subject& subject);
  void set_offset(const Request& request, std::int64_t offset);
  void end(const Request& request, std::int64_t result);
  /// Numbers open files.
  [[nodiscard]] std::uint32_t next_file() { return ++files_; }

 private:
  struct Process {
    std::uint64_t key = 0;
    pid_t pid = 0, parent_pid = 0;
    std::uint64_t began = 0;
    std::string program;
    std::atomic<bool> has_facts = false;
    std::uint32_t parts = 0, last_name = 0;
    std::unordered_map<std::size_t, std::uint32_t> names;  ///< ids by hash; of those that were written last
    std::vector<trace::LivePart> spare;                    ///< parts of threads that ended
  };
  struct Thread {
    pid_t tid = 0;
    std::uint64_t began = 0;
    std::shared_ptr<Process> process;
    std::unique_ptr<trace::LivePart> part;  ///< null: none yet, or it could not be made
    std::uint64_t first_ns = 0;
    std::atomic<std::uint64_t> failed_ns = 0;  ///< when its part could not be made; 0: it has not failed
    std::atomic<std::uint64_t> checked_ns = 0;
    std::list<Thread*>::iterator mapped_place;  ///< in mapped_, if its part is mapped
  };

  Tracer(Fd directory, std::string shown) : directory_(std::move(directory)), shown_(std::move(shown)) {}
  [[nodiscard]] std::shared_ptr<Thread> current_thread(pid_t tid, trace::Call call);
  [[nodiscard]] bool is_forgotten(const Thread& thread) const;
  [[nodiscard]] std::shared_ptr<Thread> thread_of(pid_t tid, const Requester& found, std::uint64_t now);
  [[nodiscard]] std::shared_ptr<Process> process_of(pid_t tid, const Requester& found);
  [[nodiscard]] static bool is_failing(const Thread& thread, std::uint64_t now);
  [[nodiscard]] bool has_part(Thread& thread, std::uint64_t now);
  [[nodiscard]] Result<void> make_part(Thread& thread);
  void write_facts(Thread& thread, trace::Facts facts);
  [[nodiscard]] std::uint32_t name_id(Thread& thread, const std::string& path);
  void unmap(Thread& thread);
  void end_thread(Thread& thread);
  void close(trace::LivePart& part);
  void sweep();
  void run_sweeper();
  void say_once(const std::string& what);

  const Fd directory_;
  const std::string shown_;
  FactsReader facts_;
  std::atomic<std::uint32_t> files_ = 0;

  std::mutex mutex_;  ///< protects all below
  trace::Packing packing_;
  std::unordered_map<pid_t, std::shared_ptr<Thread>> threads_;
  std::unordered_map<pid_t, std::shared_ptr<Process>> processes_;
  std::shared_ptr<Thread> kernel_;  ///< for requests that no process makes
  std::list<Thread*> mapped_;       ///< the most recently used last
  std::size_t new_threads_ = 0;     ///< since the last sweep
  std::uint64_t parts_ = 0;
  bool is_said_ = false, is_over_ = false;
  std::condition_variable over_;
  std::thread sweeper_;
};

}  // namespace iosig::fuse
