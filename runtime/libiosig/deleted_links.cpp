#include "libiosig/deleted_links.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "host/process.h"
#include "host/run_isolated.h"

namespace iosig::runtime {
namespace {

constexpr std::size_t max_links = 128;    // each needs a descriptor
constexpr std::size_t links_at_once = 4;  // each decision adds one link, so they are all checked in turn

/// Never destroyed: other threads may open files until the very end of the process.
struct Links {
  std::mutex lock;
  std::vector<std::unique_ptr<std::pair<HeldLink, JournalEntry>>> all;  ///< pointers: the oldest is often erased
  std::size_t next = 0;                                                 ///< index of the link to check next
};

Links& links() {
  static Links& only = *[] {
    // fork() acquires the locks in the reverse order of registration. This lock must be acquired before the memory
    // lock, because memory is allocated while this one is held. process.cpp registers the memory lock: this call makes
    // it do so first.
    (void)is_disabled();
    // The child gets the lock released, even if another thread of the parent held it at the time of the fork.
    constexpr auto hold = [] {
      block_signals_at_fork();
      links().lock.lock();
    };
    constexpr auto let_go = [] {
      links().lock.unlock();
      restore_signals_at_fork();
    };
    ::pthread_atfork(hold, let_go, let_go);
    alignas(Links) static std::byte room[sizeof(Links)];
    return new (room) Links;
  }();
  return only;
}

__attribute__((constructor)) void make_links() { (void)links(); }

std::vector<JournalEntry> take_deleted(Among among) {
  std::vector<JournalEntry> deleted;
  auto& [lock, all, next] = links();
  const std::lock_guard held(lock);
  for (std::size_t looks = among == Among::all ? all.size() : std::min(all.size(), links_at_once); looks > 0; --looks) {
    if (next >= all.size()) next = 0;
    if (!all[next]->first.is_deleted()) {
      ++next;
      continue;
    }
    deleted.push_back(std::move(all[next]->second));
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return deleted;
}

/// Many programs delete their last files just before they end.
__attribute__((destructor)) void drop_at_exit() {
  if (!links().all.empty()) (void)run_isolated([] { drop_deleted_data(Among::all); });
}

}  // namespace

void remember_link(HeldLink link, const JournalEntry& entry) {
  if (!link) return;
  Links& own = links();
  const std::lock_guard held(own.lock);
  if (own.all.size() == max_links) own.all.erase(own.all.begin());
  own.all.push_back(std::make_unique<std::pair<HeldLink, JournalEntry>>(std::move(link), entry));
}

void drop_deleted_data(Among among) {
  for (const JournalEntry& entry : take_deleted(among)) (void)drop_deleted(entry);
}

}  // namespace iosig::runtime
