#include "iosig/prefetch/requests.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <ctime>

namespace iosig::prefetch {

std::int64_t clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

namespace {

/// Returns how much of a thread's stack the C library uses for thread_local variables; 0 if it does not say.
std::size_t thread_local_bytes(const pthread_attr_t& attributes) {
  using MinStack = std::size_t (*)(const pthread_attr_t*);
  const auto min_stack = reinterpret_cast<MinStack>(::dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  return min_stack == nullptr ? 0 : min_stack(&attributes);
}

/// The C library's count of the process's threads, by which the last one that ends calls exit(3); null: unknown.
unsigned* count_of_threads() {
  static auto* const count = static_cast<unsigned*>(::dlvsym(RTLD_DEFAULT, "__nptl_nthreads", "GLIBC_PRIVATE"));
  return count;
}

/// Makes the calling thread, or one that it has just started, count for the end of the process, or not.
void let_count(bool counts) {
  if (unsigned* const count = count_of_threads(); count != nullptr) std::atomic_ref(*count) += counts ? 1U : -1U;
}

struct Work {
  void* (*run)(void*);
  void* argument;
};

/// The C library counts this thread out when it returns.
void* run_uncounted(void* work) {
  const std::unique_ptr<Work> own(static_cast<Work*>(work));
  void* const result = own->run(own->argument);
  let_count(true);
  return result;
}

}  // namespace

bool start_thread(void* (*run)(void*), void* argument) {
  Work* const work = std::make_unique<Work>(Work{run, argument}).release();
  constexpr std::size_t stack_bytes = 256 << 10;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGSYS);  // a program that emulates system calls for its filter emulates these, too
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  bool is_started = false;
  if (::pthread_attr_init(&attributes) == 0) {
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    is_started = ::pthread_attr_setstacksize(&attributes, stack_bytes + thread_local_bytes(attributes)) == 0 &&
                 ::pthread_create(&thread, &attributes, run_uncounted, work) == 0;
    ::pthread_attr_destroy(&attributes);
  }
  if (is_started)
    let_count(false);
  else
    const std::unique_ptr<Work> unused(work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started;
}

void Requests::add(const std::shared_ptr<Request>& request) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(request);
  if (idle_ > 0) {
    changed_.notify_one();
    return;
  }
  start_worker();
}

void Requests::start_worker() {
  if (threads_ >= max_threads || threads_ >= static_cast<unsigned>(window_) + 1) return;
  const auto run = [](void* all) -> void* {
    ::prctl(PR_SET_NAME, "iosig-prefetch");
    static_cast<Requests*>(all)->work();
    return nullptr;
  };
  if (start_thread(run, this)) ++threads_;
}

void Requests::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    if (waiting_.empty() || running_ >= static_cast<unsigned>(window_)) {
      ++idle_;
      changed_.wait(lock);
      --idle_;
      continue;
    }
    const std::shared_ptr<Request> request = std::move(waiting_.front());
    waiting_.pop_front();
    auto state = Request::State::waiting;
    request->begun_ns = clock_ns();
    if (!request->state.compare_exchange_strong(state, Request::State::running)) continue;
    ++running_;
    lock.unlock();
    const OwnFile::Fetched fetched = request->file->fetch(request->offset, request->length);
    request->done_ns = clock_ns();
    request->state = fetched.failed       ? Request::State::failed
                     : fetched.was_cached ? Request::State::cached
                                          : Request::State::done;
    lock.lock();
    --running_;
    if (!fetched.failed && !fetched.was_cached) learn(request->length, request->done_ns - request->begun_ns);
    // This thread takes one; there may be room for another.
    if (waiting_.size() < 2 || running_ + 1 >= static_cast<unsigned>(window_)) continue;
    if (idle_ > 0)
      changed_.notify_one();
    else
      start_worker();
  }
  --threads_;
  changed_.notify_all();
}

void Requests::learn(std::int64_t length, std::int64_t took_ns) {
  double& quickest = quickest_ns_[std::min<std::size_t>(
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(length, 1)))) - 1,
      quickest_ns_.size() - 1)];
  const auto took = static_cast<double>(took_ns);
  // Forgets, because the storage may have become slower; and one quick answer (of a cache below) does not count much.
  if (quickest == 0) quickest = took;
  quickest = took < quickest ? quickest + (took - quickest) / 4 : quickest * 1.02;
  is_slow_start_ = is_slow_start_ && took < 1.5 * quickest && window_ < max_threads;
  const double more = is_slow_start_ ? 1 : 1 / window_;
  window_ = std::clamp(took < 2 * quickest ? window_ + more : window_ - 1, 1.0, double{max_threads});
}

void Requests::stop() {
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  waiting_.clear();
  changed_.notify_all();
  changed_.wait(lock, [&] { return threads_ == 0; });
}

unsigned Requests::window() const {
  const std::lock_guard lock(mutex_);
  return static_cast<unsigned>(window_);
}

}  // namespace iosig::prefetch
