// Runs independent work on all processors.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// Calls work(n) for each n < count on up to `threads` threads (0: as many as processors), in any order. An exception
/// of `work` (out of memory) ends the work of its thread; one of the exceptions is rethrown after all threads have
/// ended.
template <class Work>
void for_each_in_parallel(std::size_t count, unsigned threads, Work&& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::exception_ptr thrown;
  const auto work_on = [&] {
    try {
      for (std::size_t n; (n = next++) < count;) work(n);
    } catch (...) {
      const std::lock_guard held(lock);
      thrown = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t n = 1; n < std::min<std::size_t>(threads, count); ++n) others.emplace_back(work_on);
  } catch (const std::system_error&) {  // no more threads available: the existing ones do all the work
  }
  work_on();
  others.clear();  // joins them
  if (thrown) std::rethrow_exception(thrown);
}

/// As above, for `work` that returns a Result<void>. Returns the error of the least n that failed.
template <class Work>
[[nodiscard]] Result<void> try_each_in_parallel(std::size_t count, unsigned threads, Work&& work) {
  std::vector<Result<void>> done(count);
  for_each_in_parallel(count, threads, [&](std::size_t n) { done[n] = work(n); });
  for (Result<void>& each : done)
    if (!each) return each;
  return {};
}

}  // namespace iosig
