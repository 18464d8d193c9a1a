#include "host/process.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include "host/diagnostics.h"
#include "host/memory.h"
#include "iosig/base/process_life.h"
#include "iosig/base/room.h"
#include "iosig/config/storage_file.h"
#include "iosig/format/signature_text.h"

namespace iosig::runtime {
namespace {

/// Size of the cache of parsed signatures: more than any program has pragmas.
constexpr std::size_t max_signatures = 1000;

/// The process-wide state. Made when the library is loaded and never destroyed, because other threads and exit handlers
/// may open files until the very end of the process.
struct Process {
  // A program with more privileges than its user (set-uid) must not trust the user's environment.
  bool disabled = ::getauxval(AT_SECURE) != 0 || is_set("IOSIG_DISABLE");
  bool verbose = is_set("IOSIG_VERBOSE");

  std::mutex lock;  ///< protects the members below; never held during operations on users' files
  std::optional<Result<StoragePointer>> storage;
  std::optional<PageCache> page_cache;
  std::chrono::steady_clock::time_point page_cache_asked;
  std::map<std::string, Result<Signature>, std::less<>> signatures;
  std::set<std::string, std::less<>> said;

  static bool is_set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] != '\0' && std::string_view(value) != "0";
  }
};

Process& process() {
  static Process& only = *[] {
    remember_stderr();
    keep_memory_room();
    // The child gets the lock released, even if another thread of the parent held it at the time of the fork.
    constexpr auto hold = [] {
      block_signals_at_fork();
      process().lock.lock();
      lock_memory();
    };
    constexpr auto let_go = [] {
      unlock_memory();
      process().lock.unlock();
      restore_signals_at_fork();
    };
    constexpr auto let_go_in_child = [] {
      unlock_memory_of_child();
      forget_own_identity();
      process().lock.unlock();
      restore_signals_at_fork();
    };
    ::pthread_atfork(hold, let_go, let_go_in_child);
    alignas(Process) static std::byte room[sizeof(Process)];  // static: allocation could fail here
    return new (room) Process;
  }();
  return only;
}

__attribute__((constructor)) void load() { (void)process(); }

}  // namespace

namespace {

thread_local int fork_handlers = 0;         ///< of this thread's fork() that have blocked signals
thread_local sigset_t signals_before_fork;  ///< valid while there are any

}  // namespace

void block_signals_at_fork() {
  if (fork_handlers++ > 0) return;
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &signals_before_fork);
}

void restore_signals_at_fork() {
  if (--fork_handlers == 0) ::pthread_sigmask(SIG_SETMASK, &signals_before_fork, nullptr);
}

[[gnu::hot]] bool is_disabled() { return process().disabled; }

bool is_verbose() { return process().verbose; }

[[gnu::hot]] std::string_view setting(const char* variable) {
  const char* value = is_disabled() ? nullptr : std::getenv(variable);
  return value != nullptr ? value : std::string_view{};
}

[[gnu::hot]] std::string_view kept_setting(const char* variable) {
  const std::string_view value = setting(variable);
  if (value.empty()) return value;
  static constinit std::array<char, 1024> texts{};  // the usual ones fit, and need no mapping of their own
  static constinit std::atomic<std::size_t> used{0};
  const std::size_t bytes = value.size() + 1;  // ends with NUL
  char* copy = nullptr;
  if (const std::size_t at = used.fetch_add(bytes); at <= texts.size() && bytes <= texts.size() - at) {
    copy = texts.data() + at;
  } else {
    void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return {};
    copy = static_cast<char*>(page);
  }
  std::memcpy(copy, value.data(), value.size());
  return {copy, value.size()};
}

void say_once(const std::string& topic, std::string_view text) {
  Process& own = process();
  {
    const std::lock_guard held(own.lock);
    if (!own.said.insert(topic).second) return;
  }
  say(text);
}

Result<StoragePointer> storage_description() {
  Process& own = process();
  const std::lock_guard held(own.lock);
  if (!own.storage) {
    own.storage = [&]() -> Result<StoragePointer> {
      auto applied = read_applied_storage();
      if (!applied) return pass_on(applied.error());
      if (!*applied)
        return fail(ErrorKind::bad_input,
                    "no storage description; streams stay where they are; run 'iosig storage probe'");
      Storage& storage = (*applied)->storage;
      for (Device& device : storage.devices) device.provenance.clear();  // not used here, and often copied
      return std::make_shared<const Storage>(std::move(storage));
    }();
  }
  return *own.storage;
}

PageCache page_cache() {
  Process& own = process();
  const std::lock_guard held(own.lock);
  const auto now = std::chrono::steady_clock::now();
  if (!own.page_cache || now - own.page_cache_asked > std::chrono::seconds(1)) {
    own.page_cache = ask_page_cache();
    own.page_cache_asked = now;
  }
  return *own.page_cache;
}

Result<Signature> parsed(const char* text) {
  Process& own = process();
  const std::lock_guard held(own.lock);
  const auto known = own.signatures.find(std::string_view(text));
  if (known != own.signatures.end()) return known->second;
  if (own.signatures.size() >= max_signatures) own.signatures.clear();  // the program generates its signatures
  return own.signatures.emplace(text, parse_signature(text)).first->second;
}

}  // namespace iosig::runtime
