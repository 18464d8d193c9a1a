#include "decision.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/redirect.h"
#include "iosig/enact/reserve.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/storage_file.h"
#include "voice.h"

namespace iosig::runtime {
namespace {

/// Parsed signatures that are kept; more than any program has pragmas.
constexpr std::size_t most_signatures = 1000;
/// Less stack than this is left to the program: a thread with a tiny one, or a signal handler on its own.
constexpr std::size_t least_stack_bytes = 96 * KiB;

using StoragePointer = std::shared_ptr<const Storage>;

/// What the process knows. Made when the library is loaded and never destroyed: other threads and exit handlers may
/// open files to the very end.
struct Process {
  // A program that runs with more rights than its user has (set-uid) must not follow that user's environment.
  bool disabled = ::getauxval(AT_SECURE) != 0 || is_set("IOSIG_DISABLE");
  bool verbose = is_set("IOSIG_VERBOSE");

  std::mutex lock;  ///< guards what follows; never held during work on users' files
  std::optional<Result<StoragePointer>> storage;
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
    // A child gets the lock free, whatever its parent's other threads did at the moment of the fork.
    ::pthread_atfork([] { process().lock.lock(); }, [] { process().lock.unlock(); }, [] { process().lock.unlock(); });
    return new Process;
  }();
  return only;
}

__attribute__((constructor)) void load() { (void)process(); }

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
      const auto file = find_storage_file();
      if (!file)
        return fail(ErrorKind::bad_input,
                    "no storage description; streams stay where they are; run 'iosig storage probe'");
      return read_storage_file(*file, FreeSpace::leave).map([](Storage storage) {
        for (Device& device : storage.devices) device.provenance.clear();  // not asked for here, and copied often
        return std::make_shared<const Storage>(std::move(storage));
      });
    }();
  }
  return *own.storage;
}

Result<Signature> parsed(const char* text) {
  Process& own = process();
  const std::lock_guard held(own.lock);
  const auto known = own.signatures.find(std::string_view(text));
  if (known != own.signatures.end()) return known->second;
  if (own.signatures.size() >= most_signatures) own.signatures.clear();  // a program that makes up its signatures
  return own.signatures.emplace(text, parse_signature(text)).first->second;
}

struct Decision {
  Outcome outcome;
  std::string why;
  std::string topic = {};  ///< not empty: the user should hear of it, once per topic
};

Decision trouble(const Error& error) { return {Outcome::failed, error.message, "trouble"}; }

/// This thread's own stack. glibc reads /proc to find the main thread's, so it is asked once.
struct Stack {
  std::uintptr_t bottom = 0, top = 0;  ///< both 0: not known

  Stack() {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    void* lowest = nullptr;
    std::size_t size = 0;
    if (::pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
      bottom = reinterpret_cast<std::uintptr_t>(lowest);
      top = bottom + size;
    }
    ::pthread_attr_destroy(&attributes);
  }
};

/// Whether what follows has room on the stack that this thread is on.
bool stack_is_roomy() {
  thread_local const Stack own;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here >= own.bottom + least_stack_bytes && here < own.top;
}

Decision decide(int dirfd, const char* path, const char* signature_words) {
  if (!stack_is_roomy()) return {Outcome::stays, "the stack of this thread is too small for a decision"};
  const auto signature = parsed(signature_words);
  if (!signature) return {Outcome::failed, signature.error().message, fmt::format("signature {}", signature_words)};
  const auto described = storage_description();
  if (!described) return {Outcome::failed, described.error().message, "storage"};
  // The program's own open is about to meet the same obstacle and will report it.
  const auto place = locate(dirfd, path);
  if (!place) return {Outcome::stays, place.error().message};

  const Choice choice = choose_mount_point(
      *signature, **described, [&](MountPoint& mount) { ask_room(mount, signature->total_bytes.value_or(1)); });
  if (!choice.chosen) {
    std::string why = fmt::format("no mount point admits '{}'; the stream stays where it is", signature_words);
    for (const Candidate& candidate : choice.candidates)
      why += fmt::format("\n  {}: {}", candidate.mount_point, fmt::join(candidate.reasons, "; "));
    return {Outcome::failed, std::move(why), fmt::format("signature {}", signature_words)};
  }
  const auto there = lies_on(*place, *choice.chosen);
  if (!there) return trouble(there.error());
  if (*there) return {Outcome::stays, fmt::format("it lies on the best mount point already, {}", *choice.chosen)};
  const auto made =
      make_link(*place, *(*described)->find_mount_point(*choice.chosen), *signature, RedirectedBy::runtime);
  if (!made) return trouble(made.error());
  if (!*made) return {Outcome::stays, "somebody else created it at the same moment"};
  return {Outcome::redirected,
          fmt::format("now leads to {} (best for '{}', predicted {})", (*made)->destination, signature_words,
                      about_rate(choice.candidates.front().throughput_bytes_per_s))};
}

/// The cheap questions, asked first: most opens of a hinted call end here.
const char* reason_to_leave_alone(int dirfd, const char* path, const char* signature) {
  if (signature == nullptr) return "there is no signature";
  if (process().disabled) return "IOSIG is switched off for this process";
  if (path == nullptr) return "there is no path";
  struct stat status {};
  if (::fstatat(dirfd, path, &status, AT_SYMLINK_NOFOLLOW) == 0) return "it exists already";
  if (errno != ENOENT) return "its path cannot be followed";
  return nullptr;
}

Outcome report(const char* path, const Decision& decision) {
  set_last_error(decision.outcome == Outcome::redirected ? std::string_view{} : decision.why);
  if (process().verbose)
    say(fmt::format("'{}': {}", printable(path != nullptr ? path : ""), decision.why));
  else if (!decision.topic.empty())
    say_once(decision.topic, decision.why);
  return decision.outcome;
}

struct ErrnoKept {
  const int before = errno;
  ~ErrnoKept() { errno = before; }
};

/// While it lives, the thread takes no signals: a handler of the host could fork, jump away or open a file in the midst
/// of a decision. Those that our own writes raise (a reader of stderr that went, a limit on the size of files) would
/// end the host, and are dropped.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::sigpending(&pending_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() {
    sigset_t ours;
    ::sigemptyset(&ours);
    for (const int raised : {SIGPIPE, SIGXFSZ})
      if (::sigismember(&pending_, raised) == 0) ::sigaddset(&ours, raised);
    constexpr timespec at_once{};
    while (::sigtimedwait(&ours, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_, pending_;
};

/// Runs `step` as a guest in the host's thread.
template <class Step>
Outcome as_guest(Step step) noexcept {
  thread_local bool inside = false;
  if (inside) return Outcome::stays;  // malloc or the like of a host that opens a hinted file itself
  inside = true;
  const ErrnoKept kept;
  const SignalsHeld held;
  int cancellation = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  Outcome outcome = Outcome::failed;
  try {
    outcome = step();
  } catch (...) {
    set_last_error("out of memory");
  }
  ::pthread_setcancelstate(cancellation, nullptr);
  inside = false;
  return outcome;
}

}  // namespace

Outcome redirect(int dirfd, const char* path, const char* signature) noexcept {
  const ErrnoKept kept;
  if (const char* reason = reason_to_leave_alone(dirfd, path, signature)) return decline(path, reason);
  return as_guest([&] { return report(path, decide(dirfd, path, signature)); });
}

Outcome decline(const char* path, const char* why) noexcept {
  if (process().verbose) return as_guest([&] { return report(path, {Outcome::stays, why}); });
  set_last_error(why);  // the way of most opens: nothing is allocated, no signal is held
  return Outcome::stays;
}

}  // namespace iosig::runtime
